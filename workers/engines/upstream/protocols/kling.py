"""Kling's own API: videos, talking heads and images as tasks.

    POST /v1/videos/text2video, /v1/videos/image2video, /v1/videos/avatar/image2video, /v1/images/generations
    GET  the same path and /ID, where ID is theirs or the `external_task_id` that we gave

Every answer is `{code, message, request_id, data}`, `code` 0 where all is well, at times inside a status 200. `data`
has `task_id`, `task_status` (submitted, processing, succeed, failed), `task_status_msg` and `task_result`. The key is
"ACCESS:SECRET": each call carries a JSON Web Token (RFC 7519, HS256) of its own that is valid for minutes. Images and
sounds go as plain Base64, without what a data URI has before it. There is no call to cancel.
"""

import base64
import hashlib
import hmac
import time
from typing import Any, Literal

import msgspec

from gateway.contract.events import Output
from gateway.contract.inputs import ImageEditInput, ImageInput, ImageToVideoInput, Input, TalkingHeadInput, VideoInput
from workers.engine import EngineError, RefusedInput
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.attached import as_base64, attached
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, refused, retry_after, unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call, Direct, Job, Jobs, Wire
from workers.engines.upstream.results import Found, address, copied, place, text_at
from workers.engines.upstream.verdicts import buying, limited, reason_in

FIELDS = {
    "prompt": "prompt",
    "negative_prompt": "negative_prompt",
    "seconds": "duration as text",
    "size": "aspect_ratio as ratio",
    "guidance": "cfg_scale",
    "n": "n",
    "image": "image",
    "audio": "sound_file",
}
"""The names of all its models; a route's `fields` has others."""

PATHS: dict[type[Input], str] = {
    VideoInput: "/v1/videos/text2video",
    ImageToVideoInput: "/v1/videos/image2video",
    TalkingHeadInput: "/v1/videos/avatar/image2video",
    ImageInput: "/v1/images/generations",
    ImageEditInput: "/v1/images/generations",
}

STATES: dict[str, Literal["waiting", "running", "succeeded", "failed", "cancelled"]] = {
    "submitted": "waiting",
    "processing": "running",
    "succeed": "succeeded",
    "succeeded": "succeeded",
    "failed": "failed",
}

VALID_S = 600
"""How long a token is valid; the most is 1,800 s."""
EARLY_S = 5
"""For clocks that differ."""

LIMITED = frozenset((1100, 1101, 1102, 1302, 1303))
"""In arrears, used up, too fast, too many at once. From its table of codes, as are those below."""
BLOCKED = frozenset((1300, 1301))
REFUSED = frozenset((1200, 1201, 1202))
MISSING = 1203


class Envelope(msgspec.Struct):
    """What every answer has."""

    code: int = 0
    message: str = ""


_ENVELOPE = msgspec.json.Decoder(Envelope)


class Kling(Wire):
    """Speaks to Kling."""

    def authorize(self, key: str) -> dict[str, str]:
        """Sign a token."""
        return {"authorization": f"Bearer {token(key, int(time.time()))}"}

    def judge(self, answer: Answer) -> Exception | None:
        """Read the code, which says more than the status."""
        try:
            told = _ENVELOPE.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if told.code == 0:
            return None
        detail = f"HTTP {answer.status}, code {told.code}: {clean(told.message)}"
        if told.code in LIMITED:
            return limited(detail, retry_after(answer.headers))
        if told.code in BLOCKED:
            return blocked(told.message)
        if told.code in REFUSED or told.code == MISSING:
            return refused(told.message, detail=detail)
        if told.code < 1100:
            text = "The provider does not accept this system's key."
            return UpstreamFailed(text, detail=f"{detail} (ACCESS:SECRET?)", wide=True)
        return UpstreamFailed("The provider failed.", detail=detail, sent=answer.status >= 500)

    def way(self, call: Call) -> Direct | Jobs:
        """Take the tasks that have a path."""
        _path(call)
        return self

    async def prepare(self, call: Call) -> None:
        """Read the files of the input, which go as Base64."""
        given = call.run.input
        if isinstance(given, TalkingHeadInput) and given.audio is None:
            raise RefusedInput("This provider lets a face say a sound: give `audio`, and no `text`.")
        call.kept = wire(call, FIELDS, media=await attached(call, as_base64))
        call.kept["model_name"] = call.target.model

    async def submit(self, call: Call) -> Job:
        """Buy the task, under our name for it."""
        body = {**call.kept, "external_task_id": call.reference}
        with buying(f"code {MISSING}"):
            return _job(call, await call.link.json("POST", _path(call), json=body))

    async def look(self, call: Call, job: Job) -> Job:
        """Look at the task."""
        return _job(call, await call.link.json("GET", f"{_path(call)}/{job.id}"), job.id)

    async def find(self, call: Call) -> Job | None:
        """Find the task that was bought under our name for it."""
        try:
            told = await call.link.json("GET", f"{_path(call)}/{call.reference}")
        except RefusedInput:
            return None
        if text_at(told, "data", "task_info", "external_task_id") != call.reference:
            return None
        return _job(call, told)

    async def collect(self, call: Call, job: Job) -> Output:
        """Copy what the task's result names."""
        if call.kept is None:
            await self.look(call, job)
        return await copied(call, results(place(call.kept, "data", "task_result")))

    async def cancel(self, call: Call, job: Job) -> None:
        """Do nothing: there is no such call."""


def token(key: str, now_s: int) -> str:
    """Make a JSON Web Token of "ACCESS:SECRET". Raises EngineError for a key that is not of that form."""
    access, separator, secret = key.partition(":")
    if not (access and separator and secret):
        raise UpstreamFailed("The provider's key is not set up.", detail="the key must be ACCESS:SECRET", wide=True)
    head = {"alg": "HS256", "typ": "JWT"}
    claims = {"iss": access, "exp": now_s + VALID_S, "nbf": now_s - EARLY_S}
    signed = f"{_base64url(msgspec.json.encode(head))}.{_base64url(msgspec.json.encode(claims))}"
    signature = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{_base64url(signature)}"


def results(result: Any) -> list[Found]:
    """Read a task's result: videos, or images in the order of their index."""
    listed = place(result, "videos") or place(result, "images") or []
    return [Found(url=url) for each in listed if (url := address(each))] if isinstance(listed, list) else []


def _path(call: Call) -> str:
    path = PATHS.get(type(call.run.input))
    if path is None:
        raise EngineError(f"The upstream {call.upstream.name} does not do {call.run.request.task}.")
    return path


def _job(call: Call, told: Any, known: str = "") -> Job:
    data = place(told, "data")
    job_id = text_at(data, "task_id")
    if not job_id or len(job_id) > 128 or not job_id.replace("-", "").replace("_", "").isalnum():
        raise unreadable("an answer without a usable task_id")
    if known and job_id != known:
        raise unreadable("the state of another task")
    call.kept = told
    state = STATES.get(text_at(data, "task_status"), "running")
    words = text_at(data, "task_status_msg") if state == "failed" else ""
    return Job(id=job_id, state=state, error=clean(words), reason=reason_in(words))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
