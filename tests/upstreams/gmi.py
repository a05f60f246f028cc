"""A stand-in for GMI Cloud's request queue, with its oddities as they were recorded.

Pictures and MiniMax sounds may come complete in the answer of the POST. `Flux2-Klein` and `Z-Image` stay queued for
ever. Errors are texts. `payload` is echoed, and is `{}` for edits. Uploads take exactly the type they were signed for.
"""

import base64
import itertools
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from tests.media.samples import picture, sound
from tests.upstreams.serving import Asked, Reply, StandIn, said

STUCK = ("Flux2-Klein", "Z-Image")
PATH = "/api/v1/ie/requestqueue/apikey"

_VIDEO = ("veo", "sora", "kling", "pixverse", "hailuo", "wan", "ltx", "vidu", "skyreels", "luma", "video", "seedance",
          "workflow", "avatar", "happyhorse", "hunyuan1.5")  # fmt: skip
_SOUND = ("tts", "music", "voice", "speech", "inworld")


def kind_by_name(model: str) -> str:
    """Guess what a model makes from its name."""
    name = model.lower()
    if any(word in name for word in _SOUND):
        return "audio"
    return "video" if any(word in name for word in _VIDEO) and not name.startswith("wan2.7-image") else "image"


class Plan(msgspec.Struct, kw_only=True):
    """How the jobs of a model go."""

    looks: int = 1
    """How often a job is looked at before it has ended; 0 is complete in the POST."""
    status: str = "success"
    outcome: Any = None
    """Instead of the usual one."""
    error: str = ""
    """At the top of the record."""


class Gmi(StandIn):
    """The request queue."""

    def __init__(self, kind_of: Callable[[str], str] = kind_by_name) -> None:
        super().__init__()
        self.kind_of = kind_of
        self.plans: dict[str, Plan] = {}
        self.records: dict[str, dict[str, Any]] = {}
        self.left: dict[str, int] = {}
        self.uploaded: dict[str, tuple[bytes, str]] = {}
        self.mp3_type = "audio/mpeg"
        self._numbers = itertools.count()

    def outcome(self, model: str, *, count: int = 1) -> dict[str, Any]:
        """Give what a finished job says."""
        kind = self.kind_of(model)
        if kind == "video":
            return {"video_url": self.file("film.mp4"), "thumbnail_image_url": self.file("other.png")}
        if kind == "audio":
            return {"audio_url": self.file("sound.mp3"), "duration_ms": 2000}
        urls = [{"id": str(number), "url": self.file("picture.png")} for number in range(count)]
        return {"media_urls": urls, "thumbnail_image_url": self.file("other.png")}

    def unauthorized(self) -> Reply:
        """Refuse a key in the text form of this API."""
        return said({"error": "invalid api key"}, 401)

    def open(self, asked: Asked) -> bool:
        """Take uploads by their signed address alone."""
        return asked.path.startswith("/bucket/")

    async def answer(self, asked: Asked) -> Reply:
        """Serve the calls."""
        if asked.path.startswith("/bucket/"):
            return self._put(asked)
        path = asked.path.removeprefix(PATH)
        if asked.method == "POST" and path == "/upload-url":
            return self._upload(asked)
        if asked.method == "POST" and path == "/requests":
            return self._submit(asked)
        if asked.method == "GET" and path == "/models":
            return said({"model_ids": sorted(self.plans)})
        job = path.removeprefix("/requests/")
        if job not in self.records:
            return said({"error": "request not found"}, 404)
        if asked.method == "DELETE":
            self.records[job]["status"] = "cancelled"
            return said({})
        return said(self._look(job))

    def _submit(self, asked: Asked) -> Reply:
        given = asked.json()
        model = given["model"]
        if model == "no-such-model":
            return said({"error": "model not found or no access"}, 404)
        plan = self.plans.get(model, Plan(looks=0 if self.kind_of(model) == "image" else 1))
        now = int(time.time())
        job = str(uuid.uuid4())
        echo = {} if "edit" in model else given["payload"]
        record = {"request_id": job, "org_id": "o", "user_id": "u", "model": model, "status": "queued",
                  "is_public": False, "payload": echo, "outcome": None, "created_at": now, "updated_at": now,
                  "queued_at": now}  # fmt: skip
        self.records[job] = record
        self.left[job] = 10**9 if model in STUCK else plan.looks
        if plan.looks == 0 and model not in STUCK:
            return said(self._look(job))
        return said({name: record[name] for name in ("request_id", "model", "status", "created_at", "updated_at",
                                                     "queued_at")})  # fmt: skip

    def _look(self, job: str) -> dict[str, Any]:
        record = self.records[job]
        plan = self.plans.get(record["model"], Plan())
        if record["status"] == "cancelled":
            return record
        if self.left[job] > 0:
            self.left[job] -= 1
            if record["model"] not in STUCK:
                record["status"] = "processing"
            return record
        record["status"] = plan.status
        count = record["payload"].get("max_images", 1) if isinstance(record["payload"], dict) else 1
        record["outcome"] = self.outcome(record["model"], count=count) if plan.outcome is None else plan.outcome
        if plan.error:
            record["error"] = plan.error
        return record

    def _upload(self, asked: Asked) -> Reply:
        file_type = asked.json()["file_type"]
        types = {"jpeg": "image/jpeg", "jpg": "image/jpg", "png": "image/png", "mp4": "video/mp4", "mp3": self.mp3_type,
                 "wav": "audio/wav"}  # fmt: skip
        if file_type not in types:
            return said({"error": f"unsupported file_type {file_type}"}, 400)
        name = f"/bucket/{next(self._numbers)}.{file_type}"
        self.uploaded[name] = (b"", types[file_type])
        return said({"upload_url": f"{self.url}{name}?X-Goog-Signature=abc", "public_url": f"{self.url}/public{name}"})

    def _put(self, asked: Asked) -> Reply:
        kept = self.uploaded.get(asked.path)
        if kept is None or asked.method != "PUT":
            return Reply(404, b"", "text/plain")
        given = asked.headers.get("content-type", "")
        if not given:
            return Reply(400, b"", "text/plain")
        if given != kept[1]:
            return Reply(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>", "application/xml")
        self.uploaded[asked.path] = (asked.body, given)
        return Reply(200, b"", "text/plain")


def inline_picture() -> dict[str, Any]:
    """Give the outcome of Gemini's models, which holds the picture itself."""
    data = base64.b64encode(picture(40, 40)).decode()
    part = {"inlineData": {"mimeType": "image/png", "data": data}}
    return {"candidates": [{"content": {"parts": [{"text": "Here it is"}, part]}}]}


def inline_sound() -> dict[str, Any]:
    """Give an outcome that holds the sound itself."""
    return {"audio_base64": base64.b64encode(sound("mp3", "libmp3lame", 2)).decode(), "duration_ms": 2000}
