"""Upstreams in a catalog: how they are read, what routes to them say, and what their workers are told."""

# ruff: noqa: E501 -- whole error lines are easier to compare

from textwrap import dedent
from typing import Any

import msgspec
import pytest

from gateway.catalog.codec import model_spec, read_model
from gateway.catalog.diff import diff as difference
from gateway.catalog.diff import diff_text
from gateway.catalog.export import export
from gateway.catalog.load import load
from gateway.catalog.model import Catalog, Route, Snapshot, Upstream, Weights
from gateway.catalog.problems import CatalogError
from gateway.catalog.routes import FORMS
from gateway.catalog.upstreams import PROTOCOL_TASKS, PROTOCOLS, is_address
from gateway.contract.pools import Target, UpstreamSpec
from gateway.flow.floor import spec_of
from gateway.pricing.price import PriceComponent

WHOLE = dedent(
    """\
    pools:
      fake: {engine: fake}
      cloud: {engine: upstream}
    upstreams:
      acme: {protocol: openai, url: https://api.acme.example/v1, pool: cloud, timeout_s: 20, concurrency: 8}
      films: {protocol: kling, url: "http://127.0.0.1:8080", pool: cloud}
    models:
      m:
        tasks: [chat]
        description: A model.
        aliases: [acme/m]
        weights: {repository: Acme/M, parameters_b: 7.6, precision: BF16}
        context_tokens: 100
        price: [{usd: 0.10, per: 1M input tokens}]
        routes:
          - pool: fake
          - {upstream: acme, model: acme/m-2, order: 1, weight: 3, fields: {max_tokens: limit}, fixed: {user: x}, cost: [{usd: 0.05, per: 1M input tokens}]}
      film:
        tasks: [text-to-video]
        description: A film.
        price: [{usd: 0.10, per: video second}]
        parameters:
          cfg_scale: {type: number, minimum: 0, maximum: 1}
        routes:
          - {upstream: films, model: pro, fields: {seconds: duration as text, size: "aspect as ratio, tier as tier"}}
    """
)


def read(text: str = WHOLE) -> Catalog:
    return load(text.encode(), "catalog.yaml")


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new)


def errors(old: str, new: str) -> list[str]:
    with pytest.raises(CatalogError) as caught:
        read(changed(old, new))
    return str(caught.value).splitlines()


def snapshot_of(catalog: Catalog, **fields: Any) -> Snapshot:
    whole = {"models": catalog.models, "pools": catalog.pools, "upstreams": catalog.upstreams, **fields}
    return Snapshot(revision=1, prices={}, model_names={}, **whole)


def test_a_route_to_an_upstream_lies_in_its_pool() -> None:
    catalog = read()
    assert catalog.upstreams["acme"] == Upstream(
        name="acme", protocol="openai", url="https://api.acme.example/v1", pool="cloud", timeout_s=20, concurrency=8
    )
    assert catalog.models["m"].routes == (
        Route(pool="fake"),
        Route(
            pool="cloud",
            order=1,
            weight=3,
            upstream="acme",
            model="acme/m-2",
            fields={"max_tokens": "limit"},
            fixed={"user": "x"},
            cost=(PriceComponent("input_token", 50_000),),
        ),
    )
    assert catalog.models["m"].aliases == ("acme/m",)
    assert catalog.models["m"].weights == Weights(repository="Acme/M", parameters_b="7.6", precision="BF16")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("protocol: openai", "protocol: soap", ':5: upstreams.acme.protocol: expected one of openai, gmi, fal, replicate, elevenlabs, minimax, kling, found "soap"'),
        ("  acme: {", "  Acme: {", ':5: upstreams: expected a name of at most 63 lower-case letters, digits and `-`, found "Acme"'),
        ("https://api.acme", "http://api.acme", ':5: upstreams.acme.url: expected an https address without a slash, a query or a key at its end, such as https://api.example.com/v1, found "http://api.acme.example/v1"'),
        ("pool: cloud}", "pool: fake}", ':6: upstreams.films.pool: expected one of the pools of the engine upstream (cloud), found "fake"'),
        ("timeout_s: 20", "timeout_s: 0", ':5: upstreams.acme.timeout_s: expected a whole number from 1 to 3600, found "0"'),
        ("timeout_s: 20", "key: sk-1", ":5: upstreams.acme.key: expected one of protocol, url, pool, timeout_s, concurrency, found an unknown field"),
        ("upstream: acme", "upstream: acne", ':17: models.m.routes[1].upstream: expected one of the upstreams acme, films, found "acne"'),
        ("model: acme/m-2, ", "", ":17: models.m.routes[1].model: expected text, found nothing"),
        ("- pool: fake", "- {pool: fake, model: x}", ':16: models.m.routes[0].model: expected `upstream` beside it, found "x"'),
        ("- pool: fake", "- pool: cloud", ':15: models.m.routes: expected a pool of our own, or `upstream` with the name of one, found "cloud"'),
        ("{upstream: acme,", "{pool: cloud, upstream: acme,", ':17: models.m.routes[1].pool: expected either `pool` or `upstream`: an upstream has its own pool, found "cloud"'),
        ("- pool: fake", "- {upstream: acme, model: acme/m-2}", ':17: models.m.routes[1]: expected each model of an upstream once, found "acme acme/m-2"'),
        ("max_tokens: limit", "max_tokns: limit", ':17: models.m.routes[1].fields.max_tokns: expected a field of the model\'s tasks or one of its parameters, found "max_tokns"'),
        ("max_tokens: limit", "max_tokens: limit as words", ':17: models.m.routes[1].fields.max_tokens: expected `NAME` or `NAME as FORM`, or several with commas; FORM is one of text, integer, list, milliseconds, ratio, tier, width, height, none, found "limit as words"'),
        ("{usd: 0.05, per: 1M input tokens}", "{usd: 0.05, per: image}", ":15: models.m.routes: expected prices for what its tasks measure (request, input token, cached input token, output token, reasoning token), found image"),
        ("tasks: [text-to-video]", "tasks: [text-to-video, music]", ":25: models.film.routes[0].upstream: expected tasks of the protocol kling (text-to-image, image-edit, text-to-video, image-to-video, talking-head), found \"music\""),
        ("[acme/m]", "[film]", ':11: models.m.aliases[0]: expected a name that no model has yet, found "film", the name of a model'),
        ("[acme/m]", '["a  b"]', ':11: models.m.aliases[0]: expected a name of at most 128 letters, digits, `._:@-/` and single spaces, found "a  b"'),
        ("[acme/m]", "[acme/m, acme/m]", ':11: models.m.aliases[1]: expected a name that no model has yet, found "acme/m", an alias of m'),
        ("7.6", "many", ':12: models.m.weights.parameters_b: expected billions of parameters as a decimal, such as 7.6, found "many"'),
        ("type: number, minimum: 0, maximum: 1", "type: number, default: much", ':23: models.film.parameters.cfg_scale.default: expected a value of the type number, found "much"'),
        ("type: number, minimum: 0, maximum: 1", "type: string, choices: [std, 5]", ':23: models.film.parameters.cfg_scale.choices: expected a value of the type string, found "5"'),
        ("type: number, minimum: 0, maximum: 1", "type: number, url: true", ":23: models.film.parameters.cfg_scale.url: expected a string or an array, and no field of its tasks, found \"true\""),
        ("cfg_scale:", "model:", ':23: models.film.parameters.model: expected a name that callers do not use for something else, found "model"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(old: str, new: str, error: str) -> None:
    found = errors(old, new)
    assert "catalog.yaml" + error in found, found


def test_a_field_of_its_own_needs_an_upstream() -> None:
    """A name that no task knows is taken for a misspelt one where no upstream could read it."""
    found = errors(
        '- {upstream: films, model: pro, fields: {seconds: duration as text, size: "aspect as ratio, tier as tier"}}',
        "- pool: fake",
    )
    assert found[0].startswith(
        "catalog.yaml:23: models.film.parameters.cfg_scale: expected one of the fields of its tasks ("
    )


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://api.example.com/v1", True),
        ("https://api.example.com:8443", True),
        ("http://localhost:9", True),
        ("http://[::1]:9/x", True),
        ("http://10.0.0.1/x", False),
        ("https://key@api.example.com", False),
        ("https://api.example.com/v1/", False),
        ("https://api.example.com/v1?key=1", False),
        ("https://api.example.com/../v1", False),
        ("https:///v1", False),
        ("https://api.example.com:port", False),
        ("ftp://api.example.com", False),
    ],
)
def test_an_address_is_safe_and_says_no_more_than_where(url: str, fits: bool) -> None:
    assert is_address(url) is fits


def test_each_protocol_serves_something() -> None:
    assert set(PROTOCOL_TASKS) == set(PROTOCOLS)


def test_the_forms_are_those_that_workers_know() -> None:
    from workers.engines.upstream.fields import FORMS as KNOWN

    assert set(FORMS) == set(KNOWN)


def test_it_survives_being_written_and_read() -> None:
    catalog = read()
    assert load(export(catalog).encode(), "export") == catalog


def test_a_difference_names_what_changes_of_an_upstream_and_a_route() -> None:
    old, new = read(), read(changed("timeout_s: 20", "timeout_s: 30").replace("order: 1", "order: 2"))
    assert diff_text(difference(old, new)) == (
        "~ upstream acme\n    timeout_s: 20 -> 30\n~ model m\n    routes[1].order: 1 -> 2"
    )
    gone = read(
        changed(
            "- {upstream: acme, model: acme/m-2, order: 1, weight: 3, fields: {max_tokens: limit}, fixed: {user: x}, cost: [{usd: 0.05, per: 1M input tokens}]}",
            "",
        )
    )
    lines = diff_text(difference(gone, old)).splitlines()
    assert lines[0] == "~ model m"
    assert '    routes[1].fields.max_tokens: (none) -> "limit"' in lines
    assert "    routes[1].cost[0].picos: (none) -> 50000" in lines


def test_a_model_that_an_older_release_wrote_is_read() -> None:
    spec = model_spec(read().models["m"])
    for name in ("aliases", "weights"):
        del spec[name]
    spec["routes"] = [{"pool": "fake", "order": 0, "weight": 1}]
    model = read_model("m", 1, spec)
    assert (model.aliases, model.weights, model.routes) == ((), Weights(), (Route(pool="fake"),))


def test_workers_are_told_of_their_upstreams_and_targets_alone() -> None:
    snapshot = snapshot_of(read())
    spec = spec_of(snapshot, "cloud")
    assert spec.upstreams == [
        UpstreamSpec(name="acme", protocol="openai", url="https://api.acme.example/v1", timeout_s=20, concurrency=8),
        UpstreamSpec(name="films", protocol="kling", url="http://127.0.0.1:8080"),
    ]
    film, model = spec.models
    assert model.targets == [
        Target(
            upstream="acme", model="acme/m-2", order=1, weight=3, fields={"max_tokens": "limit"}, fixed={"user": "x"}
        )
    ]
    assert film.targets[0].fields == {"seconds": "duration as text", "size": "aspect as ratio, tier as tier"}
    fake = spec_of(snapshot, "fake")
    assert (fake.upstreams, [each.targets for each in fake.models]) == ([], [[]])


def test_an_upstream_that_is_withdrawn_is_still_known_to_its_workers() -> None:
    """They may hold jobs that are bought there."""
    catalog = read()
    gone = msgspec.structs.replace(catalog.upstreams["films"], withdrawn=True)
    models = {"m": catalog.models["m"]}
    spec = spec_of(snapshot_of(catalog, models=models, upstreams=catalog.upstreams | {"films": gone}), "cloud")
    assert [one.name for one in spec.upstreams] == ["acme", "films"]
    assert [one.name for one in spec.models] == ["m"]
