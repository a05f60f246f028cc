"""The command `python -m workers make-tiny`."""

from pathlib import Path

import click

from workers.tiny.models import UnknownTinyModel, make_tiny


@click.command("make-tiny")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
def make_tiny_command(folder: Path, names: tuple[str, ...]) -> None:
    """Make the tiny models (all, or those named) under FOLDER. What is there already is left alone."""
    try:
        made = make_tiny(folder, names)
    except UnknownTinyModel as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror or error}") from None
    for path, new in made:
        click.echo(f"{'made' if new else 'kept'} {path}")
