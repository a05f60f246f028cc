"""GMI Cloud's request queue: images, videos and sounds as jobs.

    POST /requests {model, payload}   the record of a job, at times complete already
    GET /requests/ID                  the same record later
    DELETE /requests/ID               not documented; sent to cancel, and its answer ignored
    POST /upload-url {file_type}      {upload_url, public_url}: PUT the file with exactly the type it was signed for

A record has `request_id`, `status`, `outcome` and an echo of the payload. Some models take a job and leave it queued
for ever, and there is no key for idempotency: a POST is never repeated here.
"""

from typing import Any, Literal

from gateway.contract.events import Output
from gateway.contract.inputs import MediaSource
from workers.engine import EngineError, RefusedInput
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.attached import attached
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, unreadable, words_of
from workers.engines.upstream.fields import wire
from workers.engines.upstream.media import media_type_of
from workers.engines.upstream.protocol import Call, Direct, Job, Jobs, Wire
from workers.engines.upstream.results import Found, address, copied, kind_of, place, seed_of, text_at
from workers.engines.upstream.verdicts import buying, limited, reason_in

FIELDS = {
    "prompt": "prompt",
    "negative_prompt": "negative_prompt",
    "input": "text",
    "text": "text",
    "voice": "voice_id",
    "speed": "speed",
    "language": "language_boost",
    "size": "size",
    "seconds": "duration as integer",
    "seed": "seed",
    "n": "n",
    "guidance": "guidance_scale",
    "quality": "quality",
    "style": "style",
    "strength": "strength",
    "scale": "scale",
    "output_format": "output_format",
    "response_format": "format",
    "image": "image",
    "images": "images",
    "mask": "mask",
    "video": "video",
    "audio": "audio",
    "sample": "source_audio",
}
"""The names that most models there share; a route's `fields` has those of one that differs."""

STATES: dict[str, Literal["waiting", "running", "succeeded", "failed", "cancelled"]] = {
    "created": "waiting",
    "queued": "waiting",
    "dispatched": "waiting",
    "processing": "running",
    "success": "succeeded",
    "succeeded": "succeeded",
    "completed": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
"""A status that is not among these is no end: the job counts as running."""

UPLOADS: dict[str, tuple[str, tuple[str, ...]]] = {
    "image/png": ("png", ("image/png",)),
    "image/jpeg": ("jpeg", ("image/jpeg",)),
    "audio/wav": ("wav", ("audio/wav",)),
    "audio/mpeg": ("mp3", ("audio/mpeg", "audio/mp3")),
    "video/mp4": ("mp4", ("video/mp4",)),
}
"""By media type: the `file_type`, and the types that the address may be signed for. Records differ about mp3's."""


class Gmi(Wire):
    """Speaks to the request queue."""

    def judge(self, answer: Answer) -> Exception | None:
        """Read errors, which are a text here: what is refused, what is missing, and what failed behind the queue."""
        if answer.status < 400 or answer.status in (401, 402, 403, 429):
            return None
        words = words_of(answer.body)
        reason = reason_in(words)
        detail = f"HTTP {answer.status}: {clean(words)}"
        if reason == "blocked":
            return blocked(words)
        if reason == "upstream_limited":
            return limited(detail)
        if answer.status == 500 and "Backend error (4" in words:
            text = "The provider behind the provider refused this input."
            return UpstreamFailed(text, reason="refused_by_engine", detail=detail)
        return None

    def way(self, call: Call) -> Direct | Jobs:
        """Take every task whose result is a file."""
        kind_of(call)
        return self

    async def prepare(self, call: Call) -> None:
        """Upload the files of the input."""
        payload = wire(call, FIELDS, media=await attached(call, _upload))
        call.kept = {"model": call.target.model, "payload": payload}

    async def submit(self, call: Call) -> Job:
        """Buy the job."""
        with buying():
            record = await call.link.json("POST", "/requests", json=call.kept)
        return _job(call, record)

    async def look(self, call: Call, job: Job) -> Job:
        """Look at the record."""
        return _job(call, await call.link.json("GET", f"/requests/{job.id}"), job.id)

    async def collect(self, call: Call, job: Job) -> Output:
        """Copy what the outcome names."""
        if call.kept is None:
            await self.look(call, job)
        return await copied(call, results(place(call.kept, "outcome")))

    async def cancel(self, call: Call, job: Job) -> None:
        """Ask for it: nobody has recorded whether that works."""
        try:
            await call.link.call("DELETE", f"/requests/{job.id}")
        except (EngineError, RefusedInput):
            return


def results(outcome: Any) -> list[Found]:
    """Read an outcome: never an address from elsewhere in a record, which echoes those of the payload."""
    seed = seed_of(place(outcome, "seed"))
    found = [
        Found(url=url, seed=seed)
        for name in ("media_urls", "media")
        for each in _list(place(outcome, name))
        if (url := address(each))
    ]
    if not found:
        found = [
            Found(url=url) for name in ("video_url", "image_url", "audio_url") if (url := address(place(outcome, name)))
        ]
    if not found and (sound := text_at(outcome, "audio_base64")):
        found = [Found(url=sound) if sound.startswith("data:") else Found(base64=sound)]
    if not found:
        parts = [
            part for each in _list(place(outcome, "candidates")) for part in _list(place(each, "content", "parts"))
        ]
        found = [Found(base64=data) for part in parts if (data := text_at(part, "inlineData", "data"))]
    if thumbnail := address(place(outcome, "thumbnail_image_url")):
        found.append(Found(url=thumbnail, role="thumbnail"))
    return found


def _job(call: Call, record: Any, known: str = "") -> Job:
    """Read a record, and keep its outcome at hand."""
    job_id = text_at(record, "request_id") or known
    if not job_id or len(job_id) > 128 or not job_id.replace("-", "").replace("_", "").isalnum():
        raise unreadable("a record without a usable request_id")
    if known and job_id != known:
        raise unreadable("the record of another job")
    call.kept = record
    state = STATES.get(text_at(record, "status").lower(), "running")
    words = ""
    if state in ("failed", "cancelled"):
        told = (place(record, "outcome", "error"), place(record, "error"), place(record, "outcome", "reason"),
                place(record, "reason"))  # fmt: skip
        words = " ".join(each for each in told if isinstance(each, str))
    return Job(id=job_id, state=state, error=clean(words), reason=reason_in(words))


async def _upload(call: Call, source: MediaSource) -> str:
    media_type = media_type_of(source)
    known = UPLOADS.get(media_type)
    if known is None:
        if media_type.startswith("image/"):
            return await call.parcels.data_uri(source)
        raise RefusedInput(f"This provider takes mp3, wav and mp4, and no {media_type}.")
    file_type, signed = known
    data = await call.parcels.content(source)
    slot = await call.link.json("POST", "/upload-url", json={"file_type": file_type})
    target, public = address(place(slot, "upload_url")), address(place(slot, "public_url"))
    if not target or not public:
        raise unreadable("no address to upload to")
    for last, content_type in enumerate(signed, 1):
        try:
            await call.parcels.put(target, data, content_type)
            break
        except UpstreamFailed:
            if last == len(signed):
                raise
    return public


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
