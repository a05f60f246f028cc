"""`faregate catalog import`: price maps of others as catalog entries."""

import functools
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import click

from gateway.catalog.imports.entry import Imported, Skipped
from gateway.catalog.imports.figures import NotReadable, read
from gateway.catalog.imports.litellm import read_map
from gateway.catalog.imports.openrouter import read_list
from gateway.catalog.imports.write import written
from gateway.catalog.load import load_file
from gateway.catalog.model import Upstream
from gateway.catalog.names import POOL_NAME
from gateway.catalog.problems import CatalogError
from gateway.catalog.upstreams import URL_WORDS, cannot_serve, is_address
from gateway.commands.client import NotReached
from gateway.contract.pools import ProtocolName

PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)
OPENROUTER_URL = "https://openrouter.ai/api/v1"

Reader = Callable[[Any, bool, int], Iterable[Imported | Skipped]]


@click.group("import")
def import_commands() -> None:
    """Turn a price map into catalog entries, exactly."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command what all imports take."""

    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("--upstream", required=True, help="The upstream that the models are called at.")
    @click.option("--url", default="", help="Its address, where the catalog does not know it.")
    @click.option("--protocol", type=click.Choice(PROTOCOLS), default="openai", show_default=True)
    @click.option(
        "--catalog",
        type=click.Path(path_type=Path),
        default=Path("catalog.yaml"),
        show_default=True,
        help="Where the upstream is looked up.",
    )
    @click.option("--only", multiple=True, help="Names to take, such as 'gmi/*'; may be given several times.")
    @click.option(
        "--context", type=click.IntRange(0), default=0, help="The context of text models of which none is known."
    )
    @click.option("--exact", is_flag=True, help="Leave models without a price of which a part could not be said.")
    @functools.wraps(command)
    def wrapped(**options: Any) -> None:
        command(**options)

    return wrapped


@import_commands.command("litellm")
@_options
def litellm(**options: Any) -> None:
    """Read a price map of LiteLLM; the catalog goes to the output, what it cannot say to the error stream."""
    _import(read_map, "a price map of LiteLLM", "", **options)


@import_commands.command("openrouter")
@_options
def openrouter(**options: Any) -> None:
    """Read OpenRouter's list of models; the catalog goes to the output, what it cannot say to the error stream."""
    _import(read_list, "OpenRouter's list of models", OPENROUTER_URL, **options)


def _import(
    reader: Reader,
    source: str,
    known_url: str,
    *,
    file: Path,
    only: tuple[str, ...],
    context: int,
    exact: bool,
    **where: Any,
) -> None:
    upstream = _upstream(known_url=known_url, **where)
    try:
        found = list(reader(read(file.read_bytes()), exact, context))
    except OSError as error:
        raise NotReached(f"{file}: {error.strerror or error}") from None
    except NotReadable as error:
        raise NotReached(f"{file} is not {source}: {error}") from None
    wanted = [each for each in found if not only or any(fnmatchcase(each.name, pattern) for pattern in only)]
    models, left_out = _sorted_out(wanted, upstream)
    text, refused = written(models, upstream, source)
    click.echo(text, nl=False)
    for line in [*(note for model in models for note in _notes(model)), *left_out, *refused]:
        click.echo(line if line.isprintable() else ascii(line), err=True)
    click.echo(f"{len(models) - len(refused)} models, {len(left_out) + len(refused)} left out", err=True)


def _sorted_out(wanted: list[Imported | Skipped], upstream: Upstream) -> tuple[list[Imported], list[str]]:
    models: list[Imported] = []
    left_out: list[str] = []
    for each in wanted:
        if isinstance(each, Skipped):
            left_out.append(f"{each.name}: left out: {each.why}")
        elif cannot_serve(upstream, (each.task,)):
            left_out.append(f"{each.name}: left out: the protocol {upstream.protocol} does no {each.task}")
        else:
            models.append(each)
    return models, left_out


def _notes(model: Imported) -> Iterable[str]:
    """Say of a model what its price does not."""
    for note in model.unsaid:
        yield f"{model.name}: not in the price: {note}"
    if not model.price:
        yield f"{model.name}: no price, so it is not for sale"
    elif not any(part.picos for part in model.price):
        yield f"{model.name}: every price is zero there, so it is free"


def _upstream(*, upstream: str, url: str, protocol: ProtocolName, catalog: Path, known_url: str) -> Upstream:
    """Find the upstream: by its address where one is given, else in the catalog."""
    if not POOL_NAME.fits(upstream):
        raise click.UsageError(f"--upstream: expected a name of at most {POOL_NAME.most} {POOL_NAME.words}")
    if not url and catalog.exists():
        try:
            known = load_file(catalog).upstreams.get(upstream)
        except CatalogError as error:
            raise NotReached(f"the catalog has errors:\n{error}") from None
        if known is not None:
            return known
    url = url or known_url
    if not url:
        raise click.UsageError(f"--url: {catalog} knows no upstream {upstream}, so its address is needed")
    if not is_address(url):
        raise click.UsageError(f"--url: expected {URL_WORDS}")
    return Upstream(name=upstream, protocol=protocol, url=url, pool="remote-text")
