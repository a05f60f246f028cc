"""Every hosted model of catalog.yaml, called by its name: what comes back, and what it costs to the nano.

Real processes all the way to the wire; only the providers are stand-ins, on a loopback address. The charge that is
expected is computed here, in fractions, from the price in the file and from what the stand-ins are known to give.
"""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from gateway.catalog.export import export
from gateway.catalog.kinds import GIVES
from gateway.catalog.load import load_file
from gateway.catalog.model import Model
from gateway.contract.tasks import Task
from gateway.pricing.price import PricedUnit
from gateway.pricing.rows import rows_for
from tests.conftest import absent
from tests.media.samples import data_url, film, picture, sound
from tests.system import System, running_system
from tests.upstreams.elevenlabs import ElevenLabs
from tests.upstreams.fal import Fal
from tests.upstreams.gmi import PATH, Gmi
from tests.upstreams.kling import Kling
from tests.upstreams.minimax import MiniMax
from tests.upstreams.openai import WORDS, OpenAi, tokens
from tests.upstreams.replicate import PATH as PREDICTIONS
from tests.upstreams.replicate import Replicate
from tests.upstreams.serving import HOST, StandIn, standing

OWN = load_file(Path(__file__).parents[2] / "catalog.yaml")
HOSTED = [model for model in OWN.models.values() if model.upstream_only]
SOLD = [model for model in HOSTED if OWN.prices[model.name]]
UNSOLD = [model for model in OWN.models.values() if not OWN.prices[model.name]]
AT_ONCE = 24
FILM_MS, SOUND_MS = 1_000, 2_000
PROMPT = "a lighthouse in the evening"
ENGINES = "upstream,vllm,diffusers,speech"
NANOS = 10**9

Case = tuple[Model, Task]
CASES: list[Case] = [(model, task) for model in SOLD for task in model.tasks]


def wire_names() -> dict[str, str]:
    """Give what each model that the request queue serves makes, by its name there."""
    kinds = {"image": "image", "video": "video", "audio": "audio"}
    return {
        route.model: kinds[GIVES[model.tasks[0]]]
        for model in HOSTED
        for route in model.routes
        if route.upstream == "gmi"
    }


def asleep() -> str:
    """Write the catalog with workers for upstreams alone."""
    pools = {
        name: pool if pool.engine == "upstream" else msgspec.structs.replace(pool, workers=0)
        for name, pool in OWN.pools.items()
    }
    return export(msgspec.structs.replace(OWN, pools=pools))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("PIL") is None or find_spec("av") is None:
        absent("Pillow and PyAV")
    made = tmp_path_factory.mktemp("every")
    made.chmod(0o711)
    (made / "catalog.yaml").write_text(asleep())
    return made


@pytest.fixture(scope="module")
def everything(folder: Path) -> Iterator[System]:
    """Answer a running system with a key for GMI Cloud's two APIs, which stand-ins serve."""
    with ExitStack() as stack:
        kinds = wire_names()
        queue, llm = Gmi(kind_of=kinds.__getitem__), OpenAi()
        stack.enter_context(standing(queue))
        stack.enter_context(standing(llm))
        environ = {
            "FAREGATE_UPSTREAM_GMI_URL": f"{queue.url}{PATH}",
            "FAREGATE_UPSTREAM_GMI_KEY": queue.key,
            "FAREGATE_UPSTREAM_GMI_LLM_URL": llm.base,
            "FAREGATE_UPSTREAM_GMI_LLM_KEY": llm.key,
            "FAREGATE_WORKER_FETCH_ALLOW": f"{HOST}/32",
        }
        options = ("--catalog", str(folder / "catalog.yaml"))
        system = stack.enter_context(running_system(folder / "data", *options, engines=ENGINES, environ=environ))
        system.wait_ready("bria-fibo-image-blend", "openai/gpt-4o-mini")
        yield system


def given(model: Model, task: Task) -> dict[str, Any]:
    """Write an input: what the task needs, and what the model needs beside it."""
    image = data_url(picture(), "image/png")
    plain: dict[Task, dict[str, Any]] = {
        "chat": {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 100},
        "text-to-image": {"prompt": PROMPT},
        "image-edit": {"prompt": PROMPT, "image": image},
        "image-blend": {"prompt": PROMPT, "images": [image, image]},
        "image-relight": {"prompt": "sunrise light", "image": image},
        "image-restyle": {"prompt": "anime", "image": image},
        "text-to-video": {"prompt": PROMPT},
        "image-to-video": {"image": image},
        "video-upscale": {"video": data_url(film(), "video/mp4")},
        "talking-head": {"image": image, "text": PROMPT},
        "text-to-speech": {"input": PROMPT},
        "voice-clone": {"input": PROMPT, "sample": data_url(sound(), "audio/wav")},
        "music": {"prompt": PROMPT},
    }
    if task == "image-to-video" and "prompt" in model.parameters:
        plain[task]["prompt"] = PROMPT
    needed = {name: "https://example.com/last.png" for name, field in model.parameters.items() if field.required}
    return plain[task] | needed


def expected_nanos(model: Model, asked: dict[str, Any]) -> int:
    """Compute a charge from what the stand-ins give: exact fractions, rounded once, half to even."""
    counted: dict[PricedUnit, Fraction] = {
        "request": Fraction(1),
        "input_token": Fraction(tokens(PROMPT)),
        "cached_input_token": Fraction(0),
        "output_token": Fraction(tokens(WORDS)),
        "video_second": Fraction(FILM_MS, 1000),
        "audio_second": Fraction(SOUND_MS, 1000),
        "character": Fraction(len(asked.get("input", ""))),
    }
    defaults = {name: field.default for name, field in model.parameters.items() if field.default is not None}
    rows = rows_for(OWN.prices[model.name], {**defaults, **asked})
    dollars = sum(Fraction(part.picos, 10**12) * counted[part.unit] for part in rows)
    return round(dollars * NANOS)


async def called(system: System, key: str, bodies: list[dict[str, Any]]) -> list[httpx.Response]:
    """Make calls, many at once, each waited for to its end."""
    room = asyncio.Semaphore(AT_ONCE)
    headers = {"authorization": f"Bearer {key}", "prefer": "wait=200"}
    async with httpx.AsyncClient(base_url=system.base_url, headers=headers, timeout=240.0) as client:

        async def call(body: dict[str, Any]) -> httpx.Response:
            async with room:
                return await client.post("/v1/requests", json=body)

        return list(await asyncio.gather(*map(call, bodies)))


def kind_of_output(answer: dict[str, Any]) -> str:
    """Say what an answer holds."""
    output = answer["output"]
    if "media" in output:
        return str(output["media"][0]["media_type"]).partition("/")[0]
    return "text" if output["choices"][0]["text"] == WORDS else "nothing known"


def wrong_calls(system: System, key: str, cases: list[Case], vendor: str = "") -> list[Any]:
    """Call models, of one vendor alone where one is named; answers what went wrong, in its output or its charge."""
    inputs = [given(model, task) for model, task in cases]
    bodies = [
        {"model": model.name, "task": task, "input": asked} for (model, task), asked in zip(cases, inputs, strict=True)
    ]
    if vendor:
        bodies = [body | {"provider": {"only": [vendor]}} for body in bodies]
    wrong = []
    answers = asyncio.run(called(system, key, bodies))
    for (model, task), asked, answer in zip(cases, inputs, answers, strict=True):
        told, due = answer.json(), expected_nanos(model, asked)
        found = (answer.status_code, told.get("status"), told.get("charge_nanos"))
        if found != (200, "succeeded", due) or kind_of_output(told) != GIVES[task]:
            wrong.append((model.name, task, found, due, answer.text[:300]))
    return wrong


@pytest.fixture(scope="module")
def bill(everything: System) -> tuple[int, list[Any]]:
    """Call every hosted model that is for sale; answers the account, and what went wrong."""
    account, key = everything.account("everything", "1000")
    return account, wrong_calls(everything, key, CASES)


def test_every_hosted_model_for_sale_answers_and_costs_exactly_its_price(
    everything: System, bill: tuple[int, list[Any]]
) -> None:
    account, wrong = bill
    assert len(SOLD) >= 100
    assert wrong == []
    shown = everything.balance(account)
    total = sum(expected_nanos(model, given(model, task)) for model, task in CASES)
    assert (shown["held_nanos"], shown["spent_nanos"]) == (0, total)


@pytest.mark.usefixtures("bill")
def test_each_attempt_cost_the_operator_what_the_upstream_asks(everything: System) -> None:
    """After these calls: the price of GMI Cloud is the price here, so every margin is zero."""

    async def margins() -> list[Any]:
        db = await asyncpg.connect(everything.database_url)
        try:
            return list(
                await db.fetch(
                    "select u.charge_nanos, a.cost_nanos from usage u join attempt a on a.request_id = u.id"
                    " where u.charge_nanos > 0"
                )
            )
        finally:
            await db.close()

    rows = asyncio.run(margins())
    assert len(rows) >= len(SOLD)
    assert [row for row in rows if row["charge_nanos"] != row["cost_nanos"]] == []


def test_a_model_answers_to_its_vendors_name_too(everything: System) -> None:
    """The same models by each of their aliases."""
    chats = [(alias, model) for model in SOLD for alias in model.aliases if "chat" in model.tasks]
    assert len(chats) >= 10
    _, key = everything.account("aliases", "1000")
    bodies = [{"model": alias, "input": given(model, "chat")} for alias, model in chats]
    answers = asyncio.run(called(everything, key, bodies))
    charged = [(alias, answer.json().get("charge_nanos")) for (alias, _), answer in zip(chats, answers, strict=True)]
    assert charged == [(alias, expected_nanos(model, {})) for alias, model in chats]


def test_a_model_without_a_price_refuses_to_run(everything: System) -> None:
    with everything.client() as client:
        listed = {row["id"]: row for row in client.get("/v1/models").json()["data"]}
    unsold = [model for model in UNSOLD if model.name in listed]
    assert {model.name for model in UNSOLD if model.upstream_only} <= {model.name for model in unsold}
    account, key = everything.account("unsold", "1000")
    bodies = [{"model": model.name, "input": given(model, "chat")} for model in unsold]
    answers = asyncio.run(called(everything, key, bodies))
    refused = {model.name: answer for model, answer in zip(unsold, answers, strict=True)}
    wrong = {
        name: answer.text
        for name, answer in refused.items()
        if (answer.status_code, answer.json()["error"]["code"]) != (503, "model_not_for_sale")
    }
    assert wrong == {}
    assert all(listed[model.name]["available"] is False for model in unsold)
    shown = everything.balance(account)
    assert (shown["held_nanos"], shown["spent_nanos"]) == (0, 0)


class Vendors(msgspec.Struct):
    """A running system with a key for every vendor but GMI Cloud, and who stands in for them."""

    system: System
    served: dict[str, StandIn]


@pytest.fixture(scope="module")
def vendors(folder: Path) -> Iterator[Vendors]:
    """Answer that system."""
    paths = {"openai": "/v1", "replicate": PREDICTIONS}
    served: dict[str, StandIn] = {
        "openai": OpenAi(),
        "fal": Fal(),
        "replicate": Replicate(),
        "elevenlabs": ElevenLabs(),
        "minimax": MiniMax(),
        "kling": Kling(),
    }
    environ = {"FAREGATE_WORKER_FETCH_ALLOW": f"{HOST}/32"}
    with ExitStack() as stack:
        for name, stand_in in served.items():
            stack.enter_context(standing(stand_in))
            environ[f"FAREGATE_UPSTREAM_{name.upper()}_URL"] = stand_in.url + paths.get(name, "")
            environ[f"FAREGATE_UPSTREAM_{name.upper()}_KEY"] = stand_in.key
        options = ("--catalog", str(folder / "catalog.yaml"))
        system = stack.enter_context(running_system(folder / "vendors", *options, engines="upstream", environ=environ))
        system.wait_ready("openai/gpt-4o-mini", "flux-kontext-pro")
        yield Vendors(system, served)


def lit(model: Model, served: Collection[str]) -> bool:
    """Say whether a model has a route to one of these vendors."""
    return any(route.upstream in served for route in model.routes)


def test_keys_of_other_vendors_light_up_the_models_that_they_serve_themselves(vendors: Vendors) -> None:
    """Without a key for GMI Cloud: what has a second route is called there, at the same price."""
    system = vendors.system
    system.wait_ready(*{model.name for model in SOLD if lit(model, vendors.served)})
    account, key = system.account("vendors", "1000")
    for name, stand_in in vendors.served.items():
        cases = [(model, task) for model in SOLD for task in model.tasks if lit(model, {name})]
        assert cases, name
        assert wrong_calls(system, key, cases, vendor=name) == []
        assert len(stand_in.asked("POST", "/")) >= len(cases), name
    assert system.balance(account)["held_nanos"] == 0


def test_without_a_key_a_hosted_model_names_the_setting_that_is_missing(vendors: Vendors) -> None:
    dark = [model for model in SOLD if not lit(model, vendors.served)]
    assert len(dark) >= 75
    account, key = vendors.system.account("keyless", "1000")
    bodies = [{"model": model.name, "task": model.tasks[0], "input": given(model, model.tasks[0])} for model in dark]
    wrong = []
    for model, answer in zip(dark, asyncio.run(called(vendors.system, key, bodies)), strict=True):
        error = answer.json().get("error", {})
        setting = f"FAREGATE_UPSTREAM_{model.routes[0].upstream.upper().replace('-', '_')}_KEY"
        named = setting in error.get("message", "")
        if (answer.status_code, error.get("code"), named) != (503, "upstream_not_configured", True):
            wrong.append((model.name, answer.status_code, answer.text[:200]))
    assert wrong == []
    with vendors.system.client() as client:
        rows = {row["id"]: row for row in client.get("/v1/models").json()["data"]}
    assert not any(rows[model.name]["available"] for model in dark)
    assert vendors.system.balance(account)["held_nanos"] == 0
