"""Price maps of others as catalog entries: every figure exactly as it stands there, and none lost without a word."""

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.imports.entry import Imported, Skipped
from gateway.catalog.imports.figures import NotReadable, read
from gateway.catalog.imports.litellm import read_map
from gateway.catalog.imports.openrouter import read_list
from gateway.catalog.imports.write import written
from gateway.catalog.load import load
from gateway.catalog.model import Catalog, Upstream
from gateway.contract.units import Units
from gateway.money import PICOS_PER_USD
from gateway.pricing.price import PriceComponent
from gateway.pricing.rate import cost_nanos

THERE = Upstream(name="there", protocol="openai", url="https://api.example.com/v1", pool="remote")

MAPS = Path(__file__).parent / "price_maps"
LITELLM = (MAPS / "litellm.json").read_text()
OPENROUTER = (MAPS / "openrouter.json").read_text()
"""Made for these tests, in the shapes of the real ones."""


def imported(
    reader: Callable[[Any, bool, int], Iterable[Imported | Skipped]],
    text: str,
    *,
    exact: bool = False,
    context: int = 0,
) -> tuple[Catalog, dict[str, Imported], dict[str, str]]:
    """Read a map, write it, and load what was written; answers that, the models read, and why others were left out."""
    found = list(reader(read(text.encode()), exact, context))
    models = [each for each in found if isinstance(each, Imported)]
    out, refused = written(models, THERE, "a test")
    assert refused == []
    skipped = {each.name: each.why for each in found if isinstance(each, Skipped)}
    return load(out.encode(), "import"), {model.name: model for model in models}, skipped


def rows(catalog: Catalog, name: str) -> dict[str, Decimal]:
    """Give a model's price by unit, in dollars for one of it."""
    return {part.unit: Decimal(part.picos).scaleb(-12) for part in catalog.prices[name]}


def test_a_price_map_of_litellm_becomes_a_catalog() -> None:
    catalog, models, skipped = imported(read_map, LITELLM)
    assert rows(catalog, "there/big-chat") == {
        "input_token": Decimal("1.5e-07"),
        "cached_input_token": Decimal("7.5e-08"),
        "output_token": Decimal("6e-07"),
        "reasoning_token": Decimal("0.0000011"),
    }
    big = catalog.models["there/big-chat"]
    assert (big.tasks, big.context_tokens, big.max_output_tokens) == (("chat",), 200_000, 8192)
    (route,) = big.routes
    assert (route.upstream, route.model, route.cost) == ("there", "big-chat", catalog.prices["there/big-chat"])
    assert rows(catalog, "vectors") == {"input_token": Decimal("2e-08")}
    assert rows(catalog, "painter") == {"megapixel": Decimal("0.019")}
    assert rows(catalog, "1024-x-1024/painter") == {"image": Decimal("0.04")}
    assert rows(catalog, "film") == {"video_second": Decimal("0.1")}
    assert rows(catalog, "voice") == {"character": Decimal("0.000015")}
    assert rows(catalog, "ears") == {"audio_second": Decimal("0.0001")}
    assert skipped == {
        "lost-chat": "its context is not known: say one with --context",
        "judge": "no task of ours is its mode moderation",
    }
    assert models["ears"].unsaid == ()


def test_what_no_price_row_can_say_is_said_in_words() -> None:
    _, models, _ = imported(read_map, LITELLM)
    assert models["there/big-chat"].unsaid == (
        "input_cost_per_token_above_128k_tokens 0.0000003",
        "search_context_cost_per_query: search_context_size_low 0.03",
    )
    assert models["there/big-chat"].elsewhere == ("input_cost_per_token_batches 0.000000075",)
    assert models["film"].unsaid == ("output_cost_per_second_1080p 0.165025",)
    out, _ = written([models["there/big-chat"]], THERE, "a test")
    assert "    # not in the price: input_cost_per_token_above_128k_tokens 0.0000003\n" in out
    assert "    # not asked for: input_cost_per_token_batches 0.000000075\n" in out


def test_half_a_price_sells_nothing() -> None:
    """A model without a price for what it writes would write for free."""
    catalog, models, _ = imported(read_map, LITELLM)
    assert catalog.prices["half-chat"] == ()
    assert catalog.prices["fine-chat"] == ()
    assert models["fine-chat"].unsaid == (
        "input_cost_per_token 0.00000000000015: finer than a trillionth of a dollar, below zero, or too large",
    )
    assert catalog.prices["order"] == ()  # free but for what it asks for a query
    assert models["order"].unsaid == ("input_cost_per_query 0.002",)


def test_exact_leaves_models_without_a_price_of_which_a_part_was_not_said() -> None:
    catalog, _, _ = imported(read_map, LITELLM, exact=True)
    sold = {name for name, price in catalog.prices.items() if price}
    assert sold == {"vectors", "painter", "1024-x-1024/painter", "voice", "ears"}


def test_a_context_can_be_said_for_models_of_which_none_is_known() -> None:
    catalog, _, skipped = imported(read_map, LITELLM, context=4096)
    assert catalog.models["lost-chat"].context_tokens == 4096
    assert "lost-chat" not in skipped


def test_a_list_of_openrouter_becomes_a_catalog() -> None:
    catalog, models, skipped = imported(read_list, OPENROUTER)
    assert rows(catalog, "maker/thinker") == {
        "input_token": Decimal("0.00000125"),
        "output_token": Decimal("0.00001"),
        "reasoning_token": Decimal("0.0000105"),
        "cached_input_token": Decimal("0.000000125"),
    }
    thinker = catalog.models["maker/thinker"]
    assert (thinker.context_tokens, thinker.max_output_tokens) == (262_144, 32_768)
    assert models["maker/thinker"].unsaid == ("image 0.0011", "web_search 0.01")
    assert rows(catalog, "maker/plain:free") == {"input_token": 0, "output_token": 0}
    assert catalog.prices["maker/router"] == ()
    assert rows(catalog, "maker/vectors") == {"input_token": Decimal("0.00000002")}
    assert catalog.models["maker/vectors"].tasks == ("embedding",)
    assert skipped == {"maker/painter": "it gives neither text nor embeddings"}


@given(st.integers(0, 10**9), st.integers(-20, 2), st.integers(0, 10**6))
def test_a_figure_of_litellm_is_charged_to_the_last_digit(digits: int, exponent: int, tokens: int) -> None:
    """Any way of writing it: what comes out is the exact product, or no price at all."""
    text = f"{digits}e{exponent:+03}"
    entry = {"mode": "embedding", "max_tokens": 100}
    body = json.dumps({"m": entry}).replace("100}", f'100, "input_cost_per_token": {text}}}')
    (model,) = read_map(read(body.encode()), False, 0)
    assert isinstance(model, Imported)
    picos = Fraction(digits) * Fraction(10) ** (exponent + 12)
    if picos.denominator != 1 or picos >= 10 * 10**12 * PICOS_PER_USD:
        assert model.price == ()
        assert model.unsaid
        return
    assert model.price == (PriceComponent("input_token", int(picos)),)
    assert cost_nanos(model.price, Units(input_tokens=tokens)) == round(picos * tokens / 1000)


@given(st.decimals(min_value=0, max_value=1, places=12))
def test_a_price_of_openrouter_is_the_decimal_that_it_wrote(price: Decimal) -> None:
    text = format(price, "f")
    row = {"id": "a/b", "context_length": 10, "pricing": {"prompt": text, "completion": text}}
    catalog, _, _ = imported(read_list, json.dumps({"data": [row]}))
    assert rows(catalog, "a/b") == {"input_token": price, "output_token": price}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"a": NaN}',
        '{"a": 1}',
        "[" * 100_000,
        '{"data": 5}',
        '{"data": [{}]}',
        '{"a": 1%s}' % ("0" * 99),
    ],
)
@pytest.mark.parametrize("reader", [read_map, read_list])
def test_what_is_no_price_map_is_refused(
    reader: Callable[[Any, bool, int], Iterable[Imported | Skipped]], text: str
) -> None:
    with pytest.raises(NotReadable):
        list(reader(read(text.encode()), False, 0))


def test_a_model_that_no_catalog_takes_is_left_out_and_named() -> None:
    (good, bad) = (
        Imported(name=name, wire="x", task="chat", context_tokens=10, price=(PriceComponent("request", 1),))
        for name in ("good", "bad name")
    )
    out, refused = written([bad, good], THERE, "a test")
    assert list(load(out.encode(), "import").models) == ["good"]
    assert len(refused) == 1
    assert refused[0].startswith("bad name: ")
