"""`connection.json`: how scripts find a running stack."""

from pathlib import Path

import msgspec

from gateway.stack.folder import write_secret

NAME = "connection.json"


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the stack; `name` tells workers apart."""

    role: str
    pid: int
    name: str


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running stack is, the keys to it, and its processes as they are now."""

    base_url: str
    admin_key: str
    api_key: str
    database_url: str
    redis_url: str
    blob_url: str = ""
    """Where media lie: a folder, or a bucket."""
    processes: list[Process] = []


def write_connection(folder: Path, connection: Connection) -> None:
    """Write the file anew, readable by its owner only."""
    write_secret(folder / NAME, msgspec.json.format(msgspec.json.encode(connection)) + b"\n")


def remove_connection(folder: Path) -> None:
    """Remove the file, since nothing runs."""
    (folder / NAME).unlink(missing_ok=True)
