"""The probes of a gateway: processes that look at files for it, kept warm, a few at a time; a bad file ends its own."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import structlog

import gateway
from gateway.contract.inputs import Media
from gateway.errors import FaregateError, InvalidRequest, Unavailable, Unprocessable
from gateway.media.limits import Kind, MediaLimits
from gateway.media.probe.refusal import Why

log = structlog.get_logger()

MOST_PROBES = min(4, os.cpu_count() or 1)
ANSWER_S = 30.0
"""How long a probe may take by the wall clock; its processor time is limited more tightly."""
ANSWER_BYTES = 65536
TOO_MUCH = "takes too long to open"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about a file."""

    media_type: str
    width: int = 0
    height: int = 0
    duration_ms: int = 0
    frames: int = 0

    def media(self, blob: str, size_bytes: int) -> Media:
        """Give the input that stands for the file, once it lies in the store."""
        return Media(blob=blob, size_bytes=size_bytes, **msgspec.structs.asdict(self))


class _Probe:
    """One process, and our end of its socket."""

    def __init__(self, process: asyncio.subprocess.Process, channel: socket.socket) -> None:
        self.process = process
        self.channel = channel

    async def ask(self, file: BinaryIO, question: bytes) -> dict[str, Any] | None:
        """Hand a file over and wait; None where the process died of it, or would not end."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_S):
                socket.send_fds(self.channel, [question], [file.fileno()])
                answer = await loop.sock_recv(self.channel, ANSWER_BYTES)
        except (TimeoutError, OSError):
            return None
        return json.loads(answer) if answer else None

    async def end(self) -> None:
        self.channel.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


class Probes:
    """Looks at files, a few at once; more wait for their turn."""

    def __init__(self, most: int = MOST_PROBES) -> None:
        self._turns = asyncio.Semaphore(most)
        self._idle: list[_Probe] = []

    async def look(self, file: BinaryIO, kind: Kind | None, limits: MediaLimits, param: str | None) -> Facts:
        """Find out what a file is. Raises InvalidRequest (400) or Unprocessable (422) where it is not to be taken."""
        question = json.dumps({"kind": kind, "limits": msgspec.structs.asdict(limits)}).encode()
        async with self._turns:
            answer = await self._ask(file, question)
        if answer is None:
            log.warning("probe.ended", param=param)
            raise _refusal("over_limit", TOO_MUCH, param)
        if "facts" in answer:
            return msgspec.convert(answer["facts"], Facts)
        raise _refusal(answer["refused"], answer["said"], param)

    async def _ask(self, file: BinaryIO, question: bytes) -> dict[str, Any] | None:
        while self._idle:
            probe = self._idle.pop()
            if probe.process.returncode is None:
                break
            await probe.end()
        else:
            probe = await _start()
        try:
            answer = await probe.ask(file, question)
        except BaseException:
            await asyncio.shield(probe.end())
            raise
        if answer is None:
            await probe.end()
        else:
            self._idle.append(probe)
        return answer

    @property
    def pids(self) -> list[int]:
        """The processes that wait for a file."""
        return [probe.process.pid for probe in self._idle]

    async def close(self) -> None:
        """End all processes."""
        while self._idle:
            await self._idle.pop().end()


async def _start() -> _Probe:
    """Start a process that knows nothing of this one: no environment, no file but its end of the socket."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gateway.media.probe", str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                cwd=Path(gateway.__file__).parents[1],
                env={},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            ours.close()
            raise Unavailable("Media cannot be looked at for the moment; try again.", retry_after_s=1.0) from error
    return _Probe(process, ours)


def _refusal(why: Why, said: str, param: str | None) -> FaregateError:
    words = f"This file {said}."
    if why == "over_limit":
        return Unprocessable(words, code="media_over_limit", param=param)
    if why == "not_supported":
        return Unprocessable(words, code="media_not_supported", param=param)
    if why == "wrong_kind":
        return InvalidRequest(words, code="media_wrong_kind", param=param)
    return InvalidRequest(words, code="media_unreadable", param=param)
