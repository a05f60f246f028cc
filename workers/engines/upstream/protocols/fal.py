"""fal's queue: any model as a job, its input and output as the model's own JSON.

    POST /OWNER/APP[/PATH]                    {request_id, status_url, response_url, cancel_url, queue_position}
    GET  /OWNER/APP/requests/ID/status        202 IN_QUEUE or IN_PROGRESS, 200 COMPLETED, maybe with error, error_type
    GET  /OWNER/APP/requests/ID               the output; of a job that failed its error, with that error's status
    PUT  /OWNER/APP/requests/ID/cancel        202, or 400 where it has ended

There is no state for a job that failed: it is COMPLETED, and its output an error. `x-fal-billable-units` are units of
the model and no money. The key goes as `Key ...`. Addresses of a job drop the path behind the app.
"""

from typing import Any

from gateway.contract.events import Output
from workers.engine import EngineError, RefusedInput
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.attached import as_data_uri, attached
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, unreadable, words_of
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call, Direct, Job, Jobs, Wire
from workers.engines.upstream.results import Found, address, copied, kind_of, place, seed_of, text_at
from workers.engines.upstream.transcripts import transcript_of
from workers.engines.upstream.verdicts import buying, limited, reason_in

FIELDS = {
    "prompt": "prompt",
    "negative_prompt": "negative_prompt",
    "n": "num_images",
    "size": "image_size.width as width, image_size.height as height",
    "steps": "num_inference_steps",
    "guidance": "guidance_scale",
    "seed": "seed",
    "strength": "strength",
    "scale": "upscale_factor",
    "output_format": "output_format",
    "seconds": "duration as text",
    "fps": "fps",
    "frames": "num_frames",
    "input": "text",
    "text": "text",
    "voice": "voice",
    "speed": "speed",
    "language": "language",
    "sample_text": "reference_text",
    "temperature": "temperature",
    "image": "image_url",
    "images": "image_urls",
    "mask": "mask_url",
    "video": "video_url",
    "audio": "audio_url",
    "sample": "reference_audio_url",
    "file": "audio_url",
}
"""The names that most models there share; a route's `fields` has those of one that differs."""

SINGLES = ("video", "image", "audio", "audio_file", "audio_url", "video_url", "image_url", "output", "file")
NAMESPACES = ("workflows", "comfy")
"""What may stand before OWNER/APP in the name of a model."""
LIMITED = ("concurrent_requests_limit", "rate_limit")


class Fal(Wire):
    """Speaks to the queue."""

    def authorize(self, key: str) -> dict[str, str]:
        """Give the key in fal's own scheme."""
        return {"authorization": f"Key {key}"}

    def judge(self, answer: Answer) -> Exception | None:
        """Read the list of typed errors, and the type in the header."""
        if answer.status < 400 or answer.status == 429:
            return None
        words = f"{answer.headers.get('x-fal-error-type', '')} {words_of(answer.body)}".strip()
        reason = reason_in(words)
        detail = f"HTTP {answer.status}: {clean(words)}"
        if reason == "blocked":
            return blocked(words)
        if reason == "upstream_limited" or any(each in words for each in LIMITED):
            return limited(detail)
        return None

    def way(self, call: Call) -> Direct | Jobs:
        """Take every task whose result is a file, and transcripts."""
        if call.run.request.task != "speech-to-text":
            kind_of(call)
        return self

    async def prepare(self, call: Call) -> None:
        """Read the files of the input, which go as data URIs."""
        call.kept = wire(call, FIELDS, media=await attached(call, as_data_uri))

    async def submit(self, call: Call) -> Job:
        """Buy the job."""
        body, call.kept = call.kept, None
        with buying():
            told = await call.link.json("POST", f"/{call.target.model}", json=body)
        job_id = text_at(told, "request_id")
        if not job_id or len(job_id) > 128 or not job_id.replace("-", "").replace("_", "").isalnum():
            raise unreadable("an answer without a usable request_id")
        return Job(id=job_id, state="waiting")

    async def look(self, call: Call, job: Job) -> Job:
        """Look at the status; of a completed job the output too, since only that tells whether it failed."""
        told = await call.link.json("GET", f"{_app(call)}/requests/{job.id}/status")
        status = text_at(told, "status")
        if status != "COMPLETED":
            return Job(id=job.id, state="waiting" if status == "IN_QUEUE" else "running")
        if error := text_at(told, "error"):
            words = f"{text_at(told, 'error_type')} {error}"
            return Job(id=job.id, state="failed", error=clean(error), reason=reason_in(words))
        try:
            call.kept = await call.link.json("GET", f"{_app(call)}/requests/{job.id}")
        except RefusedInput as error:
            return Job(id=job.id, state="failed", error=str(error), reason="refused_by_engine")
        except UpstreamFailed as error:
            if error.reason == "blocked":
                return Job(id=job.id, state="failed", error=str(error), reason="blocked")
            if not error.detail.startswith(("HTTP 500", "HTTP 504")):
                raise
            return Job(id=job.id, state="failed", error=error.detail, reason=error.reason)
        return Job(id=job.id, state="succeeded")

    async def collect(self, call: Call, job: Job) -> Output:
        """Copy the files of the output."""
        if call.kept is None:
            await self.look(call, job)
        output = call.kept
        if call.run.request.task == "speech-to-text":
            return transcript_of(call, output)
        flags = place(output, "has_nsfw_concepts")
        if isinstance(flags, list) and flags and all(flag is True for flag in flags):
            raise blocked("every image was flagged (nsfw)")
        return await copied(call, results(output))

    async def cancel(self, call: Call, job: Job) -> None:
        """Cancel what has not ended."""
        try:
            await call.link.call("PUT", f"{_app(call)}/requests/{job.id}/cancel")
        except (EngineError, RefusedInput):
            return


def _app(call: Call) -> str:
    """Give the path of the app alone: `/OWNER/APP`, with its namespace."""
    parts = call.target.model.strip("/").split("/")
    return "/" + "/".join(parts[: 3 if parts[0] in NAMESPACES else 2])


def results(output: Any) -> list[Found]:
    """Read an output: `images`, else the one file it names; never an address from elsewhere in it."""
    seed = seed_of(place(output, "seed"))
    listed = place(output, "images") or place(output, "videos") or []
    found = [Found(url=url, seed=seed) for each in listed if (url := address(each))] if isinstance(listed, list) else []
    for name in SINGLES:
        if not found and (url := address(place(output, name))):
            found = [Found(url=url, seed=seed)]
    if thumbnail := address(place(output, "thumbnail")):
        found.append(Found(url=thumbnail, role="thumbnail"))
    return found
