"""The small parts of the engine of upstreams: words that are shown, breakers, budgets, order, fields, links."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
import pytest

from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ImageInput, Input, SpeechInput, VideoInput
from gateway.contract.pools import Target, UpstreamSpec
from gateway.contract.request import Request
from workers.engine import EngineError, RefusedInput, Run
from workers.engines.upstream.failures import UpstreamFailed, clean, is_blocked, of_status, retry_after
from workers.engines.upstream.fields import wire
from workers.engines.upstream.health import FIRST_OPEN_S, LONGEST_OPEN_S, Health, RetryBudget
from workers.engines.upstream.link import Link
from workers.engines.upstream.media import Parcels
from workers.engines.upstream.protocol import Call, Wire
from workers.engines.upstream.routing import ordered
from workers.engines.upstream.sse import SseReader
from workers.engines.upstream.transport import KeptTransport

SPEC = UpstreamSpec(name="there", protocol="openai", url="https://there.example/v1")


def link() -> Link:
    return Link(SPEC, "k", transport=KeptTransport(), wire=Wire())


def call(given: Input, **target: Any) -> Call:
    request = Request(new_request_id(), 1, "m", "chat", b"", 1)
    run = Run(request, given, 1, lambda *_: None)

    def no_files() -> Any:
        raise AssertionError

    return Call(run, Target(upstream="there", model="m", **target), SPEC, link(), Parcels(run, no_files))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain words, at once", "plain words, at once"),
        ("see https://inside.example/a?b=c now", "see [removed] now"),
        ("key sk-proj-abcdefgh12345678 is wrong", "[removed] is wrong"),
        ("Incorrect: abcdefghijklmnopqrstuvwx", "Incorrect: [removed]"),
        ("a\r\nb\x1b[31mc\x00", "a b [31mc"),
        ("word " * 200, ("word " * 60)[:299] + "…"),
        ("", ""),
    ],
)
def test_words_of_an_upstream_are_cut_to_what_may_be_shown(said: str, shown: str) -> None:
    assert clean(said) == shown


def test_retry_after_is_read_in_all_its_forms() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    assert retry_after({"retry-after": "99999999"}) == 3600
    for nonsense in ("-1", "soon", "nan", "inf", ""):
        assert retry_after({"retry-after": nonsense}) is None
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < (retry_after({"retry-after": date}) or 0) <= 30


@pytest.mark.parametrize(
    ("status", "reason", "wide", "sent"),
    [
        (301, "upstream_error", False, False),
        (401, "upstream_error", True, False),
        (402, "upstream_limited", True, False),
        (403, "upstream_error", True, False),
        (408, "upstream_timeout", False, False),
        (429, "upstream_limited", False, False),
        (500, "upstream_error", False, False),
        (502, "upstream_error", False, True),
        (503, "upstream_error", False, False),
        (504, "upstream_timeout", False, True),
    ],
)
def test_each_status_has_its_meaning(status: int, reason: str, wide: bool, sent: bool) -> None:
    error = of_status(status, {}, b'{"error": {"message": "no", "code": "c"}}')
    assert isinstance(error, UpstreamFailed)
    assert (error.reason, error.wide, error.sent, error.final) == (reason, wide, sent, False)
    assert status == 301 or error.detail.startswith(f"HTTP {status}: c no")


@pytest.mark.parametrize("status", [400, 404, 413, 415, 422])
def test_a_refused_input_is_told_in_the_upstreams_words(status: int) -> None:
    error = of_status(status, {}, b'{"detail": [{"loc": ["body"], "msg": "prompt is too long"}]}')
    assert isinstance(error, RefusedInput)
    assert str(error) == "The provider refused this input: prompt is too long"


@pytest.mark.parametrize("body", [b'{"error": {"code": "content_policy_violation"}}', b"flagged by our safety system"])
@pytest.mark.parametrize("status", [400, 403, 422])
def test_blocked_content_is_told_apart_from_a_wrong_key(status: int, body: bytes) -> None:
    error = of_status(status, {}, body)
    assert isinstance(error, EngineError)
    assert (error.reason, error.final) == ("blocked", True)
    assert not is_blocked("the policy of your content delivery network")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_breaker_opens_in_a_row_waits_longer_each_time_and_closes_after_one_trial() -> None:
    clock = Clock()
    health = Health(clock)
    for _ in range(4):
        health.failed(trial=health.begin())
    health.succeeded(0.1, trial=health.begin())
    for _ in range(5):
        assert health.may_try()
        health.failed(trial=health.begin())
    assert (health.state, health.may_try(), health.wait_s) == ("open", False, FIRST_OPEN_S)
    wait_s = FIRST_OPEN_S
    for _ in range(8):
        clock.now += wait_s
        assert (health.state, health.may_try()) == ("half_open", True)
        trial = health.begin()
        assert trial
        assert not health.may_try()
        health.failed(trial=trial)
        wait_s = min(2 * wait_s, LONGEST_OPEN_S)
        assert health.wait_s == pytest.approx(wait_s)
    clock.now += wait_s
    trial = health.begin()
    health.left(trial=trial)
    assert health.may_try()
    health.succeeded(0.1, trial=health.begin())
    assert (health.state, health.error_rate) == ("closed", 0.0)


def test_a_breaker_opens_where_most_of_a_window_fails_and_forgets_what_is_old() -> None:
    clock = Clock()
    health = Health(clock)
    for number in range(40):
        if number % 3:
            health.failed(trial=health.begin())
        else:
            health.succeeded(0.2, trial=health.begin())
        if health.state == "open":
            break
    assert health.state == "open"
    assert 19 <= number < 25
    assert health.latency_ms == 200
    clock.now += 61
    assert (health.error_rate, health.latency_ms) == (0.0, 0)


def test_retry_after_keeps_a_closed_breaker_shut_and_no_longer() -> None:
    clock = Clock()
    health = Health(clock)
    health.failed(trial=health.begin(), retry_after_s=7)
    assert (health.state, health.may_try(), health.limited_s) == ("open", False, 7)
    clock.now += 7
    assert (health.state, health.may_try()) == ("closed", True)


def test_second_tries_are_a_share_of_the_first_and_a_few() -> None:
    clock = Clock()
    budget = RetryBudget(clock)
    assert [budget.spend() for _ in range(5)] == [True, True, True, False, False]
    for _ in range(50):
        budget.first()
    assert sum(budget.spend() for _ in range(50)) == 10
    clock.now += 11
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]


def names(targets: Sequence[Target]) -> str:
    return "".join(target.upstream for target in targets)


def test_targets_go_by_wish_then_order_then_weight_and_health() -> None:
    a, b, c = (Target(upstream=name, model="m", order=order) for name, order in (("a", 1), ("b", 0), ("c", 2)))
    assert names(ordered([a, b, c], [], lambda _: 0.0)) == "bac"
    assert names(ordered([a, b, c], ["c", "a"], lambda _: 0.0)) == "ca"
    assert names(ordered([a, b, c], ["x"], lambda _: 0.0)) == ""
    x, y = Target(upstream="x", model="m"), Target(upstream="y", model="m")
    firsts = [names(ordered([x, y], [], lambda target: float(target is x)))[0] for _ in range(400)]
    assert 2 < firsts.count("x") < 60


def test_fields_go_by_their_names_and_forms_and_what_is_fixed_wins() -> None:
    given = VideoInput(prompt="go", size="1280x720", seconds=4.0, seed=7, extra={"style": "x", "negative": "n"})
    made = call(
        given,
        fields={
            "size": "input.ratio as ratio, input.tier as tier",
            "seconds": "input.duration as text",
            "seed": "seed as none",
            "negative": "n.p as list",
        },
        fixed={"input": {"ratio": "1:1"}, "watermark": False},
    )
    assert wire(made, {"prompt": "input.prompt"}) == {
        "input": {"prompt": "go", "ratio": "1:1", "tier": "720p", "duration": "4"},
        "style": "x",
        "n": {"p": ["n"]},
        "watermark": False,
    }


def test_fields_without_a_name_are_not_sent_unless_the_protocol_has_no_names() -> None:
    made = call(ImageInput(prompt="go", size="auto", n=2), fields={"size": "aspect as ratio"})
    assert wire(made, {"prompt": "prompt"}) == {"prompt": "go"}
    assert wire(made, {}, rest=True) == {"prompt": "go", "n": 2}
    spoken = call(SpeechInput(input="hi", speed=1.5), fields={"speed": "pause as milliseconds", "input": "text"})
    assert wire(spoken, {}) == {"pause": 1500, "text": "hi"}
    clash = call(ImageInput(prompt="go", n=2), fields={"n": "a", "prompt": "a.b"})
    with pytest.raises(EngineError):
        wire(clash, {})


async def test_the_key_goes_to_its_own_host_only() -> None:
    for address in (
        "https://other.example/v1/x",
        "http://there.example/v1/x",
        "https://there.example:444/v1/x",
        "https://there.example.evil.example/x",
        "https://there.example@evil.example/x",
    ):
        with pytest.raises(UpstreamFailed, match="cannot be read"):
            await link().json("GET", address)


def test_server_sent_events_are_read_in_any_pieces() -> None:
    body = b": hello\r\nevent: x\r\ndata: one\r\ndata: two\r\n\r\ndata:three\n\n\nid: 4\n\ndata: cut"
    for size in (1, 2, 3, 7, 100):
        reader = SseReader()
        found = [event for at in range(0, len(body), size) for event in reader.feed(body[at : at + size])]
        assert [(event.name, event.data) for event in found] == [("x", b"one\ntwo"), ("", b"three")]


def test_nothing_that_holds_a_key_shows_it() -> None:
    from workers.engine import Access

    assert "secret" not in repr(Access(key="secret"))
    assert "secret" not in repr(link()).replace("there", "")
    assert msgspec.json.encode(SPEC)
