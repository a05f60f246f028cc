"""Reading a catalog: every error at once, each with its line, its field, what was expected and what was found."""

# ruff: noqa: E501 -- whole error lines are easier to compare

import time
from pathlib import Path
from textwrap import dedent

import pytest

from gateway.catalog.load import load, load_file
from gateway.catalog.model import Catalog, OutcomePolicy, Route
from gateway.catalog.problems import CatalogError
from gateway.contract.tasks import TASKS
from gateway.pricing.price import PriceComponent

WHOLE = """\
pools:
  fake: {engine: fake}
models:
  m:
    tasks: [chat]
    description: A model.
    context_tokens: 100
    price: [{usd: 0.10, per: 1M input tokens}]
    routes: [{pool: fake}]
"""


def read(text: str) -> Catalog:
    return load(dedent(text).encode(), "catalog.yaml")


def errors(text: str) -> list[str]:
    with pytest.raises(CatalogError) as caught:
        read(text)
    return str(caught.value).splitlines()


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new)


def test_a_whole_catalog_is_read() -> None:
    catalog = read(WHOLE)
    model = catalog.models["m"]
    assert model.tasks == ("chat",)
    assert model.routes == (Route(pool="fake"),)
    assert model.outcome == OutcomePolicy()
    assert catalog.prices["m"] == (PriceComponent("input_token", 100_000),)
    assert catalog.pools["fake"].backlog == 10_000


def test_the_projects_own_catalog_is_right() -> None:
    catalog = load_file(Path(__file__).parents[3] / "catalog.yaml")
    assert {"tiny-llama", "espeak-ng", "espeak-ng-character", "fake-chat", "fake-stream", "fake-slow"} < set(
        catalog.models
    )
    own = [name for name in catalog.models if name.startswith(("tiny-", "fake-", "espeak-"))]
    assert all(catalog.prices[name] for name in own)
    assert {task for model in catalog.models.values() for task in model.tasks} == set(TASKS)
    assert all("random" in model.description for name, model in catalog.models.items() if name.startswith("tiny-"))
    for model in catalog.models.values():
        assert model.checks


def test_all_errors_are_reported_at_once_in_the_order_of_their_lines() -> None:
    assert errors(
        """\
        pools:
          GPU: {engine: vllm}
          fake: {engine: fakee, workers: -1}
        models:
          ../etc:
            tasks: [chat, sing]
            description: ""
            routes: [{pool: fake}, {pool: fake, weight: 0}]
            contxt_tokens: 5
            price:
              - {usd: -1, per: request}
              - {usd: 0.1, per: 1M input tokns}
              - {usd: NaN, per: 1M output tokens}
              - {usd: 0.0000001, per: 1M cached input tokens}
              - {per: request}
              - request
            parameters:
              temperature: {type: float, maximum: high, priced: maybe}
            outcome: {failed: half}
            deadline_s: 1h
        upstream: {}
        """
    ) == [
        'catalog.yaml:2: pools: expected a name of at most 63 lower-case letters, digits and `-`, found "GPU"',
        'catalog.yaml:3: pools.fake.engine: expected one of vllm, speech, fake, diffusers, triton, workflow, upstream, found "fakee"',
        'catalog.yaml:3: pools.fake.workers: expected a whole number from 0 to 64, found "-1"',
        'catalog.yaml:5: models: expected a name of at most 128 letters, digits and `._:@-/`, found "../etc"',
        'catalog.yaml:6: models.../etc.tasks[1]: expected one of chat, completion, embedding, text-to-speech, text-to-image, image-edit, image-blend, image-relight, image-restyle, image-upscale, text-to-video, image-to-video, video-upscale, talking-head, voice-clone, music, speech-to-text, rerank, found "sing"',
        'catalog.yaml:7: models.../etc.description: expected text, found ""',
        'catalog.yaml:8: models.../etc.routes[1].weight: expected a whole number from 1 to 1000, found "0"',
        'catalog.yaml:8: models.../etc.routes[1]: expected each pool once, found "fake"',
        "catalog.yaml:9: models.../etc.contxt_tokens: expected `context_tokens`, found an unknown field",
        "catalog.yaml:11: models.../etc.price[0].usd: expected a decimal of US dollars, zero or more, such as 0.10,"
        " found '-1' is less than nothing",
        "catalog.yaml:12: models.../etc.price[1].per: expected one of the units request, input token,"
        " cached input token, output token, reasoning token, character, image, megapixel, step, audio second,"
        ' audio minute, video second, video minute, found "1M input tokns"',
        "catalog.yaml:13: models.../etc.price[2].usd: expected a decimal of US dollars, zero or more, such as 0.10,"
        " found 'NaN' is not a decimal number of US dollars",
        "catalog.yaml:14: models.../etc.price[3].usd: expected a decimal of US dollars, zero or more, such as 0.10,"
        " found '0.0000001' for 1000000 is finer than a trillionth of a dollar each",
        "catalog.yaml:15: models.../etc.price[4].usd: expected a decimal of US dollars, such as 0.10, found nothing",
        'catalog.yaml:16: models.../etc.price[5]: expected a mapping, found "request"',
        "catalog.yaml:18: models.../etc.parameters.temperature.type: expected one of integer, number, string, boolean,"
        ' array, object, found "float"',
        'catalog.yaml:18: models.../etc.parameters.temperature.maximum: expected a number, found "high"',
        'catalog.yaml:18: models.../etc.parameters.temperature.priced: expected true or false, found "maybe"',
        'catalog.yaml:19: models.../etc.outcome.failed: expected one of nothing, produced, full, found "half"',
        'catalog.yaml:20: models.../etc.deadline_s: expected a whole number from 1 to 604800, found "1h"',
        "catalog.yaml:21: upstream: expected `upstreams`, found an unknown field",
    ]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("{pool: fake}", "{pool: gpu}", ':9: models.m.routes: expected one of the pools fake, found "gpu"'),
        ("    routes: [{pool: fake}]\n", "", ":4: models.m.routes: expected a list such as `- pool: gpu` or `- {upstream: gmi, model: NAME}`, found nothing"),
        ("engine: fake", "engine: speech", ":5: models.m.tasks: expected tasks of the engine speech (text-to-speech, voice-clone, music, speech-to-text), found chat"),
        ("engine: fake", "engine: vllm", ":4: models.m.source: expected a Hugging Face repository, a local folder, or `tiny:NAME`, found nothing"),
        ("    description", "    source: x\n    description", ":6: models.m.source: expected no source, since the engine is the model, found \"x\""),
        ("    context_tokens: 100\n", "", ":4: models.m.context_tokens: expected the longest input and output together, in tokens, found nothing"),
        ("1M input tokens", "audio second", ":8: models.m.price[0].per: expected prices for what its tasks measure (request, input token, cached input token, output token, reasoning token), found audio second"),
        ("0.10, per: 1M input tokens", "30000, per: input token", ":8: models.m.price: expected at most $1000000 for the largest request, found $3000000"),
        ("[{usd: 0.10, per: 1M input tokens}]", "[{usd: 1, per: request}, {usd: 2}]", ":8: models.m.price[1].when: expected a row that can count: one before it always does, found a second price per request"),
        ("A model.", '"a\\x07b"', ":6: models.m.description: expected at most 2000 characters and no control characters, found 'a\\x07b'"),
        ("  m:", '  "a\\nb":', ":4: models: expected a name of at most 128 letters, digits and `._:@-/`, found 'a\\nb'"),
        ("    routes", "    parameters: {voice: {type: string}}\n    routes", ":9: models.m.parameters.voice: expected one of the fields of its tasks"),
        ("    routes", "    parameters: {temperature: {type: number, default: 3}}\n    routes", ":9: models.m.parameters.temperature.default: expected what chat takes as temperature (Expected `float` <= 2.0), found \"3\""),
        ("    routes", "    parameters: {temperature: {type: number, default: 2, maximum: 1}}\n    routes", ":9: models.m.parameters.temperature.default: expected a default within minimum and maximum, found \"2\""),
        ("    routes", "    parameters: {ignore_eos: {type: boolean, default: true}}\n    routes", ":9: models.m.parameters.ignore_eos.default: expected no default for ignore_eos, found \"true\""),
        ("    routes", "    parameters: {max_tokens: {type: integer, maximum: 10}}\n    routes", ":4: models.m.max_output_tokens: expected an output for calls that name none, since max_tokens has a maximum, found 0"),
        ("    routes", "    max_output_tokens: 200\n    routes", ":9: models.m.max_output_tokens: expected at most the context of 100 tokens, found \"200\""),
        ("    routes", "    options: {a b: 1}\n    routes", ":9: models.m.options: expected names of options, found \"a b\""),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_named(old: str, new: str, error: str) -> None:
    found = errors(changed(old, new))
    assert any(line.startswith("catalog.yaml" + error) for line in found), found


def test_the_largest_request_of_many_texts_is_priced_text_by_text() -> None:
    for task in ("embedding", "rerank"):
        dear = changed("[chat]", f"[{task}]").replace("0.10, per: 1M input tokens", "10, per: input token")
        assert any("expected at most $1000000 for the largest request" in line for line in errors(dear))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("pools: {}\npools: {}\n", ":2: pools: expected each key once, found the key of line 1 again"),
        ("pools: [1\n", ":2: expected YAML, found expected ',' or ']', but got '<stream end>'"),
        ("pools: {a: !!python/object:os.system x}\n", ':1: expected no YAML tags, found "tag:yaml.org,2002:python/object:os.system"'),
        ("pools: *a\n", ":1: expected an anchor that stands above and is complete, found *a"),
        ("pools: &a [*a]\n", ":1: expected an anchor that stands above and is complete, found *a"),
        ("a: {<<: {b: 1}}\n", ":1: expected no merge key (an alias may stand for a whole value), found <<"),
        ("? [a]\n: b\n", ":1: expected text as a key, found a list"),
        ("pools: {}\n---\nmodels: {}\n", ":2: expected one YAML document, found a second one"),
        ("[" * 5000, ":1: expected at most 20 levels, found more"),
        ("a: \x00\n", ": expected YAML, found unacceptable character #x0000: special characters are not allowed"),
        ("- pools\n", ":1: expected a mapping with `pools` and `models`, found a list"),
        ("", ":1: expected a mapping with `pools` and `models`, found nothing"),
        ("models: 5\n", ':1: models: expected a mapping, found "5"'),
    ],
)  # fmt: skip
def test_what_is_no_catalog_at_all_is_named(text: str, error: str) -> None:
    assert errors(text) == ["catalog.yaml" + error]


def test_a_yaml_bomb_is_refused_at_once() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    took_s = []
    for _ in range(3):
        began = time.monotonic()
        assert errors("\n".join(lines))[0].endswith("expected at most 200000 values, found more")
        took_s.append(time.monotonic() - began)
    assert min(took_s) < 2


def test_aliases_cannot_nest_deeper_than_lists_can() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 2000))]
    assert errors("\n".join(lines))[0].endswith("expected at most 20 levels, found more")


def test_a_file_that_is_too_large_or_not_utf8_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"f: expected at most 4194304 bytes, found 5000000"):
        load(b" " * 5_000_000, "f")
    with pytest.raises(CatalogError, match=r"f:2: expected UTF-8, found byte 0xff"):
        load(b"a: 1\n\xff", "f")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"nope.yaml: expected a file that can be read, found No such file"):
        load_file(tmp_path / "nope.yaml")


@pytest.mark.parametrize(
    ("row", "unit", "picos"),
    [
        ("{usd: 0.10, per: 1M input tokens}", "input_token", 100_000),
        ("{usd: '0.10', per: 1000000 input tokens}", "input_token", 100_000),
        ("{usd: 1e-7, per: input token}", "input_token", 100_000),
        ("{usd: 0.0001, per: '1,000 output tokens'}", "output_token", 100_000),
        ("{usd: 0.5, per: 10k reasoning tokens}", "reasoning_token", 50_000_000),
        ("{usd: 0.001}", "request", 10**9),
        ("{usd: 0, per: request}", "request", 0),
        ("{usd: 0.3000000000000000000, per: request}", "request", 3 * 10**11),
        ("{usd: 0.000000000001, per: request}", "request", 1),
    ],
)
def test_price_rows_are_exact(row: str, unit: str, picos: int) -> None:
    """0.10 for a million is exactly 100,000 picodollars: no float was on the way."""
    catalog = read(changed("{usd: 0.10, per: 1M input tokens}", row))
    assert catalog.prices["m"] == (PriceComponent(unit, picos),)  # type: ignore[arg-type]


def test_seconds_may_be_priced_by_the_minute() -> None:
    speech = """\
        pools: {s: {engine: speech}}
        models:
          m: {tasks: [text-to-speech], description: A voice., routes: [{pool: s}], price: [{usd: 0.006, per: audio minute}]}
        """
    assert read(speech).prices["m"] == (PriceComponent("audio_second", 10**8),)


def test_a_model_without_a_price_is_read_and_not_for_sale() -> None:
    assert read(changed("    price: [{usd: 0.10, per: 1M input tokens}]\n", "")).prices["m"] == ()


def test_text_stays_text() -> None:
    """YAML's `no` and `1.10` are what they look like where text is wanted."""
    assert read(changed("A model.", "no")).models["m"].description == "no"
    assert read(changed("  m:", "  1.10:")).models.keys() == {"1.10"}


def test_an_anchor_may_stand_for_a_whole_value() -> None:
    text = changed("    routes", "    parameters: &p {top_p: {type: number, default: 0.5}}\n    routes")
    text += "  n: {tasks: [chat], description: d, context_tokens: 9, routes: [{pool: fake}], parameters: *p}\n"
    models = read(text).models
    assert models["m"].parameters == models["n"].parameters
