"""`faregate up`: start everything on this machine."""

import asyncio
import errno
import importlib.util
from pathlib import Path
from typing import Any, get_args

import click

from gateway.catalog.problems import CatalogError
from gateway.commands.stack import Options, run
from gateway.commands.welcome import now_line
from gateway.contract.pools import EngineName
from gateway.db.migrate import MigrationError
from gateway.stack.errors import StackError

ENGINES: tuple[str, ...] = get_args(EngineName)
DEFAULT_ENGINES = "speech,diffusers,workflow,vllm,upstream"
HEAVY = {"vllm": ("vllm", "vLLM"), "diffusers": ("diffusers", "diffusers")}
"""The package without which an engine cannot be, and what people call it."""


def _engines(text: str) -> tuple[str, ...]:
    """Read the engines; a heavy one is left out, with a word, where it is not installed. Raises UsageError."""
    wanted = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in wanted:
        if name not in ENGINES:
            raise click.UsageError(f"--engines: there is no engine {name!r}; there are {', '.join(ENGINES)}")
    for name, (package, called) in HEAVY.items():
        if name in wanted and importlib.util.find_spec(package) is None:
            wanted.remove(name)
            now_line(
                f"{called} is not installed, so its models are left out: `make run` installs it, or the extra [{name}]"
            )
    if not wanted:
        raise click.UsageError("--engines: no engine is left to start")
    return tuple(wanted)


def _catalog_file(named: Path | None) -> Path:
    """Find the catalog: the one named, the one in the working directory, or the one that came with Faregate."""
    package = Path(__file__).parents[1]
    here = Path("catalog.yaml")
    if named is not None or here.exists():
        return named or here
    shipped = package / "catalog.yaml"
    return shipped if shipped.exists() else package.parent / "catalog.yaml"


@click.command("up")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default="data",
    envvar="FAREGATE_DATA",
    show_default=True,
    help="Where all data go.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option("--engines", default=DEFAULT_ENGINES, show_default=True, help=f"Of {', '.join(ENGINES)}.")
@click.option("--database-url", default="", help="A Postgres to use in place of the embedded one.")
@click.option("--redis-url", default="", help="A Redis or Valkey to use in place of the embedded one.")
@click.option("--blob-url", default="", help="A folder or s3://bucket/prefix for media in place of the data folder's.")
@click.option(
    "--catalog", type=click.Path(path_type=Path), help="The catalog; else ./catalog.yaml, or the shipped one."
)
def up(engines: str, catalog: Path | None, **given: Any) -> None:
    """Start everything on this machine and keep it running, until Ctrl-C."""
    options = Options(engines=_engines(engines), catalog=_catalog_file(catalog), **given)
    try:
        asyncio.run(run(options))
    except (StackError, MigrationError) as error:
        _give_up(str(error))
    except CatalogError as error:
        more = len(error.problems) - 1
        first = error.problems[0].text(error.file)
        _give_up(first + (f" (and {more} more: faregate catalog check {error.file})" if more else ""))
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        _give_up(f"the disk of {options.data} is full" if full else str(error))


def _give_up(line: str) -> None:
    click.echo(f"faregate: {line}", err=True)
    raise SystemExit(2)


commands: list[click.Command] = [up]
