"""A stand-in for fal's queue: three states, failures as outputs with a status of their own, addresses below the app."""

import itertools
import uuid
from typing import Any

import msgspec

from tests.upstreams.serving import Asked, Reply, StandIn, said

NAMESPACES = ("workflows", "comfy")


class Plan(msgspec.Struct, kw_only=True):
    """How the jobs of a model go."""

    looks: int = 1
    output: Any = None
    """Instead of the usual one."""
    reply: Reply | None = None
    """What is answered where the output is asked for: the failure of a job."""
    error: str = ""
    """In the status of the completed job."""
    error_type: str = ""
    stuck: bool = False


class Fal(StandIn):
    """The queue."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, Plan] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count()

    def authorized(self, asked: Asked) -> bool:
        """Take the key in fal's own scheme."""
        return asked.headers.get("authorization") == f"Key {self.key}"

    def unauthorized(self) -> Reply:
        """Refuse a wrong key."""
        return said({"detail": "No user found for Key ID and Secret"}, 401)

    def output(self, model: str, given: dict[str, Any]) -> dict[str, Any]:
        """Give what a model makes."""
        if "whisper" in model:
            chunks = [{"timestamp": [0.0, 1.5], "text": " Hello"}, {"timestamp": [1.5, None], "text": " there"}]
            return {"text": " Hello there", "chunks": chunks, "inferred_languages": ["en"]}
        if "video" in model:
            return {"video": {"url": self.file("film.mp4"), "content_type": "video/mp4", "file_size": 1}, "seed": 7}
        if "audio" in model or "tts" in model:
            return {"audio": {"url": self.file("sound.mp3"), "content_type": "audio/mpeg"}}
        if "upscale" in model:
            return {"image": {"url": self.file("picture.png"), "width": 64, "height": 48}}
        count = given.get("num_images", 1)
        row = {"url": self.file("picture.png"), "content_type": "image/png", "width": 64, "height": 48}
        return {
            "images": [row] * count,
            "seed": 42,
            "has_nsfw_concepts": [False] * count,
            "prompt": "https://x.y/z.png",
        }

    async def answer(self, asked: Asked) -> Reply:
        """Serve the calls."""
        parts = asked.path.strip("/").split("/")
        if "requests" in parts:
            at = parts.index("requests")
            job = self.jobs.get(parts[at + 1])
            if job is None or job["app"] != "/".join(parts[:at]):
                return said({"detail": "Request not found"}, 404)
            return self._job(asked.method, job, parts[at + 2] if len(parts) > at + 2 else "")
        if asked.method != "POST" or "no-such" in asked.path:
            return said({"detail": "Application not found"}, 404)
        return self._submit(parts, asked)

    def _submit(self, parts: list[str], asked: Asked) -> Reply:
        app = "/".join(parts[: 3 if parts[0] in NAMESPACES else 2])
        job_id = str(uuid.uuid4())
        model = "/".join(parts)
        self.jobs[job_id] = {"id": job_id, "app": app, "model": model, "given": asked.json(), "cancelled": False,
                             "left": self.plans.get(model, Plan()).looks}  # fmt: skip
        base = f"https://queue.fal.run/{app}/requests/{job_id}"
        return said({"status": "IN_QUEUE", "request_id": job_id, "response_url": base, "status_url": f"{base}/status",
                     "cancel_url": f"{base}/cancel", "queue_position": 3})  # fmt: skip

    def _job(self, method: str, job: dict[str, Any], what: str) -> Reply:
        plan = self.plans.get(job["model"], Plan())
        if method == "PUT" and what == "cancel":
            job["cancelled"] = True
            return said({"status": "CANCELLATION_REQUESTED"}, 202)
        if what == "status":
            return self._status(plan, job)
        if plan.reply is not None:
            return plan.reply
        output = self.output(job["model"], job["given"]) if plan.output is None else plan.output
        return said(output, x_fal_request_id=job["id"], x_fal_billable_units="1.5")

    def _status(self, plan: Plan, job: dict[str, Any]) -> Reply:
        base = {"request_id": job["id"], "response_url": f"https://queue.fal.run/{job['app']}/requests/{job['id']}"}
        if job["left"] > 0 or plan.stuck:
            job["left"] -= 1
            return said({"status": "IN_QUEUE", "queue_position": job["left"], **base}, 202)
        done = {"status": "COMPLETED", "logs": None, "metrics": {"inference_time": 1.2}, **base}
        if plan.error:
            done |= {"error": plan.error, "error_type": plan.error_type}
        return said(done)


def typed(kind: str, message: str, status: int = 422) -> Reply:
    """Answer an error in fal's typed form."""
    row = {"loc": ["body", "prompt"], "msg": message, "type": kind, "url": f"https://docs.fal.ai/errors#{kind}"}
    return said({"detail": [row]}, status, x_fal_error_type=kind)
