"""Fields of one model alone: what a caller may write into them, and what a model that upstreams serve does not take."""

# ruff: noqa: E501 -- whole error lines are easier to compare

import timeit
from typing import Any

import msgspec
import pytest

from gateway.catalog.model import Model, Parameter, Route
from gateway.catalog.validate import check_input
from gateway.catalog.vendor import MOST_BYTES, split
from gateway.contract.inputs import ChatInput, ImageInput, ImageToVideoInput, SpeechInput, VideoInput
from gateway.contract.inputs.text import Message
from gateway.errors import InvalidRequest
from gateway.flow.call import Call
from gateway.flow.resolve import fitted

UPSTREAM = Route(pool="cloud", upstream="acme", model="film")
OWN = {
    "cfg_scale": Parameter(type="number", minimum=0, maximum=1),
    "sound": Parameter(type="string", choices=("on", "off"), default="off"),
    "shots": Parameter(type="integer", minimum=1),
    "watermark": Parameter(type="boolean"),
    "references": Parameter(type="array", maximum=2, url=True),
    "camera": Parameter(type="object"),
    "seconds": Parameter(type="number", choices=(5, 10)),
}


def model_of(parameters: dict[str, Parameter] | None = None, **fields: Any) -> Model:
    plain: dict[str, Any] = {
        "name": "film",
        "tasks": ("text-to-video", "image-to-video"),
        "description": "A film.",
        "routes": (UPSTREAM,),
        "parameters": OWN if parameters is None else parameters,
    }
    return Model(**(plain | fields))


FILM = model_of()


def checked(**extra: Any) -> dict[str, Any] | None:
    return check_input(FILM, VideoInput(prompt="x", extra=extra)).extra


def refusal(**extra: Any) -> tuple[str, str | None, str]:
    with pytest.raises(InvalidRequest) as caught:
        checked(**extra)
    return caught.value.message, caught.value.param, caught.value.code


def test_what_is_declared_goes_through_with_the_defaults() -> None:
    given = {"cfg_scale": 0.5, "shots": 2, "watermark": False, "camera": {"pan": [1, {"x": 2}]}}
    assert checked(**given) == given | {"sound": "off"}
    assert check_input(FILM, VideoInput(prompt="x")).extra == {"sound": "off"}
    assert checked(cfg_scale=None) == {"sound": "off"}


def test_a_model_without_fields_of_its_own_has_none() -> None:
    value = VideoInput(prompt="x", extra={})
    assert check_input(model_of({}), value).extra is None


@pytest.mark.parametrize(
    ("extra", "message", "param", "code"),
    [
        ({"wings": 2}, "Object contains unknown field `wings`", "wings", "unknown_field"),
        ({"prompt": "y"}, "Object contains unknown field `prompt`", "prompt", "unknown_field"),
        ({"cfg_scale": 2}, "cfg_scale must be at most 1 for this model.", "cfg_scale", "invalid_request"),
        ({"cfg_scale": "high"}, "Expected `int | float`, got `str`", "cfg_scale", "invalid_request"),
        ({"cfg_scale": "nan"}, "Expected a finite number", "cfg_scale", "invalid_request"),
        ({"cfg_scale": True}, "Expected `int | float`, got `bool`", "cfg_scale", "invalid_request"),
        ({"shots": 1.5}, "Expected `int`, got `float`", "shots", "invalid_request"),
        ({"shots": 0}, "shots must be at least 1 for this model.", "shots", "invalid_request"),
        ({"sound": "loud"}, "sound must be one of: on, off.", "sound", "invalid_request"),
        ({"sound": 1}, "Expected `str`, got `int`", "sound", "invalid_request"),
        ({"references": "https://a.example/x"}, "Expected `array`, got `str`", "references", "invalid_request"),
        ({"references": ["https://a.example/x"] * 3}, "references must have at most 2 items for this model.", "references", "invalid_request"),
        ({"references": ["http://a.example/x"]}, "references must be an https address that anybody can read.", "references", "invalid_request"),
        ({"camera": "up"}, "Expected `object`, got `str`", "camera", "invalid_request"),
        ({"camera": {"x": "y" * MOST_BYTES}}, f"camera together are too large: at most {MOST_BYTES} bytes.", "input", "invalid_request"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(extra: dict[str, Any], message: str, param: str, code: str) -> None:
    assert refusal(**extra) == (message, param, code)


def test_the_text_of_a_form_becomes_what_the_field_holds() -> None:
    assert checked(cfg_scale="0.5", shots="3", watermark="true") == {
        "cfg_scale": 0.5,
        "shots": 3,
        "watermark": True,
        "sound": "off",
    }


@pytest.mark.parametrize(
    "address",
    [
        "https://localhost/x",
        "https://10.0.0.1/x",
        "https://[::1]/x",
        "https://db.internal/x",
        "https:///x",
        "https://user:key@a.example/x",
        "file:///etc/passwd",
        "https://a.example/a b",
        "a",
        5,
    ],
)
def test_an_address_that_an_upstream_reads_leads_into_the_open(address: Any) -> None:
    assert refusal(references=[address])[1] == "references"


def test_what_is_required_must_be_there() -> None:
    parameters = {"lyrics": Parameter(type="string", required=True), "image": Parameter(type="string", required=True)}
    with pytest.raises(InvalidRequest) as caught:
        check_input(model_of(parameters), VideoInput(prompt="x"))
    assert (caught.value.message, caught.value.param) == ("Object missing required field `lyrics`", "lyrics")
    style = model_of({"style": Parameter(type="string", required=True)}, tasks=("text-to-image",))
    with pytest.raises(InvalidRequest) as caught:
        check_input(style, ImageInput(prompt="x"))
    assert (caught.value.message, caught.value.param) == ("Object missing required field `style`", "style")


def native(model: Model, given: dict[str, Any]) -> Any:
    raw = msgspec.Raw(msgspec.json.encode(given))
    return fitted(Call(secret="", model=model.name, task=None, input=raw), model)


def test_a_native_input_has_them_beside_the_fields_of_the_task() -> None:
    assert native(FILM, {"prompt": "x", "cfg_scale": 0.5, "seconds": 5}) == (
        "text-to-video",
        VideoInput(prompt="x", seconds=5, extra={"cfg_scale": 0.5, "sound": "off"}),
    )
    model = model_of({**OWN, "prompt": Parameter(type="string")})
    picture = {"prompt": "x", "image": "https://a.example/x.png", "shots": 2, "extra": {"cfg_scale": 1}}
    assert native(model, picture) == (
        "image-to-video",
        ImageToVideoInput(prompt="x", image="https://a.example/x.png", extra={"cfg_scale": 1, "shots": 2, "sound": "off"}),
    )  # fmt: skip


@pytest.mark.parametrize("given", [{"prompt": "x", "wings": 2}, {"prompt": "x", "extra": {"wings": 2}}])
def test_a_native_input_with_any_other_is_refused(given: dict[str, Any]) -> None:
    for model in (FILM, model_of({})):
        with pytest.raises(InvalidRequest) as caught:
            native(model, given)
        assert (caught.value.code, (caught.value.param or "").rpartition(".")[2]) == ("unknown_field", "wings")


def test_what_is_no_object_is_left_as_it_is() -> None:
    for text in (b"[1]", b"7", b"{"):
        assert split(msgspec.Raw(text), ["a"]) == (msgspec.Raw(text), {})


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("text-to-video", VideoInput(prompt="x", negative_prompt="y")),
        ("text-to-video", VideoInput(prompt="x", size="64x64")),
        ("image-to-video", ImageToVideoInput(prompt="x", image="https://a.example/x.png")),
        ("text-to-speech", SpeechInput(input="x", response_format="wav")),
    ],
)
def test_nobody_would_heed_an_optional_field_that_is_not_declared(task: Any, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"This model takes no \w+\. Leave it out\.") as caught:
        check_input(model_of(tasks=(task,)), value)
    assert caught.value.code == "not_supported"
    own = Route(pool="gpu")
    check_input(model_of(tasks=(task,), routes=(own, UPSTREAM)), value)


def test_what_says_no_more_than_leaving_it_out_is_taken_off() -> None:
    image = model_of({}, tasks=("text-to-image",))
    assert check_input(image, ImageInput(prompt="x", n=1, size="auto", quality="auto")) == ImageInput(prompt="x")
    voice = model_of({}, tasks=("text-to-speech",))
    assert check_input(voice, SpeechInput(input="x", response_format="mp3")) == SpeechInput(input="x")


def test_text_models_take_all_fields_wherever_they_are_served() -> None:
    value = ChatInput(messages=[Message(role="user", content="hello")], temperature=0.3, top_p=0.9, seed=1)
    assert check_input(model_of({}, tasks=("chat",)), value) is value


def test_calls_without_such_fields_pay_nothing() -> None:
    model = model_of({}, tasks=("chat",), routes=(Route(pool="gpu"),))
    value = ChatInput(messages=[Message(role="user", content="hello")])
    model.checks, model.vendor_checks, model.refusals  # noqa: B018 -- prepared by the first call
    each_s = min(timeit.repeat(lambda: check_input(model, value), number=200, repeat=50)) / 200
    assert each_s < 20e-6
