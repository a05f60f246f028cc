"""Replicate's names for models, and the words of its headers."""

import pytest

from gateway.catalog.model import Model, Route, Snapshot, Upstream
from gateway.errors import InvalidRequest
from gateway.http.replicate.bodies import cancel_after_s, kinds_of
from gateway.http.replicate.names import ReplicateNames, full_name, version_id

HASH = "ab" * 32


def snapshot() -> Snapshot:
    upstream = Upstream(name="there", protocol="replicate", url="https://x", pool="calls")
    other = Upstream(name="elsewhere", protocol="gmi", url="https://y", pool="calls")
    named = {
        "plain": Model(
            name="plain", tasks=("chat",), description="", routes=(Route(pool="a"),), aliases=("short", "meta/short")
        ),
        "meta/owned": Model(name="meta/owned", tasks=("chat",), description="", routes=(Route(pool="a"),)),
        "far": Model(
            name="far",
            tasks=("chat",),
            description="",
            routes=(
                Route(pool="calls", upstream="there", model=f"stability/sdxl:{HASH}"),
                Route(pool="calls", upstream="elsewhere", model="Sdxl"),
            ),
        ),
        "a:b": Model(name="a:b", tasks=("chat",), description="", routes=(Route(pool="a"),)),
    }
    return Snapshot(
        revision=1,
        models=named,
        pools={},
        prices={},
        model_names={},
        upstreams={"there": upstream, "elsewhere": other},
        aliases={"short": "plain", "meta/short": "plain"},
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("plain", "plain"),
        ("faregate/plain", "plain"),
        ("short", "plain"),
        ("faregate/short", "plain"),
        ("meta/short", "plain"),
        (version_id("plain"), "plain"),
        (f"faregate/plain:{version_id('plain')}", "plain"),
        (f"meta/short:{version_id('plain')}", "plain"),
        ("meta/owned", "meta/owned"),
        ("stability/sdxl", "far"),
        (HASH, "far"),
        (f"stability/sdxl:{HASH}", "far"),
        (f"faregate/far:{HASH}", "far"),
        ("a:b", "a:b"),
        ("faregate/a:b", "a:b"),
        ("nothing", None),
        ("faregate/meta/owned", None),
        ("Sdxl", None),
        (f"plain:{version_id('far')}", None),
        ("plain:latest", None),
        (f"nothing:{HASH}", None),
        (":", None),
        ("", None),
    ],
)
def test_a_model_is_found_by_its_names_and_by_no_others(name: str, found: str | None) -> None:
    model = ReplicateNames().find(snapshot(), name)
    assert (model.name if model else None) == found


def test_names_follow_the_catalog() -> None:
    names, first = ReplicateNames(), snapshot()
    assert names.find(first, "stability/sdxl") is not None
    fewer = {name: model for name, model in first.models.items() if name != "far"}
    later = Snapshot(revision=2, models=fewer, pools={}, prices={}, model_names={})
    assert names.find(later, "stability/sdxl") is None


def test_owners() -> None:
    assert full_name("plain") == ("faregate", "plain")
    assert full_name("meta/owned") == ("meta", "owned")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), ("90", 90), ("90s", 90), ("1m30s", 90), ("2H", 7200), ("1d", 86_400), ("7d", 604_800)],
)
def test_cancel_after_is_read(text: str, seconds: int | None) -> None:
    assert cancel_after_s(text) == seconds


@pytest.mark.parametrize("text", ["4s", "0", "-5", "1w", "s", " ", "8d", "1.5h", "9" * 7, "s5", "٩s"])
def test_cancel_after_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        cancel_after_s(text)
    assert refused.value.param == "Cancel-After"


def test_events_are_told_once_each() -> None:
    assert kinds_of(("logs", "output", "completed")) == ("progress", "completed")
    assert kinds_of(None) == ("started", "progress", "completed")
