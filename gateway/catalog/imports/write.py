"""Imported models as a catalog file, which `faregate catalog check` takes as it is."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gateway.catalog.imports.entry import Imported
from gateway.catalog.load import load
from gateway.catalog.model import Upstream
from gateway.catalog.prices import per_text, usd_of_row
from gateway.catalog.problems import CatalogError

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}


def written(models: Sequence[Imported], upstream: Upstream, source: str) -> tuple[str, list[str]]:
    """Write a catalog of models with a route to one upstream, and say which could not stand in it and why."""
    left, refused = list(models), list[str]()
    while True:
        text, lines = _document(left, upstream, source)
        try:
            load(text.encode(), "import")
        except CatalogError as error:
            wrong = {_owner(lines, problem.line): problem.text("") for problem in reversed(error.problems)}
            if None in wrong:
                raise
            refused += [f"{left[at].name}: {words}" for at, words in sorted(wrong.items()) if at is not None]
            left = [model for at, model in enumerate(left) if at not in wrong]
            continue
        return text, refused


def _document(models: Sequence[Imported], upstream: Upstream, source: str) -> tuple[str, list[int]]:
    """Write the file; answers the number of the line at which each model begins, too."""
    lines = [
        f"# Imported from {source}: prices as they stand there, and as the cost of each route.",
        "# Take the models into your catalog.yaml, and set your own prices.",
        "pools:",
        f"  {upstream.pool}: {{engine: upstream}}",
        "upstreams:",
        f"  {upstream.name}: {{protocol: {upstream.protocol}, url: {_text(upstream.url)}, pool: {upstream.pool}}}",
        "models:" if models else "models: {}",
    ]
    begins = []
    for model in models:
        begins.append(len(lines) + 1)
        lines += _entry(model, upstream)
    return "\n".join(lines) + "\n", begins


def _owner(begins: Sequence[int], line: int) -> int | None:
    before = [at for at, begin in enumerate(begins) if begin <= line]
    return before[-1] if before else None


def _entry(model: Imported, upstream: Upstream) -> Iterator[str]:
    yield f"  {_text(model.name)}:"
    yield f"    tasks: [{model.task}]"
    yield f"    description: {_text(f'{model.wire[:200]}, by {upstream.name}.')}"
    if model.context_tokens:
        yield f"    context_tokens: {model.context_tokens}"
    if model.max_output_tokens:
        yield f"    max_output_tokens: {model.max_output_tokens}"
    yield from _comments("not in the price", model.unsaid)
    yield from _comments("not asked for", model.elsewhere)
    rows = [f"{{usd: {usd_of_row(part)}, per: {per_text(part)}}}" for part in model.price]
    if rows:
        yield f"    price: [{', '.join(rows)}]"
    else:
        yield "    # no price: not for sale"
    cost = f", cost: [{', '.join(rows)}]" if rows else ""
    yield "    routes:"
    yield f"      - {{upstream: {upstream.name}, model: {_text(model.wire)}{cost}}}"


def _comments(head: str, notes: Iterable[str]) -> Iterator[str]:
    for note in notes:
        words = f"    # {head}: {note}"
        yield words if words.isprintable() else ascii(words)


def _text(value: str) -> str:
    """Write text so that YAML reads it back as text: plainly where nothing in it could mean anything else."""
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return msgspec.json.encode(value).decode()
