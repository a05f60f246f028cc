"""MiniMax's videos, which are tasks.

    POST /v1/video_generation              {task_id, base_resp}
    GET  /v1/query/video_generation        ?task_id=: {status, file_id}: Preparing, Queueing, Processing, Success, Fail
    GET  /v1/files/retrieve                ?file_id=: {file: {download_url}}

There is no call to cancel, and no name of ours that a task could be found by.
"""

from typing import Any, Literal

from gateway.contract.events import Output
from workers.engines.upstream.attached import as_data_uri, attached
from workers.engines.upstream.failures import clean, unreadable
from workers.engines.upstream.fields import wire
from workers.engines.upstream.link import Query
from workers.engines.upstream.protocol import Call, Job
from workers.engines.upstream.results import Found, address, copied, place, text_at
from workers.engines.upstream.verdicts import reason_in

FIELDS = {
    "prompt": "prompt",
    "image": "first_frame_image",
    "seconds": "duration as integer",
    "size": "resolution as tier",
}
STATES: dict[str, Literal["waiting", "running", "succeeded", "failed", "cancelled"]] = {
    "preparing": "waiting",
    "queueing": "waiting",
    "processing": "running",
    "success": "succeeded",
    "fail": "failed",
    "failed": "failed",
}


class Films:
    """Makes videos at MiniMax."""

    async def prepare(self, call: Call) -> None:
        """Read the image of the input, which goes as a data URI."""
        body = wire(call, FIELDS, media=await attached(call, as_data_uri))
        body["model"] = call.target.model
        if isinstance(resolution := body.get("resolution"), str):
            body["resolution"] = resolution.upper()
        call.kept = body

    async def submit(self, call: Call) -> Job:
        """Buy the task."""
        told = await call.link.json("POST", "/v1/video_generation", json=call.kept, query=_group(call))
        task = _id(place(told, "task_id"))
        if not task:
            raise unreadable("an answer without a usable task_id")
        return Job(id=task, state="waiting")

    async def look(self, call: Call, job: Job) -> Job:
        """Look at the task."""
        query = {"task_id": job.id, **_group(call)}
        told = await call.link.json("GET", "/v1/query/video_generation", query=query)
        state = STATES.get(text_at(told, "status").lower(), "running")
        words = " ".join(filter(None, (text_at(told, "error_message"), text_at(told, "base_resp", "status_msg"))))
        if state != "failed":
            return Job(id=job.id, state=state, found={"file": _id(place(told, "file_id"))})
        return Job(id=job.id, state=state, error=clean(words), reason=reason_in(words))

    async def collect(self, call: Call, job: Job) -> Output:
        """Ask where the file lies, and copy it."""
        file = job.found.get("file")
        if not file:
            raise unreadable("a finished task without a file_id")
        told = await call.link.json("GET", "/v1/files/retrieve", query={"file_id": file, **_group(call)})
        url = address(place(told, "file", "download_url"))
        return await copied(call, [Found(url=url)] if url else [])

    async def cancel(self, call: Call, job: Job) -> None:
        """Do nothing: there is no such call."""


def _group(call: Call) -> Query:
    group = call.link.key.rpartition(":")[0]
    return {"GroupId": group} if group else {}


def _id(value: Any) -> str:
    """Read an id, which is a number at times."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return text if len(text) <= 128 and text.replace("-", "").replace("_", "").isalnum() else ""
