"""A stand-in for Kling: signed tokens, tasks by their id or by ours, codes inside answers."""

import base64
import hashlib
import hmac
import itertools
import json
import time
from typing import Any

import msgspec

from tests.upstreams.serving import Asked, Reply, StandIn, said

ACCESS, SECRET = "the-access-key", "the-secret-key-of-the-operator"
PATHS = ("/v1/videos/text2video", "/v1/videos/image2video", "/v1/videos/avatar/image2video", "/v1/images/generations")


def fault(code: int, message: str, status: int = 200) -> Reply:
    """Fail."""
    return said({"code": code, "message": message, "request_id": "r"}, status)


class Plan(msgspec.Struct, kw_only=True):
    """How the tasks of a model go."""

    looks: int = 1
    status: str = "succeed"
    message: str = ""
    stuck: bool = False


class Kling(StandIn):
    """The API."""

    key = f"{ACCESS}:{SECRET}"

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, Plan] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.lose = 0
        """How many purchases are made whose answers break off."""
        self._numbers = itertools.count(867283741759111202)

    def authorized(self, asked: Asked) -> bool:
        """Check the token as RFC 7519 says, and its times."""
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        head, _, rest = token.partition(".")
        claims, _, signature = rest.partition(".")
        wanted = hmac.new(SECRET.encode(), f"{head}.{claims}".encode(), hashlib.sha256).digest()
        if scheme != "Bearer" or not signature or not hmac.compare_digest(wanted, _decoded(signature)):
            return False
        told, said_head = json.loads(_decoded(claims)), json.loads(_decoded(head))
        now = time.time()
        in_time = told["nbf"] <= now < told["exp"] <= now + 1800
        return bool(said_head == {"alg": "HS256", "typ": "JWT"} and told["iss"] == ACCESS and in_time)

    def unauthorized(self) -> Reply:
        """Refuse a wrong token."""
        return fault(1002, "Authorization is invalid", 401)

    async def answer(self, asked: Asked) -> Reply:
        """Serve the calls."""
        path = next((each for each in PATHS if asked.path == each or asked.path.startswith(f"{each}/")), None)
        if path is None:
            return fault(1203, "the requested resource does not exist", 404)
        if asked.method == "POST":
            return self._submit(path, asked)
        wanted = asked.path.removeprefix(f"{path}/")
        for task in self.tasks.values():
            if wanted in (task["task_id"], task["reference"]) and task["path"] == path:
                return self._told(self._look(task))
        return fault(1203, "task not found", 404)

    def _submit(self, path: str, asked: Asked) -> Reply:
        body = asked.json()
        if body["model_name"] == "no-such-model":
            return fault(1203, "the model does not exist", 404)
        reference = body["external_task_id"]
        if any(task["reference"] == reference for task in self.tasks.values()):
            return fault(1201, "external_task_id is not unique", 400)
        for name in ("image", "sound_file"):
            if name in body and body[name].startswith("data:"):
                return fault(1201, "File is not in a valid base64 format", 400)
        found = str(next(self._numbers))
        plan = self.plans.get(body["model_name"], Plan())
        self.tasks[found] = {"task_id": found, "reference": reference, "path": path, "model": body["model_name"],
                             "count": body.get("n", 1), "left": plan.looks, "status": "submitted"}  # fmt: skip
        if self.lose:
            self.lose -= 1
            return Reply(200, [b'{"code": 0, ', b"!"])
        return self._told(self.tasks[found])

    def _look(self, task: dict[str, Any]) -> dict[str, Any]:
        plan = self.plans.get(task["model"], Plan())
        task["status"] = "processing" if task["left"] > 0 or plan.stuck else plan.status
        task["left"] -= 1
        return task

    def _told(self, task: dict[str, Any]) -> Reply:
        data: dict[str, Any] = {"task_id": task["task_id"], "task_status": task["status"], "created_at": 1722769557708}
        data |= {"task_info": {"external_task_id": task["reference"]}, "updated_at": 1722769557708}
        if task["status"] == "succeed":
            if "images" in task["path"]:
                rows = [{"index": number, "url": self.file("picture.png")} for number in range(task["count"])]
                data["task_result"] = {"images": rows}
            else:
                data["task_result"] = {"videos": [{"id": "v", "url": self.file("film.mp4"), "duration": "5.1"}]}
        if task["status"] == "failed":
            data["task_status_msg"] = self.plans[task["model"]].message
        return said({"code": 0, "message": "SUCCEED", "request_id": "r", "data": data})


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
