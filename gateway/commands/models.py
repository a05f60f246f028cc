"""`faregate models`: what concerns the files of models."""

import subprocess
import sys
from pathlib import Path

import click


@click.group("models")
def models_group() -> None:
    """Files of models."""


@models_group.command("make-tiny")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
def make_tiny(folder: Path, names: tuple[str, ...]) -> None:
    """Make the tiny models (all, or those named) under FOLDER: real architectures, random weights, in seconds.

    What is there already is left alone. The models are made by the workers' code, in a process of its own.
    """
    child = subprocess.run([sys.executable, "-m", "workers", "make-tiny", str(folder), *names], check=False)
    if child.returncode:
        raise click.exceptions.Exit(child.returncode)


commands: list[click.Command] = [models_group]
