"""A stand-in for MiniMax: failures inside status 200, sound as hexadecimal digits, streams that repeat it all."""

import itertools
import json
from typing import Any

import msgspec

from tests.media.samples import sound
from tests.upstreams.serving import Asked, Reply, StandIn, said

OK = {"status_code": 0, "status_msg": "success"}
SOUNDS = {"mp3": ("mp3", "libmp3lame"), "flac": ("flac", "flac"), "wav": ("wav", "pcm_s16le")}
RATE = 24_000


def fault(code: int, message: str) -> Reply:
    """Fail, as it does: with status 200."""
    return said({"base_resp": {"status_code": code, "status_msg": message}})


class Plan(msgspec.Struct, kw_only=True):
    """How videos of a model go."""

    looks: int = 1
    status: str = "Success"
    message: str = ""


class MiniMax(StandIn):
    """The API."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, Plan] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.voices: dict[str, bytes] = {}
        self.uploads: dict[int, bytes] = {}
        self.group = ""
        self.repeats = True
        """Whether the last event of a stream repeats the whole sound."""
        self.breaks = False
        self._numbers = itertools.count(95157322514444)

    def unauthorized(self) -> Reply:
        """Refuse a wrong key, with status 200."""
        return fault(1004, "login fail: Please carry the API secret key in the 'Authorization' field")

    async def answer(self, asked: Asked) -> Reply:
        """Serve the calls."""
        if asked.query.get("GroupId", "") != self.group:
            return fault(1004, "token not match group")
        calls = {
            "/v1/t2a_v2": self._speak,
            "/v1/files/upload": self._upload,
            "/v1/voice_clone": self._clone,
            "/v1/delete_voice": self._delete,
            "/v1/music_generation": self._music,
            "/v1/image_generation": self._draw,
            "/v1/video_generation": self._film,
            "/v1/query/video_generation": self._query,
            "/v1/files/retrieve": self._retrieve,
        }
        return calls[asked.path](asked) if asked.path in calls else Reply(404, b"404 page not found", "text/plain")

    def sound(self, setting: dict[str, Any]) -> bytes:
        """Make the sound that was asked for."""
        form = setting.get("format", "mp3")
        if form == "pcm":
            assert setting["sample_rate"] == RATE
            return sound("wav", "pcm_s16le", 2, RATE)[-RATE * 4 :]
        return sound(*SOUNDS[form], 2)

    def _speak(self, asked: Asked) -> Reply:
        body = asked.json()
        voice = body["voice_setting"]["voice_id"]
        if voice.startswith("faregate-") and voice not in self.voices:
            return fault(2013, "voice id not exist")
        data = self.sound(body["audio_setting"])
        extra = {"audio_length": 2000, "usage_characters": 5, "audio_format": "mp3"}
        if not body["stream"]:
            return said({"data": {"audio": data.hex(), "status": 2}, "extra_info": extra, "trace_id": "t",
                         "base_resp": OK})  # fmt: skip
        assert body["stream_options"] == {"exclude_aggregated_audio": True}
        third = len(data) // 3
        parts = [data[:third], data[third : 2 * third], data[2 * third :]]
        events = [{"data": {"audio": part.hex(), "status": 1}, "trace_id": "t", "base_resp": OK} for part in parts]
        whole = data.hex() if self.repeats else ""
        events.append({"data": {"audio": whole, "status": 2}, "extra_info": extra, "base_resp": OK})
        pieces = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
        return Reply(200, pieces[:2] if self.breaks else pieces, "text/event-stream")

    def _upload(self, asked: Asked) -> Reply:
        form = asked.form()
        assert form["purpose"][1] == b"voice_clone"
        number = next(self._numbers)
        self.uploads[number] = form["file"][1]
        return said({"file": {"file_id": number, "bytes": len(form["file"][1]), "purpose": "voice_clone"},
                     "base_resp": OK})  # fmt: skip

    def _clone(self, asked: Asked) -> Reply:
        body = asked.json()
        if body["voice_id"] in self.voices:
            return fault(2039, "voice clone voice id duplicate")
        self.voices[body["voice_id"]] = self.uploads[body["file_id"]]
        return said({"input_sensitive": False, "demo_audio": "", "base_resp": OK})

    def _delete(self, asked: Asked) -> Reply:
        self.voices.pop(asked.json()["voice_id"])
        return said({"base_resp": OK})

    def _music(self, asked: Asked) -> Reply:
        body = asked.json()
        if not body.get("lyrics"):
            return fault(2013, "invalid params, lyrics is required")
        data = self.sound(body["audio_setting"])
        return said({"data": {"audio": data.hex(), "status": 2}, "extra_info": {"music_duration": 2000},
                     "base_resp": OK})  # fmt: skip

    def _draw(self, asked: Asked) -> Reply:
        count = asked.json().get("n", 1)
        return said({"id": "i", "data": {"image_urls": [self.file("picture.png")] * count},
                     "metadata": {"success_count": str(count), "failed_count": "0"}, "base_resp": OK})  # fmt: skip

    def _film(self, asked: Asked) -> Reply:
        task = str(next(self._numbers))
        body = asked.json()
        plan = self.plans.get(body["model"], Plan())
        self.tasks[task] = {"model": body["model"], "left": plan.looks}
        return said({"task_id": task, "base_resp": OK})

    def _query(self, asked: Asked) -> Reply:
        task = self.tasks.get(asked.query["task_id"])
        if task is None:
            return fault(2013, "invalid params, task_id")
        plan = self.plans.get(task["model"], Plan())
        if task["left"] > 0:
            task["left"] -= 1
            status = ("Preparing", "Queueing", "Processing")[task["left"] % 3]
            return said({"task_id": asked.query["task_id"], "status": status, "file_id": "", "base_resp": OK})
        done: dict[str, Any] = {"task_id": asked.query["task_id"], "status": plan.status, "base_resp": OK}
        if plan.status == "Success":
            done |= {"file_id": "176844028768320", "video_width": 64, "video_height": 64}
        elif plan.message:
            done["error_message"] = plan.message
        return said(done)

    def _retrieve(self, asked: Asked) -> Reply:
        assert asked.query["file_id"] == "176844028768320"
        row = {"file_id": 176844028768320, "bytes": 1, "filename": "output_aigc.mp4", "purpose": "video_generation",
               "download_url": self.file("film.mp4")}  # fmt: skip
        return said({"file": row, "base_resp": OK})
