"""A stand-in for Replicate: predictions, held answers, streams of text at a host of their own, and uploads."""

import itertools
import json
import secrets
from typing import Any

import msgspec

from tests.upstreams.serving import Asked, Reply, StandIn, said

PATH = "/v1"
PIECES = ["Once", " upon", " a", " time\n", "there was"]


class Plan(msgspec.Struct, kw_only=True):
    """How the predictions of a model go."""

    looks: int = 1
    status: str = "succeeded"
    output: Any = None
    error: str = ""
    metrics: dict[str, Any] | None = None
    stream: list[bytes] | None = None
    """What the stream sends, in place of the usual events."""
    streams: bool = True
    stuck: bool = False


def events(*pieces: str, end: str = "done") -> list[bytes]:
    """Write a stream of text."""
    lines = []
    for number, piece in enumerate(pieces):
        data = "".join(f"data: {line}\n" for line in piece.split("\n"))
        lines.append(f"event: output\nid: 17:{number}\n{data}\n".encode())
    return [*lines, f"event: {end}\ndata: {{}}\n\n".encode()]


class Replicate(StandIn):
    """The API, and beside it the streams, which take no key."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, Plan] = {}
        self.predictions: dict[str, dict[str, Any]] = {}
        self.left: dict[str, int] = {}
        self.uploads: dict[str, bytes] = {}
        self._numbers = itertools.count()

    def open(self, asked: Asked) -> bool:
        """Serve streams to whoever has their address."""
        return asked.path.startswith("/streams/")

    def unauthorized(self) -> Reply:
        """Refuse a wrong key."""
        return problem(401, "Unauthenticated", "You did not pass a valid authentication token")

    def output(self, model: str, given: dict[str, Any]) -> Any:
        """Give what a model makes."""
        if "llama" in model:
            return PIECES
        if "whisper" in model:
            segments = [{"start": 0.0, "end": 1.5, "text": " Hello"}, {"start": 1.5, "end": 2.0, "text": " there"}]
            return {"transcription": " Hello there", "segments": segments, "detected_language": "english"}
        if "video" in model:
            return self.file("film.mp4")
        if "tts" in model or "music" in model:
            return self.file("sound.mp3")
        return [self.file("picture.png")] * given.get("num_outputs", 1)

    async def answer(self, asked: Asked) -> Reply:
        """Serve the calls."""
        if asked.path.startswith("/streams/"):
            plan = self.plans.get(self.predictions[asked.path.rpartition("/")[2]]["model"], Plan())
            return Reply(200, plan.stream if plan.stream is not None else events(*PIECES), "text/event-stream")
        path = asked.path.removeprefix(PATH)
        if path == "/files" and asked.method == "POST":
            return self._file(asked)
        if path.endswith("/predictions") and asked.method == "POST":
            return self._create(path, asked)
        found = self.predictions.get(path.removeprefix("/predictions/").removesuffix("/cancel"))
        if found is None:
            return said({"detail": "The requested resource could not be found.", "status": 404}, 404)
        if path.endswith("/cancel"):
            found["status"] = "canceled"
            return said(found)
        return said(self._look(found))

    def _create(self, path: str, asked: Asked) -> Reply:
        body = asked.json()
        model = path.removeprefix("/models/").removesuffix("/predictions").strip("/") or body["version"]
        if "no-such" in model:
            return said({"detail": "The requested resource could not be found.", "status": 404}, 404)
        plan = self.plans.get(model, Plan())
        found = secrets.token_hex(13)
        get = f"{self.url}{PATH}/predictions/{found}"
        urls = {"get": get, "cancel": f"{get}/cancel", "web": f"https://replicate.com/p/{found}"}
        if plan.streams and "llama" in model:
            urls["stream"] = f"{self.url}/streams/{found}"
        self.predictions[found] = {"id": found, "model": model, "version": body.get("version", "hidden"),
                                   "input": body["input"], "logs": "", "output": None, "data_removed": False,
                                   "error": None, "status": "starting", "urls": urls, "metrics": {}}  # fmt: skip
        self.left[found] = plan.looks
        waited = asked.headers.get("prefer", "").startswith("wait") and plan.looks == 0
        return said(self._look(self.predictions[found]) if waited else self.predictions[found], 201)

    def _look(self, found: dict[str, Any]) -> dict[str, Any]:
        plan = self.plans.get(found["model"], Plan())
        usual = self.output(found["model"], found["input"]) if plan.output is None else plan.output
        if found["status"] == "canceled":
            return found
        if self.left[found["id"]] > 0 or plan.stuck:
            self.left[found["id"]] -= 1
            found["status"] = "processing"
            if isinstance(usual, list) and "llama" in found["model"]:
                found["output"] = usual[:2]
            return found
        found["status"] = plan.status
        found["error"] = plan.error or None
        found["output"] = usual if plan.status == "succeeded" else None
        if "llama" in found["model"]:
            found["metrics"] = {"input_token_count": 11, "output_token_count": 6, "predict_time": 0.4}
        else:
            found["metrics"] = {"predict_time": 0.4, "total_time": 0.5}
        if plan.metrics is not None:
            found["metrics"] = plan.metrics
        return found

    def _file(self, asked: Asked) -> Reply:
        name, data, media_type = asked.form()["content"]
        found = secrets.token_hex(8)
        self.uploads[found] = data
        return said({"id": found, "name": name, "content_type": media_type, "size": len(data),
                     "urls": {"get": f"{self.url}{PATH}/files/{found}"}}, 201)  # fmt: skip


def problem(status: int, title: str, detail: str) -> Reply:
    """Answer an error in Replicate's form."""
    body = json.dumps({"title": title, "detail": detail, "status": status})
    return Reply(status, body.encode(), "application/problem+json")
