"""How bodies say what their callers wish of the choice: `models`, `provider` in the manner of OpenRouter, `task`."""

from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest
from gateway.flow.wish import MOST_MODELS, MOST_NAMES, Sort, UnitLimits, Wish
from gateway.money import parse_price, parse_usd

Usd = Annotated[str, Meta(max_length=40)] | Annotated[float, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Fallbacks = Annotated[list[Name], Meta(max_length=MOST_MODELS)]
Names = Annotated[list[Name], Meta(max_length=MOST_NAMES)]

TOKENS_PER_PRICE = 1_000_000
"""OpenRouter's limits for tokens are prices of a million."""


class UnitPrices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The highest unit prices in US dollars: of a million tokens, of a request, of an image."""

    prompt: Usd | None = None
    completion: Usd | None = None
    request: Usd | None = None
    image: Usd | None = None


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which ways a request may go. Names are those of upstreams, pools and, in `only` and `ignore`, models."""

    order: Names = []
    only: Names = []
    ignore: Names = []
    allow_fallbacks: bool = True
    sort: Sort | None = None
    max_price: UnitPrices | Usd | None = None


class Said(Protocol):
    """A body that may say of the choice all there is to be said."""

    task: Task | None
    models: list[str] | None
    provider: Provider | None
    only: list[str] | None
    ignore: list[str] | None
    sort: Sort | None


def max_price_nanos(usd: str | float | None) -> int | None:
    """Read a caller's `max_price` in US dollars, as a decimal string or a number. Raises InvalidRequest."""
    return None if usd is None else _read(usd, parse_usd, "max_price")


def limit_nanos(body: Any) -> int | None:
    """Read the most that a body's caller will pay for the call: its own `max_price`, else its provider's."""
    if body.max_price is None:
        provider = body.provider
        if provider is None or provider.max_price is None or isinstance(provider.max_price, UnitPrices):
            return None
        return _read(provider.max_price, parse_usd, "provider.max_price")
    return max_price_nanos(body.max_price)


def wish_of(said: Any) -> Wish | None:
    """Read `models` and `provider`, all that an OpenAI body says of the choice; None where it says nothing."""
    if said.models is None and said.provider is None:
        return None
    return _wish(None, said.models, said.provider or Provider())


def wish_from(said: Said) -> Wish | None:
    """Read what a native body says of the choice; what stands flat counts before what stands in `provider`."""
    if not any((said.task, said.models, said.provider, said.only, said.ignore, said.sort)):
        return None
    given = {name: value for name in ("only", "ignore", "sort") if (value := getattr(said, name)) is not None}
    return _wish(said.task, said.models, msgspec.structs.replace(said.provider or Provider(), **given))


def _wish(task: Task | None, models: list[str] | None, provider: Provider) -> Wish | None:
    """Make the wish; None where it says nothing after all, so that a plain call stays one."""
    prices = provider.max_price
    wish = Wish(
        task=task,
        models=tuple(models or ()),
        order=tuple(provider.order),
        only=tuple(provider.only),
        ignore=tuple(provider.ignore),
        allow_fallbacks=provider.allow_fallbacks,
        sort=provider.sort,
        limits=_limits(prices) if isinstance(prices, UnitPrices) else UnitLimits(),
    )
    return None if wish == Wish() else wish


def _limits(prices: UnitPrices) -> UnitLimits:
    def picos(name: str, each: int = 1) -> int | None:
        usd = getattr(prices, name)
        return None if usd is None else _read(usd, parse_price, f"provider.max_price.{name}") // each

    return UnitLimits(
        input_token=picos("prompt", TOKENS_PER_PRICE),
        output_token=picos("completion", TOKENS_PER_PRICE),
        request=picos("request"),
        image=picos("image"),
    )


def _read(usd: str | float, parse: Any, param: str) -> int:
    try:
        whole: int = parse(str(usd))
    except ValueError as error:
        raise InvalidRequest(f"{param}: {error}", param=param) from None
    return whole
