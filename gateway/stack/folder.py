"""The data folder of a stack: who holds it, its version, and the secrets and ports it keeps between starts."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from gateway.stack.errors import StackError

FORMAT = 1
"""The version of the folder's layout. A release reads its own and older ones."""
ROOM_BYTES = 256 * 1024 * 1024
"""Room on the disk below which nothing starts: a new Postgres takes 60 MB, its write-ahead log the rest."""
LOG_BYTES = 16 * 1024 * 1024
"""A log that has grown beyond this is set aside at the next start, in place of the one set aside before."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a stack keeps between starts, in `stack.json`."""

    format: int
    admin_key: str
    postgres_password: str
    valkey_password: str
    postgres_port: int = 0
    """The ports of the last start, taken again where they are free."""
    valkey_port: int = 0
    gateway_port: int = 0
    api_key: str = ""
    """The demo account's key."""
    applied_catalog: str = ""
    """A digest of the catalog file that was applied last, and of the database it went to."""


class DataFolder:
    """A data folder that this process holds: one stack at a time."""

    def __init__(self, path: Path, kept: Kept) -> None:
        self.path = path
        self.kept = kept
        self.logs = path / "logs"
        self.blobs = path / "blobs"
        self.models = path / "models"
        for folder in (self.logs, self.blobs, self.models):
            folder.mkdir(exist_ok=True)

    def keep(self, **changes: object) -> None:
        """Change what is kept, on the disk at once."""
        self.kept = msgspec.structs.replace(self.kept, **changes)
        write_secret(self.path / "stack.json", msgspec.json.format(msgspec.json.encode(self.kept)))

    def log(self, name: str) -> Path:
        """Answer a child's log file; one that has grown too large is set aside."""
        path = self.logs / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path


@contextmanager
def hold_folder(path: Path) -> Iterator[DataFolder]:
    """Hold a data folder for the length of a block, made where there is none. Raises StackError."""
    with ExitStack() as held:
        try:
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            lock = held.enter_context((path / "lock").open("a+"))
            _take(lock.fileno(), path)
            kept = _read(path / "stack.json")
            _check_room(path)
            folder = DataFolder(path, kept)
            folder.keep()
        except OSError as error:
            raise StackError(f"{path} cannot be used: {error.strerror or error}") from error
        yield folder


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read; a reader sees the old one or the new one, never a part."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StackError(f"{path} is in use by another `faregate up`: stop that, or use another --data") from None


def _read(path: Path) -> Kept:
    if not path.exists():
        return Kept(
            format=FORMAT,
            admin_key=f"fg_admin_{secrets.token_urlsafe(24)}",
            postgres_password=secrets.token_urlsafe(16),
            valkey_password=secrets.token_urlsafe(16),
        )
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, object]).get("format")
        if isinstance(found, int) and found > FORMAT:
            raise StackError(
                f"{path.parent} was made by a newer Faregate (format {found}; this one reads {FORMAT}): "
                "install that release, or use another --data"
            )
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except msgspec.MsgspecError as error:
        raise StackError(f"{path} is damaged ({error}): put a copy back, or use another --data") from None


def _check_room(path: Path) -> None:
    free = shutil.disk_usage(path).free
    if free < ROOM_BYTES:
        raise StackError(
            f"the disk of {path} is full: {free // 1_000_000} MB free, {ROOM_BYTES // 1_000_000} MB needed"
        )
