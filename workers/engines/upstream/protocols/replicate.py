"""Replicate: any model as a prediction, its input and output as the model's own JSON.

    POST /predictions {version, input}, /models/OWNER/NAME/predictions or /deployments/OWNER/NAME/predictions {input}
    GET  /predictions/ID             {id, status, output, error, metrics, urls: {get, cancel, stream}}
    POST /predictions/ID/cancel
    POST /files                      a form with `content`: {urls: {get}}, which may stand in an input for a day

Status is starting, processing, succeeded, failed, canceled or aborted. `Prefer: wait=n` holds the answer of a POST
until the prediction has ended, for n seconds at most; `Cancel-After` ends one that nobody waits for any more. A model
is named `owner/name`, `owner/name:version` or `deployments/owner/name`. `metrics.predict_time` is time and no money.
"""

import base64
from typing import Any, Literal

from gateway.contract.events import Output
from gateway.contract.inputs import ChatInput, CompletionInput, MediaSource
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.attached import attached
from workers.engines.upstream.failures import blocked, clean, unreadable, words_of
from workers.engines.upstream.fields import wire
from workers.engines.upstream.link import FormFile
from workers.engines.upstream.media import media_type_of
from workers.engines.upstream.protocol import Call, Direct, Job, Jobs, Wire
from workers.engines.upstream.protocols.replicate_calls import cancel, cancel_after, create, prediction_id
from workers.engines.upstream.protocols.replicate_text import Texts
from workers.engines.upstream.results import Found, address, copied, kind_of, place, text_at
from workers.engines.upstream.transcripts import transcript_of
from workers.engines.upstream.verdicts import reason_in

FIELDS = {
    "prompt": "prompt",
    "negative_prompt": "negative_prompt",
    "n": "num_outputs",
    "size": "width as width, height as height",
    "steps": "num_inference_steps",
    "guidance": "guidance_scale",
    "seed": "seed",
    "strength": "prompt_strength",
    "scale": "scale",
    "output_format": "output_format",
    "quality": "quality",
    "seconds": "duration as integer",
    "fps": "fps",
    "frames": "num_frames",
    "input": "text",
    "text": "text",
    "voice": "voice_id",
    "speed": "speed",
    "language": "language",
    "temperature": "temperature",
    "sample_text": "reference_text",
    "image": "image",
    "images": "image_input",
    "mask": "mask",
    "video": "video",
    "audio": "audio",
    "sample": "speaker",
    "file": "audio",
}
"""The names that most models there share; a route's `fields` has those of one that differs."""

STATES: dict[str, Literal["waiting", "running", "succeeded", "failed", "cancelled"]] = {
    "starting": "waiting",
    "processing": "running",
    "succeeded": "succeeded",
    "successful": "succeeded",
    "failed": "failed",
    "canceled": "cancelled",
    "cancelled": "cancelled",
    "aborted": "cancelled",
}
SINGLES = ("video", "audio", "image", "output", "url", "file", "audio_out", "wav", "mp3", "mesh")
WAIT_S = 5
"""How long a POST for a picture or a sound is held: most are made by then, and need no further look."""
MOST_DATA_URI_BYTES = 256 * 1024
"""Larger files are uploaded first: Replicate wants data URIs below that."""


class Replicate(Wire):
    """Speaks to Replicate."""

    def __init__(self) -> None:
        self._texts = Texts()

    def judge(self, answer: Answer) -> Exception | None:
        """Read what is refused for its content; the usual reading does for the rest."""
        if answer.status in (400, 422) and reason_in(words := words_of(answer.body)) == "blocked":
            return blocked(words)
        return None

    def way(self, call: Call) -> Direct | Jobs:
        """Take texts as they come, and all else as jobs."""
        if isinstance(call.run.input, ChatInput | CompletionInput):
            return self._texts
        if call.run.request.task != "speech-to-text":
            kind_of(call)
        return self

    async def prepare(self, call: Call) -> None:
        """Upload the files of the input that are not small."""
        call.kept = wire(call, FIELDS, media=await attached(call, _file))

    async def submit(self, call: Call) -> Job:
        """Buy the prediction; what is made within seconds comes with the answer."""
        headers = cancel_after(call)
        if call.run.request.task == "speech-to-text" or kind_of(call) != "video":
            headers["prefer"] = f"wait={WAIT_S}"
        return _job(call, await create(call, call.kept, headers))

    async def look(self, call: Call, job: Job) -> Job:
        """Look at the prediction."""
        return _job(call, await call.link.json("GET", f"/predictions/{job.id}"), job.id)

    async def collect(self, call: Call, job: Job) -> Output:
        """Copy what the output names."""
        if call.kept is None:
            await self.look(call, job)
        output = place(call.kept, "output")
        if call.run.request.task == "speech-to-text":
            return transcript_of(call, output)
        return await copied(call, results(output))

    async def cancel(self, call: Call, job: Job) -> None:
        """Cancel it."""
        await cancel(call, job.id)


def results(output: Any) -> list[Found]:
    """Read an output: an address, a list of them, or an object that names one; never one from elsewhere in it."""
    if isinstance(output, list):
        return [Found(url=url) for each in output if (url := address(each))]
    if url := address(output):
        return [Found(url=url)]
    listed = place(output, "images")
    if isinstance(listed, list):
        return [Found(url=url) for each in listed if (url := address(each))]
    for name in SINGLES:
        if url := address(place(output, name)):
            return [Found(url=url)]
    return []


def _job(call: Call, told: Any, known: str = "") -> Job:
    found = prediction_id(told)
    if known and found != known:
        raise unreadable("the state of another prediction")
    call.kept = told
    state = STATES.get(text_at(told, "status"), "running")
    words = text_at(told, "error") if state in ("failed", "cancelled") else ""
    return Job(id=found, state=state, error=clean(words), reason=reason_in(words))


async def _file(call: Call, source: MediaSource) -> str:
    """Give a file as a data URI where it is small, else as the address of an upload."""
    data, media_type = await call.parcels.content(source), media_type_of(source)
    if len(data) <= MOST_DATA_URI_BYTES:
        return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
    name = "file." + media_type.partition("/")[2]
    answer = await call.link.form("/files", fields={}, files=[FormFile("content", name, data, media_type)])
    url = address(place(answer.object(), "urls", "get"))
    if not url:
        raise unreadable("no address of an uploaded file")
    return url
