"""Files on their way to an upstream, and results copied from it: public addresses, limits, and types by their bytes."""

import asyncio
import base64
import os
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO

import httpx
import structlog

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Media, MediaSource
from gateway.errors import FaregateError, Unavailable
from gateway.media.limits import Kind, MediaLimits
from gateway.media.probe.pool import Probes
from gateway.net.addresses import Allowed, UrlNotAllowed
from gateway.net.client import check_url, guarded_client
from workers.engine import EngineError, Run
from workers.engines.upstream.failures import UpstreamFailed, unreadable
from workers.engines.upstream.sse import ServerEvent, SseReader

log = structlog.get_logger()

FETCH_S = 300.0
"""How long copying one result may take."""
MOST_REDIRECTS = 3
MOST_AT_ONCE = 8
"""Results that one worker copies at once: each is held in memory until it is stored."""
PCM_BYTES_A_SECOND = 48_000
"""Raw sound has no head to read: 16 bits, one channel, 24,000 a second, as OpenAI's speech call gives it."""


class Traffic:
    """What the files of all calls of a worker share: a client for public addresses, and probes for what comes."""

    def __init__(self, allowed: Allowed, limits: MediaLimits) -> None:
        self.limits = limits
        self.client = guarded_client(allowed, timeout_s=60.0)
        self.probes = Probes()
        self.turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def close(self) -> None:
        """Close the client and end the probes."""
        await self.client.aclose()
        await self.probes.close()


class Parcels:
    """The files of one call, both ways."""

    def __init__(self, run: Run, traffic: Callable[[], Traffic]) -> None:
        self._run = run
        self._traffic = traffic

    async def content(self, source: MediaSource) -> bytes:
        """Give the bytes of a file of the caller. Raises EngineError where it is gone."""
        return await self._run.read(source)

    async def data_uri(self, source: MediaSource) -> str:
        """Give a file of the caller as a data URI. Raises EngineError where it is gone."""
        data = await self._run.read(source)
        return f"data:{media_type_of(source)};base64,{base64.b64encode(data).decode('ascii')}"

    async def put(self, url: str, data: bytes, media_type: str) -> None:
        """Upload bytes to a signed address that the upstream gave, without any key. Raises UpstreamFailed."""
        traffic = self._traffic()
        with self._run.phases.timed("transfer"):
            try:
                answer = await traffic.client.put(
                    str(check_url(url)), content=data, headers={"content-type": media_type}, timeout=FETCH_S
                )
            except (httpx.HTTPError, httpx.InvalidURL, UrlNotAllowed) as error:
                raise _not_taken(f"{type(error).__name__} while a file was uploaded") from None
        if not answer.is_success:
            raise _not_taken(f"HTTP {answer.status_code} while a file was uploaded")

    async def fetch(self, url: str, *, kind: Kind, limit_bytes: int | None = None) -> MediaOutput:
        """Copy a result from where the upstream says it lies, public addresses only, and measure it.

        A data URI is read as it stands. Raises UpstreamFailed where the file is away, too large, or of another kind.
        """
        if url.startswith("data:"):
            return await self.decoded(url.partition(",")[2], kind=kind)
        traffic = self._traffic()
        most = limit_bytes or traffic.limits.most_bytes(kind)
        async with traffic.turns:
            with self._run.phases.timed("transfer"):
                try:
                    async with asyncio.timeout(FETCH_S):
                        data = await _copy(traffic.client, url, most)
                except UrlNotAllowed:
                    raise _not_fetched("it lies at an address that is not public", lasting=True) from None
                except TimeoutError:
                    raise _not_fetched(f"it did not come within {FETCH_S:g} s") from None
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    raise _not_fetched(type(error).__name__) from None
            return await self.take(data, kind=kind)

    async def events(self, url: str) -> AsyncIterator[ServerEvent]:
        """Read server-sent events from where the upstream says they come, public addresses only, without any key.

        Raises UpstreamFailed where they do not come, or break off.
        """
        reader = SseReader()
        asked = {"accept": "text/event-stream", "cache-control": "no-store"}
        try:
            async with self._traffic().client.stream("GET", check_url(url), headers=asked, timeout=60.0) as answer:
                if answer.status_code != 200:
                    raise _not_fetched(f"HTTP {answer.status_code} where events were to come")
                async for piece in answer.aiter_raw():
                    for event in reader.feed(piece):
                        yield event
        except UrlNotAllowed:
            raise _not_fetched("events at an address that is not public") from None
        except httpx.HTTPError as error:
            raise _not_fetched(f"{type(error).__name__} while events came") from None

    async def decoded(self, text: str, *, kind: Kind) -> MediaOutput:
        """Take a result that came as Base64 inside an answer."""
        try:
            data = base64.b64decode(text, validate=True)
        except (NotBase64, ValueError):
            raise unreadable("a file in the answer is no Base64") from None
        return await self.take(data, kind=kind)

    async def take(self, data: bytes, *, kind: Kind, declared: str = "") -> MediaOutput:
        """Measure a result whose bytes are here. Only of raw sound, `audio/pcm`, is the declared type believed."""
        if declared == "audio/pcm":
            return MediaOutput("audio/pcm", len(data), data, duration_ms=len(data) * 1000 // PCM_BYTES_A_SECOND)
        traffic = self._traffic()
        if not data or len(data) > traffic.limits.most_bytes(kind):
            raise _not_fetched(f"it has {len(data)} bytes", lasting=True)
        with self._run.phases.timed("postprocess"), _in_memory(data) as file:
            try:
                facts = await traffic.probes.look(file, kind, traffic.limits, None)
            except FaregateError as error:
                raise _not_fetched(f"it is not one: {error}", lasting=not isinstance(error, Unavailable)) from None
        return MediaOutput(
            facts.media_type,
            len(data),
            data,
            width=facts.width,
            height=facts.height,
            duration_ms=facts.duration_ms,
            frames=facts.frames,
        )


def media_type_of(source: MediaSource) -> str:
    """Give the media type of a file of the caller. Raises EngineError where it was not staged."""
    if not isinstance(source, Media):
        raise EngineError("A media input was not staged.")
    return source.media_type


def _in_memory(data: bytes) -> BinaryIO:
    """Give a file without a name that another process may be handed."""
    file = os.fdopen(os.memfd_create("result", os.MFD_CLOEXEC), "w+b")
    try:
        file.write(data)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


async def _copy(client: httpx.AsyncClient, text: str, most_bytes: int) -> bytes:
    """Fetch a file; each redirect is judged anew."""
    url = check_url(text)
    for _ in range(MOST_REDIRECTS + 1):
        async with client.stream("GET", url, timeout=60.0) as answer:
            if answer.status_code == 200:
                return await _read(answer, most_bytes)
            target = answer.headers.get("location", "") if answer.is_redirect else ""
        if not target:
            raise httpx.HTTPError(f"HTTP {answer.status_code}")
        url = check_url(str(url.join(target)))
    raise UrlNotAllowed


async def _read(answer: httpx.Response, most_bytes: int) -> bytes:
    pieces: list[bytes] = []
    total = 0
    async for piece in answer.aiter_raw():
        total += len(piece)
        if total > most_bytes:
            raise _not_fetched(f"it has more than {most_bytes} bytes", lasting=True)
        pieces.append(piece)
    return b"".join(pieces)


def _not_fetched(why: str, *, lasting: bool = False) -> UpstreamFailed:
    text = "The provider's result could not be copied."
    error = UpstreamFailed(text, detail=f"a result: {why}", sent=True)
    error.lasting = lasting
    return error


def _not_taken(detail: str) -> UpstreamFailed:
    return UpstreamFailed("The provider did not take an uploaded file.", detail=detail)
