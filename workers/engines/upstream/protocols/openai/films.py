"""Videos, which are jobs."""

from typing import Any
from urllib.parse import quote

import msgspec

from gateway.contract.events import GalleryOutput, Output
from gateway.contract.inputs import ImageToVideoInput
from gateway.contract.states import Reason
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.failures import clean, is_blocked, unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call, Job
from workers.engines.upstream.protocols.openai.pictures import form_fields, form_file
from workers.engines.upstream.protocols.openai.usage import cost_in

FIELDS = {
    "prompt": "prompt",
    "size": "size",
    "seconds": "seconds as text",
    "negative_prompt": "negative_prompt",
    "seed": "seed",
    "fps": "fps",
}
MOST_BYTES = 200 * 1024 * 1024
POLL_HEADER = "openai-poll-after-ms"
STATES = {
    "queued": "waiting",
    "pending": "waiting",
    "in_progress": "running",
    "processing": "running",
    "completed": "succeeded",
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}


class _Error(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Video(msgspec.Struct):
    id: str
    status: str
    progress: float | None = None
    error: _Error | None = None


class Filming:
    """Videos from words, and from an image and words."""

    async def submit(self, call: Call) -> Job:
        """Buy a video."""
        given = call.run.input
        body = {"model": call.target.model} | wire(call, FIELDS)
        if isinstance(given, ImageToVideoInput):
            files = [await form_file(call, "input_reference", given.image)]
            answer = await call.link.form("/videos", fields=form_fields(body), files=files)
        else:
            answer = await call.link.call("POST", "/videos", json=body)
        call.cost_nanos = cost_in(answer.headers)
        return _job(answer)

    async def look(self, call: Call, job: Job) -> Job:
        """Look how it stands."""
        return _job(await call.link.call("GET", _path(job)))

    async def collect(self, call: Call, job: Job) -> Output:
        """Copy the video."""
        answer = await call.link.call("GET", f"{_path(job)}/content", limit_bytes=MOST_BYTES)
        return GalleryOutput([await call.parcels.take(answer.body, kind="video")])

    async def cancel(self, call: Call, job: Job) -> None:
        """Delete it, which is all that the API has."""
        await call.link.send("DELETE", _path(job))


def _path(job: Job) -> str:
    return f"/videos/{quote(job.id, safe='')}"


def _job(answer: Answer) -> Job:
    try:
        read = msgspec.json.decode(answer.body, type=_Video)
    except (msgspec.DecodeError, RecursionError):
        raise unreadable("an answer that is no video") from None
    state: Any = STATES.get(read.status)
    if state is None or not read.id:
        raise unreadable(f"a video with the status {clean(read.status)}")
    words = f"{read.error.code or ''} {read.error.message or ''}" if read.error else ""
    reason: Reason = "blocked" if is_blocked(words) else "upstream_error"
    return Job(
        id=read.id,
        state=state,
        fraction=read.progress / 100 if read.progress is not None else None,
        look_after_s=_look_after(answer),
        error=clean(words),
        reason=reason,
    )


def _look_after(answer: Answer) -> float | None:
    try:
        return float(answer.headers[POLL_HEADER]) / 1000
    except (KeyError, ValueError):
        return None
