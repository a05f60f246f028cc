"""Waits for a server and its models, and looks after them once they are ready."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from gateway.contract.pools import ModelState
from workers.engine import EngineLost, Report
from workers.engines.triton.connection import GONE, Connection, Signature, Unreachable
from workers.engines.triton.options import BadModel, TritonOptions

POLL_S = 0.5
LOOK_S = 2.0
"""Between two looks at the server and its models."""
MISSED = 3
"""After so many looks without an answer the server counts as gone."""

AWAY = "its server does not answer"
UNAVAILABLE = "UNAVAILABLE"


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is looked after: how the server calls it, and what it is reported as while it is ready."""

    name: str
    version: str
    ready: ModelState


async def await_model(
    connection: Connection, name: str, options: TritonOptions, tell: Callable[[str], None]
) -> Signature:
    """Wait until the server has a model ready, loading it where the catalog says so; `tell` what it waits for.

    Raises BadModel where it cannot become ready, or has not within `wait_s`.
    """
    waits_for = AWAY
    try:
        async with asyncio.timeout(options.wait_s):
            while True:
                with suppress(Unreachable):
                    waits_for = "its server is still loading it"
                    if await _is_ready(connection, name, options):
                        return await connection.signature(name, options.model_version)
                if not await connection.is_live():
                    waits_for = AWAY
                tell(waits_for)
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise BadModel(f"{waits_for} after {options.wait_s:g} s") from None


async def _is_ready(connection: Connection, name: str, options: TritonOptions) -> bool:
    """Say whether a model is ready, and try to make it so. Raises Unreachable and BadModel."""
    if await connection.is_ready(name, options.model_version):
        return True
    if options.load:
        await connection.load(name)
        if not await connection.is_ready(name, options.model_version):
            raise BadModel("the server has loaded it, but not this version")
        return True
    if not await connection.is_live():
        return False
    known = await connection.state(name, options.model_version)
    if known is None:
        raise BadModel(f"the server has no model {name} {options.model_version}".rstrip())
    state, reason = known
    if state == UNAVAILABLE or not state:
        raise BadModel(f"the server has not loaded it ({reason or 'say load: true, or load it there'})")
    return False


class Watch:
    """Looks after a server: reports the models that come and go, and finds out when it is gone."""

    def __init__(self, connection: Connection, models: Mapping[str, Watched], report: Report) -> None:
        self._connection = connection
        self._models = models
        self._report = report
        self._away: set[str] = set()
        self.lost: EngineLost | None = None
        """Why the engine is dead; None while the server answers."""

    async def run(self) -> None:
        """Look again and again, until the server is gone or this is cancelled."""
        missed = 0
        while missed < MISSED:
            await asyncio.sleep(LOOK_S)
            try:
                for model, watched in self._models.items():
                    self._note(model, watched, await self._connection.is_ready(watched.name, watched.version))
                missed = 0
            except Unreachable:
                missed += 1
        self.lost = EngineLost(GONE)

    def _note(self, model: str, watched: Watched, ready: bool) -> None:
        """Report a change."""
        if ready == (model not in self._away):
            return
        if ready:
            self._away.discard(model)
            self._report(model, watched.ready)
        else:
            self._away.add(model)
            self._report(model, ModelState(state="failed", detail="the server has it no longer"))
