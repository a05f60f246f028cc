"""Differences of catalogs, and catalogs written back as YAML."""

from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.diff import diff, diff_text
from gateway.catalog.export import export
from gateway.catalog.load import load, load_file
from gateway.catalog.model import Catalog, Model, OutcomePolicy, Parameter, Pick, Pool, Route, Upstream, Weights
from gateway.pricing.price import PRICED_UNITS, PriceComponent

OWN = load_file(Path(__file__).parents[3] / "catalog.yaml")
NOTHING = Catalog(pools={}, models={}, prices={})


def test_no_difference_is_said_in_words() -> None:
    assert diff(OWN, OWN) == ()
    assert diff_text(()) == "no changes"


def test_a_difference_says_what_was_and_what_will_be() -> None:
    llama = OWN.models["tiny-llama"]
    temperature = msgspec.structs.replace(llama.parameters["temperature"], maximum=1.5)
    changed = msgspec.structs.replace(
        llama,
        deadline_s=30,
        parameters={**llama.parameters, "temperature": temperature, "seed": Parameter(type="integer")},
    )
    models = {"new": msgspec.structs.replace(llama, name="new"), "tiny-llama": changed}
    models |= {name: model for name, model in OWN.models.items() if name not in ("tiny-llama", "espeak-ng")}
    pools = {name: pool for name, pool in OWN.pools.items() if name != "embed"}
    pools["fake"] = msgspec.structs.replace(pools["fake"], workers=2)
    prices = {
        **OWN.prices,
        "tiny-llama": (PriceComponent("input_token", 120_000), PriceComponent("output_token", 400_000)),
        "new": (PriceComponent("request", 10**9),),
    }
    text = diff_text(diff(OWN, Catalog(pools=pools, models=models, prices=prices, upstreams=OWN.upstreams)))
    assert text == (
        "- pool embed\n"
        "~ pool fake\n"
        "    workers: 1 -> 2\n"
        "- model espeak-ng\n"
        "+ model new\n"
        "    price per request: $0.001\n"
        "~ model tiny-llama\n"
        "    price per 1M input tokens: $0.10 -> $0.12\n"
        "    price per 1M cached input tokens: $0.05 -> (none)\n"
        "    deadline_s: 300 -> 30\n"
        '    parameters.seed.type: (none) -> "integer"\n'
        "    parameters.temperature.maximum: 2 -> 1.5"
    )


def test_the_order_of_units_is_no_difference() -> None:
    """Of rows of one unit it is one: the first that holds counts."""
    units = list(reversed(PRICED_UNITS))
    prices = {name: tuple(sorted(parts, key=lambda part: units.index(part.unit))) for name, parts in OWN.prices.items()}
    assert diff(OWN, Catalog(pools=OWN.pools, models=OWN.models, prices=prices, upstreams=OWN.upstreams)) == ()


def test_the_order_of_rows_of_one_unit_is_a_difference() -> None:
    name = "veo-3.1-lite-generate-001"
    turned = OWN.prices | {name: tuple(reversed(OWN.prices[name]))}
    change = diff(OWN, Catalog(pools=OWN.pools, models=OWN.models, prices=turned, upstreams=OWN.upstreams))[0]
    assert [each.field for each in change.price] == ["order of prices per video second"]


def test_a_difference_can_be_read_by_scripts() -> None:
    plain = msgspec.json.decode(msgspec.json.encode(diff(NOTHING, OWN)))
    assert plain[0] == {"kind": "pool", "name": "llama", "action": "added", "fields": [], "price": [], "last": None}
    llama = next(each for each in plain if each["name"] == "tiny-llama")
    assert llama["price"][0] == {"field": "price per 1M input tokens", "old": None, "new": "$0.10"}


def test_the_projects_own_catalog_survives_being_written_and_read() -> None:
    again = load(export(OWN).encode(), "export")
    assert again == OWN
    assert list(again.models) == list(OWN.models)


words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp", "Zs")), min_size=1, max_size=12)
plain = (
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6).map(lambda n: round(n, 6)) | words
)
names = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
parts = st.dictionaries(
    st.sampled_from(("request", "input_token", "cached_input_token", "output_token")), st.integers(0, 10**9), max_size=4
).map(lambda picos: tuple(PriceComponent(unit, amount) for unit, amount in picos.items()))
parameters = st.dictionaries(
    st.sampled_from(("seed", "temperature", "top_p")),
    st.builds(
        Parameter,
        type=st.just("number"),
        minimum=st.none() | st.just(0) | st.just(0.25),
        maximum=st.none() | st.just(1),
        default=st.none() | st.just(1),
        priced=st.booleans(),
        description=words,
    ),
)


own = st.builds(
    Parameter,
    type=st.just("string"),
    default=st.none() | words,
    required=st.booleans(),
    url=st.booleans(),
    priced=st.booleans(),
)
routes_up = st.builds(
    Route,
    pool=st.just("cloud"),
    upstream=st.just("acme"),
    model=words.map(str.strip).filter(bool),
    order=st.integers(0, 9),
    weight=st.integers(1, 9),
    fields=st.dictionaries(
        st.sampled_from(("max_tokens", "temperature", "vendor")),
        st.sampled_from(("limit", "a.b as text", "x as ratio, y as tier")),
    ),
    fixed=st.dictionaries(words, st.recursive(plain, lambda inner: st.lists(inner, max_size=2), max_leaves=4)),
    cost=parts,
)
ACME = Upstream(name="acme", protocol="openai", url="https://acme.example/v1", pool="cloud", timeout_s=7)


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    pools = {
        name: Pool(name=name, engine="fake", workers=draw(st.integers(0, 9)))
        for name in draw(st.sets(names, min_size=1))
    }
    cloud = {"cloud": Pool(name="cloud", engine="upstream")}
    models = {
        name: Model(
            name=name,
            tasks=draw(st.permutations(("chat", "completion")).map(tuple)),
            description=draw(words),
            parameters=draw(parameters) | {"vendor": draw(own)},
            routes=(
                Route(pool=draw(st.sampled_from(sorted(pools))), weight=draw(st.integers(1, 9))),
                *draw(st.lists(routes_up, min_size=1, max_size=2, unique_by=lambda route: route.model)),
            ),
            aliases=draw(st.sampled_from(((), (f"acme/{name}",), (f"acme/{name}", f"b:{name}@1")))),
            weights=draw(st.builds(Weights, repository=st.just("") | words.map(str.strip), precision=st.just("BF16"))),
            picks=tuple(draw(st.lists(st.builds(Pick, role=words, use=words, line=words), max_size=2))),
            outcome=draw(st.builds(OutcomePolicy)),
            context_tokens=draw(st.integers(1, 1000)),
            options=draw(
                st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), plain | st.lists(plain, max_size=3))
            ),
        )
        for name in draw(st.sets(names, max_size=3))
    }
    prices = {name: draw(parts) for name in models}
    return Catalog(pools=pools | cloud, models=models, prices=prices, upstreams={"acme": ACME})


@settings(max_examples=100, deadline=None)
@given(catalogs())
def test_any_catalog_survives_being_written_and_read(catalog: Catalog) -> None:
    again = load(export(catalog).encode(), "export")
    assert diff(catalog, again) == ()
