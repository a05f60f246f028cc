"""The Lua scripts, each in a file of its own whose header states keys, arguments and answer."""

from functools import cache
from hashlib import sha1
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent / "lua"


class Script(msgspec.Struct, frozen=True):
    """A Lua script and the SHA-1 by which Redis knows it."""

    name: str
    text: bytes
    sha: str


@cache
def script(name: str) -> Script:
    """Read a script by its file's name without `.lua`."""
    text = (FOLDER / f"{name}.lua").read_bytes()
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest())


@cache
def all_scripts() -> tuple[Script, ...]:
    """Read all scripts."""
    return tuple(script(path.stem) for path in sorted(FOLDER.glob("*.lua")))
