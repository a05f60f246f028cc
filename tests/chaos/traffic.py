"""Callers of three kinds, who go on whatever breaks, and remember what they were told."""

import asyncio
import json
import random
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable

import httpx
import msgspec

PAUSE_S = 0.05
REPEAT_S = 0.25
MOST_REPEATS = 240
"""A caller with an idempotency key repeats its call for a minute."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller was told about a request that had ended well."""

    request_id: str
    charge_nanos: int
    tokens: int


class Memory(msgspec.Struct, kw_only=True):
    """What all callers together were told."""

    accepted: dict[str, str] = {}
    """Idempotency keys of accepted asynchronous requests, with their request id."""
    told: list[Told] = []
    contradictions: list[str] = []
    """Two answers that cannot both be right."""
    statuses: Counter[str] = msgspec.field(default_factory=Counter)


class Traffic:
    """Callers who work until they are told to stop."""

    def __init__(self, base_url: str, key: str, seed: int) -> None:
        self.memory = Memory()
        self._random = random.Random(seed)
        self._stopping = asyncio.Event()
        self._http = httpx.AsyncClient(
            base_url=base_url,
            headers={"authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(70, connect=2),
            limits=httpx.Limits(max_connections=200),
        )
        self._callers: list[asyncio.Task[None]] = []

    def start(self, *, submit: int, call: int, stream: int) -> None:
        """Start so many callers of each kind."""
        for count, turn in ((submit, self._submit), (call, self._call), (stream, self._stream)):
            self._callers += [asyncio.create_task(self._work(turn)) for _ in range(count)]

    async def stop(self) -> None:
        """Let every caller end the call it is in, and stop."""
        self._stopping.set()
        await asyncio.gather(*self._callers)
        await self._http.aclose()

    async def _work(self, turn: Callable[[], Awaitable[None]]) -> None:
        while not self._stopping.is_set():
            try:
                await turn()
            except httpx.TransportError as error:
                self.memory.statuses[type(error).__name__] += 1
            await asyncio.sleep(PAUSE_S)

    def _messages(self) -> list[dict[str, str]]:
        """Ask for work of up to one second, so that a fault finds requests under way."""
        return [{"role": "user", "content": f"fake:sleep={self._random.uniform(0, 1):.3f}"}]

    async def _submit(self) -> None:
        """Submit an asynchronous request; repeat the call with its key until it is answered."""
        key = secrets.token_hex(8)
        body = {"model": "fake-chat", "input": {"messages": self._messages()}}
        for _ in range(MOST_REPEATS):
            try:
                answer = await self._http.post("/v1/requests", json=body, headers={"idempotency-key": key})
            except httpx.TransportError as error:
                self.memory.statuses[f"submit {type(error).__name__}"] += 1
                await asyncio.sleep(REPEAT_S)
                continue
            self.memory.statuses[f"submit {answer.status_code}"] += 1
            if answer.status_code in (200, 202):
                self._accept(key, answer.json()["id"])
                if self._random.random() < 0.7:  # some callers do not believe it, and submit once more
                    return
            await asyncio.sleep(REPEAT_S)

    def _accept(self, key: str, request_id: str) -> None:
        known = self.memory.accepted.setdefault(key, request_id)
        if known != request_id:
            self.memory.contradictions.append(f"one idempotency key, two requests: {known} and {request_id}")

    async def _call(self) -> None:
        """Call and wait for the answer; a broken call may be repeated only with a key."""
        headers = {"idempotency-key": secrets.token_hex(8)} if self._random.random() < 0.5 else {}
        body = {"model": "fake-chat", "messages": self._messages()}
        for _ in range(MOST_REPEATS if headers else 1):
            try:
                answer = await self._http.post("/v1/chat/completions", json=body, headers=headers)
            except httpx.TransportError as error:
                self.memory.statuses[f"call {type(error).__name__}"] += 1
                await asyncio.sleep(REPEAT_S)
                continue
            self.memory.statuses[f"call {answer.status_code}"] += 1
            if answer.status_code == 200:
                self._hear(answer.json()["id"], answer.json()["usage"], 20)
                return
            await asyncio.sleep(REPEAT_S)

    async def _stream(self) -> None:
        """Read a stream to its end; one that says it is done must be whole."""
        body = {"model": "fake-stream", "messages": self._messages(), "stream": True}
        chunks = []
        async with self._http.stream("POST", "/v1/chat/completions", json=body) as answer:
            self.memory.statuses[f"stream {answer.status_code}"] += 1
            if answer.status_code != 200:
                return
            buffer = b""
            async for piece in answer.aiter_bytes():
                *lines, buffer = (buffer + piece).split(b"\n")
                chunks += [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
        if not chunks or chunks[-1] != b"[DONE]":
            self.memory.statuses["stream broken"] += 1
            return
        self._check_stream([json.loads(chunk) for chunk in chunks[:-1]])

    def _check_stream(self, chunks: list[dict[str, object]]) -> None:
        texts = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]  # type: ignore[attr-defined]
        tokens = sum(1 for text in texts if text)
        self._hear(str(chunks[-1]["id"]), chunks[-1]["usage"], tokens)  # type: ignore[arg-type]
        if tokens != 100:
            self.memory.contradictions.append(f"{chunks[-1]['id']} says it is done after {tokens} of 100 tokens")

    def _hear(self, request_id: str, usage: dict[str, int], tokens: int) -> None:
        self.memory.told.append(Told(request_id=request_id, charge_nanos=usage["charge_nanos"], tokens=tokens))
        if usage["completion_tokens"] != tokens:
            self.memory.contradictions.append(
                f"{request_id}: {usage['completion_tokens']} tokens charged, {tokens} came"
            )
