"""How the fal family shows requests and their outputs. Shapes: fal's queue API and the schemas of its models."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.contract.events import (
    GalleryOutput,
    MediaOutput,
    Output,
    RankingOutput,
    TextOutput,
    TranscriptOutput,
    VectorOutput,
    media_of,
)
from gateway.contract.phases import Phases
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.errors import FaregateError
from gateway.flow.respond import Answer, failure
from gateway.flow.view import View
from gateway.http.fal.errors import fal_body, fal_type
from gateway.media.addresses import Addresses
from gateway.money import usd_text

PROMPT_NOTE = "prompt"
"""The note that keeps the words of a request, which fal's answers repeat."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A finished request, read again or waited for."""

    id: str
    task: Task
    output: Output | None
    phases: Phases
    usage: dict[str, Any]
    prompt: str = ""


def made_of_view(view: View) -> Made:
    """Take what is shown of a request that was read again."""
    return Made(
        id=view.id,
        task=view.task,
        output=view.output,
        phases=view.phases,
        usage=_usage(view),
        prompt=view.notes.get(PROMPT_NOTE, ""),
    )


def made_of_answer(answer: Answer, task: Task, prompt: str) -> Made:
    """Take what is shown of a request that was waited for."""
    return Made(
        id=answer.id,
        task=task,
        output=answer.output,
        phases=answer.phases,
        usage=_usage(answer),
        prompt=prompt,
    )


def _usage(ended: Answer | View) -> dict[str, Any]:
    units = ended.units
    return {
        "prompt_tokens": units.input_tokens,
        "completion_tokens": units.output_tokens,
        "total_tokens": units.input_tokens + units.output_tokens,
        "cost": msgspec.Raw(usd_text(ended.charge_nanos).encode()),
        "charge_nanos": ended.charge_nanos,
    }


def result_of(made: Made, addresses: Addresses) -> dict[str, Any]:
    """Show the output of a request as the models of fal do."""
    if made.output is None:
        return {}
    return _RESULTS[type(made.output)](made, addresses) | {"timings": {"inference": _inference_s(made.phases)}}


def _inference_s(phases: Phases) -> float:
    return phases.forward_us / 1e6


def _media(made: Made, addresses: Addresses) -> dict[str, Any]:
    items = [item for item in media_of(made.output) if not item.role]
    kind = items[0].media_type.partition("/")[0] if items else "image"
    files = [_file(made.id, at, item, addresses) for at, item in enumerate(items)]
    shown: dict[str, Any] = {"images": files} if kind == "image" else {kind: files[0]}
    if made.task == "image-upscale" and files:
        shown["image"] = files[0]
    seed = next((item.seed for item in items if item.seed is not None), None)
    if seed is not None:
        shown["seed"] = seed
    return shown | ({"prompt": made.prompt} if made.prompt else {})


def _file(request_id: str, at: int, item: MediaOutput, addresses: Addresses) -> dict[str, Any]:
    suffix = item.blob.rpartition(".")[2] if "." in item.blob else item.media_type.rpartition("/")[2]
    told: dict[str, Any] = {
        "url": addresses.of_output(item),
        "content_type": item.media_type,
        "file_name": f"{request_id}-{at}.{suffix}",
        "file_size": item.size_bytes,
    }
    if item.width:
        told |= {"width": item.width, "height": item.height}
    return told | ({"duration": item.duration_ms / 1000} if item.duration_ms else {})


def _text(made: Made, _: Addresses) -> dict[str, Any]:
    assert isinstance(made.output, TextOutput)
    choices = made.output.choices
    shown: dict[str, Any] = {"output": choices[0].text if choices else "", "partial": False, "error": None}
    shown["reasoning"] = choices[0].reasoning if choices else None
    if len(choices) > 1:
        shown["outputs"] = [choice.text for choice in choices]
    if any(choice.tool_calls for choice in choices):
        shown["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for choice in choices
            for call in choice.tool_calls or []
        ]
    return shown | {"usage": made.usage}


def _transcript(made: Made, _: Addresses) -> dict[str, Any]:
    said = made.output
    assert isinstance(said, TranscriptOutput)
    pieces = said.words or said.segments
    chunks = [{"timestamp": [piece.start_ms / 1000, piece.end_ms / 1000], "text": piece.text} for piece in pieces]
    return {"text": said.text, "chunks": chunks, "inferred_languages": [said.language] if said.language else []}


def _vectors(made: Made, _: Addresses) -> dict[str, Any]:
    output = made.output
    assert isinstance(output, VectorOutput)
    return {"embeddings": [list(struct.unpack(f"<{output.dimensions}f", vector)) for vector in output.vectors]}


def _ranking(made: Made, _: Addresses) -> dict[str, Any]:
    assert isinstance(made.output, RankingOutput)
    return {"results": [{"index": index, "relevance_score": relevance} for index, relevance in made.output.results]}


_RESULTS: dict[type[Output], Callable[[Made, Addresses], dict[str, Any]]] = {
    MediaOutput: _media,
    GalleryOutput: _media,
    TextOutput: _text,
    TranscriptOutput: _transcript,
    VectorOutput: _vectors,
    RankingOutput: _ranking,
}


def failure_of(view: View) -> FaregateError | None:
    """Give the error that a finished request ended with; None for one that is open or succeeded."""
    if view.finished_us is None or view.status == "succeeded" or view.reason is None:
        return None
    return failure(view.id, view.reason, view.detail)


def links(base: str, request_id: str) -> dict[str, str]:
    """Give the addresses of a request below the address of its app."""
    response = f"{base}/requests/{request_id}"
    return {
        "request_id": request_id,
        "response_url": response,
        "status_url": f"{response}/status",
        "cancel_url": f"{response}/cancel",
    }


def status_of(view: View, base: str, *, logs: bool) -> dict[str, Any]:
    """Show how a request stands; fal knows of no failed state, only of a completed one with an error."""
    shown: dict[str, Any] = {"status": "IN_QUEUE"} | links(base, view.id)
    if view.finished_us is not None:
        shown |= {
            "status": "COMPLETED",
            "logs": _logs(view) if logs else None,
            "metrics": {"inference_time": _inference_s(view.phases)},
        }
        error = failure_of(view)
        return shown if error is None else shown | {"error": _said(error), "error_type": fal_type(error)}
    if view.status == "running":
        return shown | {"status": "IN_PROGRESS", "logs": _logs(view) if logs else None}
    return shown | {"queue_position": view.position or 0}


def _said(error: FaregateError) -> str:
    detail = fal_body(error)["detail"]
    return detail if isinstance(detail, str) else error.message


def _logs(view: View) -> list[dict[str, Any]]:
    """Tell what is known of a request as lines of a log: engines keep none of their callers' work."""
    lines = [_line(view.created_us, f"The request was accepted for {view.model}.")]
    if view.finished_us is None:
        now_us = int(datetime.now(UTC).timestamp() * 1e6)
        lines.append(_line(now_us, f"Attempt {view.attempt} is running."))
        if view.progress is not None:
            lines.append(_line(now_us, f"{view.progress:.0%} done."))
        return lines
    for rated in view.steps:
        step = rated.step
        lines.append(_line(view.finished_us, f"Attempt {step.attempt} by {step.name or step.model}: {step.outcome}."))
    error = failure_of(view)
    said = "The request succeeded." if error is None else error.message
    return [*lines, _line(view.finished_us, said, "INFO" if error is None else "ERROR")]


def _line(unix_us: int, message: str, level: str = "INFO") -> dict[str, Any]:
    at = datetime.fromtimestamp(unix_us / 1e6, UTC).isoformat().replace("+00:00", "Z")
    return {"timestamp": at, "level": level, "source": "faregate", "message": message}


def billable_units(units: Units) -> str:
    """Give what was produced in the unit in which it is mostly sold: images, seconds, tokens or characters."""
    for count, per in (
        (units.images, 1),
        (units.video_ms, 1000),
        (units.output_tokens, 1),
        (units.characters, 1),
        (units.audio_ms, 1000),
    ):
        if count:
            return f"{count / per:g}"
    return "0"
