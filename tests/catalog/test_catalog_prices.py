"""The prices that catalog.yaml starts with: those of the guides to the last digit, and exact to the last nano."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from gateway.catalog.load import load_file
from gateway.catalog.prices import usd_of_row
from gateway.catalog.validate import check_input
from gateway.contract.inputs import VideoInput
from gateway.contract.units import Units
from gateway.money import NANOS_PER_USD, parse_usd
from gateway.pricing.price import PriceVersion
from gateway.pricing.quote import ceiling
from gateway.pricing.rate import charge_nanos, rate_nanos
from tests.ledger.till import Till, ended

OWN = load_file(Path(__file__).parents[2] / "catalog.yaml")
LOCAL = ("tiny-", "fake-", "espeak-", "talking-head")

GUIDE = {
    "seedream-5.0-lite": "0.035",
    "gemini-2.5-flash-image": "0.0387",
    "reve-edit-fast-20251030": "0.007",
    "bria-fibo-edit": "0.04",
    "bria-fibo-image-blend": "0.000001",
    "bria-fibo-relight": "0.000001",
    "bria-fibo-restyle": "0.000001",
    "seedream-4-0-250828": "0.05",
    "reve-create-20250915": "0.024",
    "Kling-Image2Video-V1.6-Pro": "0.098",
    "Kling-Image2Video-V2-Master": "0.28",
    "pixverse-v5.6-t2v": "0.03",
    "Minimax-Hailuo-2.3-Fast": "0.032",
    "Veo3": "0.40",
    "Sora-2-Pro": "0.50",
    "bria-video-increase-resolution": "0.14",
    "GMI-MiniMeTalks-Workflow": "0.02",
    "minimax-tts-speech-2.6-turbo": "0.06",
    "elevenlabs-tts-v3": "0.10",
    "inworld-tts-1.5-mini": "0.005",
    "minimax-audio-voice-clone-speech-2.6-hd": "0.10",
    "minimax-audio-voice-clone-speech-2.6-turbo": "0.06",
    "minimax-music-2.5": "0.15",
}
"""What GMI Cloud's inference guides of March 2026 ask for one request, by the names they use."""

FAMILIES = ("Llama 2 70B", "GPT", "Llama", "DeepSeek", "Stable Diffusion", "DALL-E")
"""What else they name, without a price."""

BLEND = PriceVersion(1, 1, OWN.prices["bria-fibo-image-blend"], datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize("name", GUIDE)
def test_a_model_of_the_guides_costs_what_they_say(name: str) -> None:
    (price,) = OWN.prices[name]
    assert (price.unit, Decimal(usd_of_row(price))) == ("request", Decimal(GUIDE[name]))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_of_the_guides_is_a_model_that_can_be_named(family: str) -> None:
    assert len([model.name for model in OWN.models.values() if family in model.aliases]) == 1


def test_more_than_150_models_of_others_have_a_name() -> None:
    named = [name for name in OWN.models if not name.startswith(LOCAL)]
    assert len(named) >= 150
    assert sum(bool(OWN.prices[name]) for name in named) >= 100


def test_every_hosted_model_for_sale_says_what_its_upstream_asks() -> None:
    """Without it the margin of a request would be unknown where the upstream does not tell."""
    unknown = [
        model.name
        for model in OWN.models.values()
        if OWN.prices[model.name] and model.upstream_only and not model.routes[0].cost
    ]
    assert unknown == []


def test_every_model_priced_by_the_second_knows_its_length_before_it_runs() -> None:
    """Else its hold would be a guess, and a charge would be cut off there."""
    by_second = [
        model
        for model in OWN.models.values()
        if model.upstream_only and any(part.unit == "video_second" for part in OWN.prices[model.name])
    ]
    assert len(by_second) >= 10
    for model in by_second:
        assert model.parameters["seconds"].default, model.name
        assert model.parameters["seconds"].priced, model.name


def test_open_models_start_no_workers_until_an_operator_says_so() -> None:
    for model in OWN.models.values():
        if model.weights.repository and not model.upstream_only:
            pools = [OWN.pools[route.pool] for route in model.routes if not route.upstream]
            assert [pool.workers for pool in pools] == [0], model.name
            assert not OWN.prices[model.name], f"{model.name} is for sale, and nobody serves it"


def test_a_million_blends_cost_exactly_one_dollar() -> None:
    charges = (
        charge_nanos(BLEND, Units(images=1, pixels=1024 * 1024), "succeeded", BLEND.outcome, True)
        for _ in range(1_000_000)
    )
    assert sum(charges) == NANOS_PER_USD


async def test_blends_are_charged_to_the_nano_in_the_ledger(database_url: str) -> None:
    """Thousands of holds and charges of 1,000 nanos, in batches: a five-hundredth of a million, and of a dollar."""
    count, each = 2_000, rate_nanos(BLEND, Units(images=1))
    async with Till(database_url) as till:
        payer = await till.payer(NANOS_PER_USD)
        ids = await asyncio.gather(
            *(till.admit(payer, each, task="image-blend", pool="remote-media") for _ in range(count))
        )
        assert await till.money(payer[0]) == (NANOS_PER_USD - count * each, count * each, 0)
        ends = [ended(str(request_id), each, units=Units(images=1)) for request_id in ids]
        for at in range(0, count, 100):
            charged = await till.settlement.settle(ends[at : at + 100])
            assert {row.charge_nanos for row in charged} == {each}
        available, held, spent = await till.money(payer[0])
        assert (available, held) == (NANOS_PER_USD - spent, 0)
        assert Fraction(spent, NANOS_PER_USD) == Fraction(count, 1_000_000)
        assert await till.broken_books() == []


@pytest.mark.parametrize(
    ("name", "fields", "usd"),
    [
        ("veo-3.1-lite-generate-001", {}, "0.3"),
        ("veo-3.1-lite-generate-001", {"generateAudio": False}, "0.18"),
        ("veo-3.1-lite-generate-001", {"resolution": "1080p", "generateAudio": False}, "0.48"),
        ("seedance-2-0-260128", {"seconds": 4}, "0.208"),
        ("seedance-2-0-260128", {"seconds": 4, "resolution": "720p"}, "0.608"),
    ],
)
def test_resolution_and_sound_are_priced_as_their_vendors_price_them(
    name: str, fields: dict[str, object], usd: str
) -> None:
    own = {key: value for key, value in fields.items() if key != "seconds"}
    value = VideoInput(prompt="A tide.", seconds=fields.get("seconds"), extra=own or None)  # type: ignore[arg-type]
    model = OWN.models[name]
    price = PriceVersion(1, 1, OWN.prices[name], datetime(2026, 1, 1, tzinfo=UTC))
    assert ceiling(model, check_input(model, value), price).nanos == parse_usd(usd)
