"""The engine `upstream`: a request's targets in turn, until one has answered."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import structlog

from gateway.blobs.store import BlobStore
from gateway.contract.events import Output
from gateway.contract.pools import ModelState, PoolSpec, ServedModel, Target, UpstreamSpec, UpstreamState
from gateway.media.limits import MediaLimits
from gateway.net.addresses import Allowed
from workers.engine import Access, EngineError, Report, Run
from workers.engines.upstream.attempt import attempt
from workers.engines.upstream.failures import UpstreamFailed
from workers.engines.upstream.jobs import Background, Shop, unknown
from workers.engines.upstream.link import Link
from workers.engines.upstream.media import Parcels, Traffic
from workers.engines.upstream.notes import Note, Notes
from workers.engines.upstream.protocol import Call, Direct, Jobs
from workers.engines.upstream.protocols import make_wire
from workers.engines.upstream.provider import Provider
from workers.engines.upstream.routing import ordered
from workers.engines.upstream.transport import KeptTransport

log = structlog.get_logger()

UNLOAD_S = 5.0
AGAIN_S = 0.2
"""The pause before the same target is tried a second time."""
REFUSED_AT_ONCE = 256
AT_ONCE = frozenset({"chat", "completion", "embedding", "rerank"})
"""Tasks that are never jobs."""


class UpstreamEngine:
    """Calls upstreams. It has no model of its own; how many requests it takes is what its upstreams take together."""

    def __init__(self, models_dir: Path) -> None:
        self._models: dict[str, ServedModel] = {}
        self._providers: dict[str, Provider] = {}
        self._unset: dict[str, UpstreamSpec] = {}
        self._transport = KeptTransport()
        self._background = Background()
        self._running = 0
        self._pool = self._worker = ""
        self._allowed = Allowed()
        self._traffic: Traffic | None = None
        self._notes: Notes | None = None
        self._noted: set[tuple[str, int]] = set()

    def connect(
        self, spec: PoolSpec, access: Mapping[str, Access], store: BlobStore, allowed: Allowed, worker: str
    ) -> None:
        """Be told the upstreams of the pool, their keys, and where to note jobs. Called once, before `load`."""
        self._pool, self._worker, self._allowed = spec.pool, worker, allowed
        self._notes = Notes(store)
        for upstream in spec.upstreams:
            given = access.get(upstream.name.upper().replace("-", "_"), Access())
            if given.key:
                self._providers[upstream.name] = self._provider(upstream, given)
            else:
                self._unset[upstream.name] = upstream

    def _provider(self, spec: UpstreamSpec, access: Access) -> Provider:
        wire = make_wire(spec.protocol)
        link = Link(spec, access.key, transport=self._transport, wire=wire, url=access.url)
        return Provider(spec, wire, link)

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Report each model as ready where one of its upstreams has a key; else name the settings that are missing."""
        for model in models:
            self._models[model.name] = model
            if any(target.upstream in self._providers for target in model.targets):
                report(model.name, ModelState(state="ready"))
            elif missing := [self._unset[each.upstream] for each in model.targets if each.upstream in self._unset]:
                names = dict.fromkeys(spec.key_setting for spec in missing)
                report(model.name, ModelState(state="unset", detail=" or ".join(names)))
            else:
                report(model.name, ModelState(state="failed", detail="The model has no upstream in this pool."))

    def capacity(self) -> int:
        """Say how many more requests could start now. Without any key those that came too early are taken, to fail."""
        if not self._providers:
            return REFUSED_AT_ONCE
        return max(0, sum(provider.spec.concurrency for provider in self._providers.values()) - self._running)

    def failure(self) -> Exception | None:
        """Say that there is nothing here which could die."""
        return None

    def upstreams(self) -> dict[str, UpstreamState]:
        """Say how the upstreams stand, as this worker's own traffic has shown."""
        unset = {
            name: UpstreamState(state="unset", detail=f"{spec.key_setting} is not set")
            for name, spec in self._unset.items()
        }
        return unset | {name: provider.state() for name, provider in self._providers.items()}

    async def run(self, run: Run) -> Output:
        """Try the request's targets in turn. Raises UpstreamFailed, RefusedInput or EngineError."""
        self._running += 1
        try:
            return await self._serve(run)
        finally:
            self._running -= 1
            if run.stopped in ("lost", "given_back"):
                self._noted.discard((run.request.id, run.attempt))

    async def _serve(self, run: Run) -> Output:
        targets = self._targets(run)
        note: Note | None = None
        if run.request.task not in AT_ONCE and self._has_jobs(run, targets):
            note = await self._note(run)
            if note is not None:
                bought = self._noted_target(run, note)
                targets = [bought, *(target for target in targets if target != bought)]
        last: UpstreamFailed | None = None
        for target in targets:
            provider = self._providers[target.upstream]
            if note is None and not provider.may_try(target):
                continue
            provider.budget.first()
            try:
                return await self._try(run, target, note)
            except UpstreamFailed as error:
                if error.final or run.deltas:
                    raise
                last, note = error, None
            log.info("upstream.fallback", request_id=run.request.id, upstream=target.upstream, reason=last.reason)
        if last is None:
            raise self._resting(targets)
        return await self._again(run, targets, last)

    async def _again(self, run: Run, targets: Sequence[Target], last: UpstreamFailed) -> Output:
        """Try an only target a second time, where its budget allows and nothing was paid; else raise `last`."""
        target = targets[0]
        provider = self._providers[target.upstream]
        paid = last.sent or last.lasting
        hopeless = paid or last.wide or last.reason in ("upstream_timeout", "upstream_limited")
        if len(targets) > 1 or run.request.legs or hopeless or not provider.may_try(target):
            raise last
        if not provider.budget.spend():
            raise last
        await asyncio.sleep(AGAIN_S)
        return await self._try(run, target, None)

    async def _try(self, run: Run, target: Target, note: Note | None) -> Output:
        provider = self._providers[target.upstream]
        call = Call(run, target, provider.spec, provider.link, Parcels(run, self._files), self._pool)
        way = provider.wire.way(call)
        async with provider.slots:
            if note is None and not provider.may_try(target):  # it has got worse while a slot was waited for
                raise self._resting([target])
            if run.request.task in AT_ONCE or not isinstance(way, Jobs):
                run.began()
                return await attempt(call, provider, cast(Direct, way).perform, self._worker)
            if self._notes is None:
                raise EngineError("This worker has no place to note jobs.")
            shop, jobs = Shop(self._notes, self._background), way
            self._noted.add((run.request.id, run.attempt))
            resumed = note is not None
            return await attempt(call, provider, lambda made: shop.run(made, jobs, note), self._worker, resumed=resumed)

    def _targets(self, run: Run) -> list[Target]:
        model = self._models[run.request.model]
        with_key = [target for target in model.targets if target.upstream in self._providers]
        found = ordered(with_key, run.request.only, lambda target: self._providers[target.upstream].error_rate(target))
        if not found:
            raise EngineError("None of this model's providers may be used for this request.")
        return found

    def _has_jobs(self, run: Run, targets: Sequence[Target]) -> bool:
        for target in targets:
            provider = self._providers[target.upstream]
            call = Call(run, target, provider.spec, provider.link, Parcels(run, self._files), self._pool)
            if isinstance(provider.wire.way(call), Jobs):
                return True
        return False

    async def _note(self, run: Run) -> Note | None:
        if self._notes is None:
            raise EngineError("This worker has no place to note jobs.")
        return await self._notes.find(run.request.id)

    def _noted_target(self, run: Run, note: Note) -> Target:
        """Find the target where a job was bought; where its route is gone, the upstream may still be known."""
        for target in self._models[run.request.model].targets:
            if (target.upstream, target.model) == (note.upstream, note.model) and target.upstream in self._providers:
                return target
        if note.upstream in self._providers:
            return Target(upstream=note.upstream, model=note.model)
        raise unknown(f"a job was bought at {note.upstream}, which this model no longer has")

    def _resting(self, targets: Sequence[Target]) -> UpstreamFailed:
        """Give the error for a request all of whose targets are left alone for now."""
        wait_s = min(self._providers[target.upstream].wait_s(target) for target in targets)
        limited = all(self._providers[target.upstream].is_limited(target) for target in targets)
        return UpstreamFailed(
            "The providers of this model are not answering; try again in a moment.",
            reason="upstream_limited" if limited else "upstream_error",
            detail=f"every breaker is open; the first closes in {wait_s:.0f} s",
            retry_after_s=wait_s,
        )

    def _files(self) -> Traffic:
        if self._traffic is None:
            self._traffic = Traffic(self._allowed, MediaLimits())
        return self._traffic

    def concluded(self, request_id: str, attempt: int, *, fenced: bool) -> None:
        """Forget the job of a request once its end stands; where it was fenced, its successor needs the note."""
        if (request_id, attempt) in self._noted:
            self._noted.discard((request_id, attempt))
            if not fenced and self._notes is not None:
                self._background.start(self._notes.forget(request_id))

    async def unload(self) -> None:
        """Wait a moment for what goes on, then close all connections."""
        await self._background.settle(UNLOAD_S)
        await self._transport.aclose()
        if self._traffic is not None:
            await self._traffic.close()
        self._models.clear()
