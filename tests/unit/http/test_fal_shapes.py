"""fal's names, fields, statuses and errors, without a running system."""

from typing import Any

import pytest

from gateway.catalog.model import Model, Parameter, Route, Snapshot, Upstream
from gateway.contract.events import GalleryOutput, MediaOutput, Output, RankingOutput, Segment, TranscriptOutput
from gateway.contract.phases import Phases
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.errors import Conflict, DeadlineExceeded, EngineFailed, FaregateError, InvalidRequest, NotFound
from gateway.flow.view import View
from gateway.http.fal.errors import fal_body, fal_headers, fal_status
from gateway.http.fal.fields import fal_given, written
from gateway.http.fal.names import fal_names, named
from gateway.http.fal.views import Made, billable_units, result_of, status_of
from gateway.media.addresses import Addresses

ADDRESSES = Addresses("k" * 20, "https://here", 3600)


def model(*tasks: Task, name: str = "ours", **more: Any) -> Model:
    return Model(name=name, tasks=tasks, description="", routes=more.pop("routes", ()), **more)


def snapshot(*models: Model) -> Snapshot:
    upstream = Upstream(name="there", protocol="fal", url="https://there", pool="away")
    return Snapshot(
        revision=1,
        models={each.name: each for each in models},
        pools={},
        prices={},
        model_names={},
        upstreams={"there": upstream},
        aliases={alias: each.name for each in models for alias in each.aliases},
    )


FLUX = model("text-to-image", "image-edit", name="flux", aliases=("fal-ai/flux/dev",))
VEO = model(
    "text-to-video",
    "image-to-video",
    name="veo",
    routes=(Route(pool="away", upstream="there", model="fal-ai/veo3"),),
)


@pytest.mark.parametrize(
    ("path", "found", "app"),
    [
        ("flux", "flux", "flux"),
        ("faregate/flux", "flux", "faregate/flux"),
        ("fal-ai/flux/dev", "flux", "fal-ai/flux"),
        ("fal-ai/flux/dev/image-to-image", "flux", "fal-ai/flux"),
        ("fal-ai/veo3/image-to-video", "veo", "fal-ai/veo3"),
        ("fal-ai/veo3", "veo", "fal-ai/veo3"),
    ],
)
def test_a_path_finds_its_model(path: str, found: str, app: str) -> None:
    seen = named(fal_names(), snapshot(FLUX, VEO), path.split("/"))
    assert (seen.model.name, seen.app) == (found, app)


@pytest.mark.parametrize(
    "path",
    [
        "fal-ai/flux",
        "fal-ai/flux/pro",
        "fal-ai/veo3/fast",
        "fal-ai/veo3/music",
        "other/flux",
        "fal-ai/flux/dev/lora",
        "fal-ai/flux/dev" + "/image-edit" * 6,
        "a/" * 30_000 + "a",
    ],
    ids=lambda path: path[:40],
)
def test_a_path_of_another_model_finds_none(path: str) -> None:
    with pytest.raises(NotFound):
        named(fal_names(), snapshot(FLUX, VEO), path.split("/"))


@pytest.mark.parametrize(
    ("payload", "given"),
    [
        ({"image_size": "landscape_16_9"}, {"image_size": "1024x576"}),
        ({"image_size": {"width": 10, "height": 20}}, {"image_size": {"width": 10, "height": 20}}),
        ({"prompt": "x", "seed": None}, {"prompt": "x"}),
        ({"sync_mode": False, "enable_safety_checker": False}, {}),
        ({"image_urls": ["a"]}, {"image": ["a"]}),
        ({"nonsense": 1}, {"nonsense": 1}),
    ],
)
def test_fals_own_words_are_read(payload: dict[str, Any], given: dict[str, Any]) -> None:
    assert fal_given(FLUX, payload) == given


def test_several_images_are_those_of_a_blend() -> None:
    both = model("image-edit", "image-blend")
    assert fal_given(both, {"image_urls": ["a", "b"]}) == {"images": ["a", "b"]}
    assert fal_given(both, {"image_urls": ["a"]}) == {"image": ["a"]}


def test_a_declared_parameter_is_left_as_it_is() -> None:
    own = model("text-to-image", parameters={"image_size": Parameter(type="string", choices=("square_hd",))})
    assert fal_given(own, {"image_size": "square_hd"}) == {"image_size": "square_hd"}


@pytest.mark.parametrize("payload", [{"sync_mode": True}, {"enable_safety_checker": True}, {"task": "sing"}])
def test_what_cannot_be_done_is_refused_by_name(payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        fal_given(model("speech-to-text"), payload)
    assert refused.value.param == next(iter(payload))


def test_fields_are_named_as_they_were_written() -> None:
    assert written(FLUX, {"num_images": 99}, "n") == "num_images"
    assert written(FLUX, {"n": 99}, "n") == "n"
    assert written(FLUX, {"image_size": "x"}, "size") == "image_size"
    assert written(model("speech-to-text"), {"task": "translate"}, "translate") == "task"
    assert written(FLUX, {}, "prompt") == "prompt"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (DeadlineExceeded("late"), 504, "request_timeout"),
        (Conflict("stopped", code="cancelled"), 499, "client_cancelled"),
        (Conflict("in flight", code="idempotency_in_flight"), 409, "idempotency_in_flight"),
        (EngineFailed("broken"), 502, "runner_server_error"),
        (EngineFailed("lost", code="worker_lost"), 502, "runner_disconnected"),
        (EngineFailed("away", code="upstream_error"), 502, "upstream_error"),
        (FaregateError("fault"), 500, "internal_error"),
    ],
)
def test_errors_have_fals_types(error: FaregateError, status: int, kind: str) -> None:
    assert fal_status(error) == status
    assert fal_body(error) == {"detail": error.message, "error_type": kind}
    headers = dict(fal_headers(error))
    assert headers[b"x-fal-error-type"] == kind.encode()
    assert (b"x-fal-request-timeout-type" in headers) == (status == 504)


def test_misfits_are_lists_of_places() -> None:
    error = InvalidRequest("no", param="messages[0].role", code="unknown_field")
    assert fal_status(error) == 422
    assert fal_body(error) == {
        "detail": [{"loc": ["body", "messages", 0, "role"], "msg": "no", "type": "extra_forbidden"}]
    }
    blocked = EngineFailed("will not", code="blocked")
    assert (fal_status(blocked), fal_body(blocked)["detail"][0]["type"]) == (422, "content_policy_violation")


def view(**fields: Any) -> View:
    told: dict[str, Any] = {"id": "req_1", "status": "queued", "model": "m", "task": "text-to-image", "created_us": 1}
    return View(**(told | {"hold_nanos": 1, "price_version": 1} | fields))


def test_statuses_are_those_that_the_client_knows() -> None:
    waiting = status_of(view(position=3), "https://here/fal/a/b", logs=True)
    assert (waiting["status"], waiting["queue_position"]) == ("IN_QUEUE", 3)
    assert status_of(view(), "", logs=False)["queue_position"] == 0
    running = status_of(view(status="running", progress=0.25, attempt=1), "", logs=True)
    assert running["status"] == "IN_PROGRESS"
    assert running["logs"][-1]["message"] == "25% done."
    for outcome, reason, kind in (
        ("failed", "engine_error", "runner_server_error"),
        ("cancelled", "cancelled_by_caller", "client_cancelled"),
        ("expired", "deadline", "request_timeout"),
    ):
        ended = status_of(view(status=outcome, reason=reason, finished_us=2), "", logs=False)
        assert (ended["status"], ended["error_type"], ended["logs"]) == ("COMPLETED", kind, None)
        assert ended["error"]
    done = status_of(view(status="succeeded", reason="done", finished_us=2), "", logs=False)
    assert "error" not in done


HEARD = TranscriptOutput("hello", words=[Segment(0, 500, "hello")])
PNG = MediaOutput("image/png", 5, blob="o/a.png", width=2, height=3, seed=4)


@pytest.mark.parametrize(
    ("task", "output", "keys"),
    [
        ("text-to-image", PNG, {"images", "seed", "prompt"}),
        ("image-upscale", PNG, {"images", "image", "seed", "prompt"}),
        (
            "text-to-video",
            GalleryOutput([MediaOutput("video/mp4", 5, blob="o/a.mp4"), MediaOutput("image/png", 1, role="thumbnail")]),
            {"video", "prompt"},
        ),
        ("music", MediaOutput("audio/mpeg", 5, blob="o/a.mp3", duration_ms=1500), {"audio", "prompt"}),
        ("speech-to-text", HEARD, {"text", "chunks", "inferred_languages"}),
        ("rerank", RankingOutput([(1, 0.5)]), {"results"}),
    ],
)  # fmt: skip
def test_outputs_are_shown_as_fals_models_do(task: Task, output: Output, keys: set[str]) -> None:
    made = Made(id="req_1", task=task, output=output, phases=Phases(), usage={}, prompt="p")
    assert result_of(made, ADDRESSES).keys() == keys | {"timings"}


def test_billable_units_are_what_is_sold() -> None:
    assert [
        billable_units(units)
        for units in (Units(images=2), Units(video_ms=1500), Units(output_tokens=7), Units(audio_ms=250), Units())
    ] == ["2", "1.5", "7", "0.25", "0"]
