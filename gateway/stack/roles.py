"""The children that are Faregate's own: gateways, settlers and workers, by their command lines and environment."""

import sys
from pathlib import Path

import msgspec

from gateway.stack.children import Child
from gateway.stack.folder import DataFolder

GATEWAY_STOP_S = 30.0
"""A gateway serves its open calls for up to 25 s."""
SETTLER_STOP_S = 15.0
WORKER_STOP_S = 35.0
"""A worker lets its running requests go on for up to 30 s."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What all services of a stack are told."""

    folder: DataFolder
    database_url: str
    redis_url: str
    host: str
    port: int
    listener: int
    """The socket that listens there. It outlives gateways: while one is started again, its callers wait."""
    engines: tuple[str, ...]
    blob_url: str = ""
    """A bucket, or a folder elsewhere; empty is the stack's own folder."""

    @property
    def blobs(self) -> str:
        """Where media lie."""
        return self.blob_url or _path(self.folder.blobs)

    @property
    def base_url(self) -> str:
        """How scripts on this machine reach the gateway."""
        host = "127.0.0.1" if self.host in {"", "0.0.0.0", "::"} else self.host
        return f"http://{host}:{self.port}"

    def gateway(self) -> Child:
        """Answer the gateway."""
        return self._service("gateway", GATEWAY_STOP_S, self.listener)

    def settler(self) -> Child:
        """Answer the settler."""
        return self._service("settler", SETTLER_STOP_S)

    def worker(self, pool: str, number: int) -> Child:
        """Answer one worker of a pool; `number` counts from 1."""
        name = f"worker-{pool}-{number}"
        return Child(
            role="worker",
            name=name,
            command=(sys.executable, "-m", "workers", "--pool", pool),
            log=self.folder.log(name),
            environ={
                "FAREGATE_WORKER_REDIS_URL": self.redis_url,
                "FAREGATE_WORKER_BLOB_URL": self.blobs,
                "FAREGATE_WORKER_MODELS_DIR": _path(self.folder.models),
                "PYTHONUNBUFFERED": "1",
            },
            stop_s=WORKER_STOP_S,
        )

    def _service(self, role: str, stop_s: float, listener: int = -1) -> Child:
        return Child(
            role=role,
            name=role,
            command=(sys.executable, "-m", "gateway.cli", role),
            log=self.folder.log(role),
            environ={
                "FAREGATE_DATABASE_URL": self.database_url,
                "FAREGATE_REDIS_URL": self.redis_url,
                "FAREGATE_ADMIN_KEY": self.folder.kept.admin_key,
                "FAREGATE_HOST": self.host,
                "FAREGATE_PORT": str(self.port),
                "FAREGATE_LISTEN_FD": str(listener),
                "FAREGATE_ENGINES": ",".join(self.engines),
                "FAREGATE_BLOB_URL": self.blobs,
                "PYTHONUNBUFFERED": "1",
            },
            stop_s=stop_s,
            descriptors=(listener,) if listener >= 0 else (),
        )


def _path(path: Path) -> str:
    return str(path.resolve())
