"""A job elsewhere: noted before it is bought, waited for, collected, and bought at most once."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import msgspec
import structlog

from gateway.contract.events import Output
from workers.engine import RefusedInput
from workers.engines.upstream.failures import UpstreamFailed, blocked, clean, refused
from workers.engines.upstream.notes import Note, Notes
from workers.engines.upstream.protocol import Call, Finding, Job, Jobs, Preparing

log = structlog.get_logger()

FIRST_LOOK_S = 0.5
LONGEST_LOOK_S = 5.0
LOOK_GROWTH = 1.4
LOOKS_FAIL_S = 300.0
"""How long no look at a job may succeed before it is given up: an upstream that is down may come back."""
MISSING_TRIES = 5
"""How many looks in a row may find no such job: some upstreams show a job late."""
COLLECT_TRIES = 4
CANCEL_S = 10.0
SUBMIT_AFTER_S = 120.0
"""How long the answer of a purchase is waited for whose request was stopped meanwhile."""
NOTE_POLL_S = 0.5
NOTE_GRACE_S = 5.0


def unknown(detail: str) -> UpstreamFailed:
    """Make the error for a job of which nobody can tell whether it was bought: it is not bought a second time."""
    text = "It is not known whether the provider took this request, so it is not sent again."
    return UpstreamFailed(text, reason="upstream_unknown", detail=detail)


class Background:
    """What goes on after its request has ended: purchases whose answer is on its way, and cancelling."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self, within_s: float) -> None:
        """Wait a while for what goes on."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)


class Shop:
    """Buys jobs and waits for them."""

    def __init__(self, notes: Notes, background: Background) -> None:
        self._notes = notes
        self._background = background

    async def run(self, call: Call, way: Jobs, note: Note | None) -> Output:
        """Run a call as a job: the noted one, or a new one. Raises UpstreamFailed or RefusedInput."""
        if note is None:
            job = await self._buy(call, way)
            call.taken()
        else:
            job = await self._noted(call, way, note)
        try:
            call.job = job.id
            job = await self._wait(call, way, job)
            return await self._collected(call, way, job)
        except asyncio.CancelledError:
            if call.run.stopped not in ("lost", "given_back"):
                self._background.start(_cancel(call, way, job))
            raise

    async def _noted(self, call: Call, way: Jobs, note: Note) -> Job:
        """Give the job that was bought before. A purchase that is perhaps still under way is waited for a while."""
        request_id = call.run.request.id
        call.run.began()
        until = asyncio.get_running_loop().time() + call.upstream.timeout_s + NOTE_GRACE_S
        found: Note | None = note
        while found is not None and found.job is None and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(NOTE_POLL_S)
            found = await self._notes.find(request_id)
        if found is None:
            raise unknown("another attempt has given the job up")
        if found.job is None:
            return await self._found(call, way, found)
        log.info("upstream.job_resumed", request_id=request_id, upstream=found.upstream, job=found.job.id)
        return found.job

    async def _found(self, call: Call, way: Jobs, note: Note) -> Job:
        """Look for a job whose id nobody has learnt, where its upstream knows our name for it."""
        if not isinstance(way, Finding):
            raise unknown("the purchase was noted, and no job's id")
        call.reference = note.reference
        job = await way.find(call)
        if job is None:
            log.info("upstream.job_never_bought", request_id=call.run.request.id, upstream=note.upstream)
            return await self._buy(call, way)
        await self._notes.keep(call.run.request.id, msgspec.structs.replace(note, job=job))
        return job

    async def _buy(self, call: Call, way: Jobs) -> Job:
        """Buy a job. It is noted before, and again with its id; a purchase that began is never broken off."""
        if isinstance(way, Preparing):
            await way.prepare(call)
        run, target = call.run, call.target
        call.reference = f"{run.request.id}-{run.attempt}-{len(run.steps)}"
        note = Note(upstream=target.upstream, model=target.model, reference=call.reference)
        await self._notes.intend(run.request.id, note)
        run.began()
        call.link = call.link.fresh()
        buying = asyncio.get_running_loop().create_task(self._submit(call, way, note))
        try:
            return await asyncio.shield(buying)
        except asyncio.CancelledError:
            self._background.start(self._after(call, way, buying))
            raise

    async def _submit(self, call: Call, way: Jobs, note: Note) -> Job:
        request_id = call.run.request.id
        try:
            job = await way.submit(call)
        except UpstreamFailed as error:
            if error.sent:
                return await self._recovered(call, way, note, error)
            await self._notes.forget(request_id)
            raise
        except RefusedInput:
            await self._notes.forget(request_id)
            raise
        await self._notes.keep(request_id, msgspec.structs.replace(note, job=job))
        log.info("upstream.job_bought", request_id=request_id, upstream=note.upstream, job=job.id)
        return job

    async def _recovered(self, call: Call, way: Jobs, note: Note, error: UpstreamFailed) -> Job:
        """Look for a job whose purchase had no answer, where its upstream knows our name for it."""
        if not isinstance(way, Finding):
            raise unknown(f"the purchase had no answer: {error.detail}")
        await asyncio.sleep(FIRST_LOOK_S)
        try:
            job = await way.find(call)
        except (UpstreamFailed, RefusedInput):
            raise unknown(f"the purchase had no answer, and cannot be looked for: {error.detail}") from None
        if job is None and error.reason == "upstream_timeout":
            raise unknown(f"the purchase had no answer, and may come late: {error.detail}")
        if job is None:
            await self._notes.forget(call.run.request.id)
            error.sent = False
            raise error
        await self._notes.keep(call.run.request.id, msgspec.structs.replace(note, job=job))
        return job

    async def _after(self, call: Call, way: Jobs, buying: "asyncio.Task[Job]") -> None:
        """See a purchase through whose request was stopped: its job is cancelled unless another attempt goes on."""
        await asyncio.wait({buying}, timeout=SUBMIT_AFTER_S)
        if not buying.done():
            buying.cancel()
            return
        goes_on = call.run.stopped in ("lost", "given_back")
        if not buying.cancelled() and buying.exception() is None and not goes_on:
            await _cancel(call, way, buying.result())

    async def _wait(self, call: Call, way: Jobs, job: Job) -> Job:
        """Look at a job until it has ended. The request's deadline cancels this."""
        loop = asyncio.get_running_loop()
        pause_s, heard_at, missing = FIRST_LOOK_S, loop.time(), 0
        fraction = -1.0
        while job.state in ("waiting", "running"):
            if job.fraction is not None and job.fraction > fraction:
                fraction = job.fraction
                call.run.progress(min(1.0, max(0.0, fraction)))
            await asyncio.sleep(_pause(job, pause_s))
            pause_s = min(pause_s * LOOK_GROWTH, LONGEST_LOOK_S)
            try:
                job = await way.look(call, job)
                heard_at, missing = loop.time(), 0
            except RefusedInput as error:
                missing += 1
                if missing >= MISSING_TRIES:
                    raise unknown(f"the upstream knows no such job: {clean(str(error))}") from None
            except UpstreamFailed as error:
                if error.final or loop.time() - heard_at > LOOKS_FAIL_S:
                    raise unknown(f"the job cannot be looked at: {error.detail}") from None
                pause_s = max(pause_s, min(error.retry_after_s or 0.0, 60.0))
        if job.state == "succeeded":
            return job
        await self._notes.forget(call.run.request.id)
        raise _ended(job)

    async def _collected(self, call: Call, way: Jobs, job: Job) -> Output:
        """Copy the results, a few times where that fails: they are paid for."""
        for number in range(COLLECT_TRIES):
            try:
                return await way.collect(call, job)
            except UpstreamFailed as error:
                if error.final or error.lasting or number == COLLECT_TRIES - 1:
                    error.final = True
                    raise
                await asyncio.sleep(min(error.retry_after_s or 0.0, 30.0) or FIRST_LOOK_S * 2**number)
        raise AssertionError("unreachable")


def _pause(job: Job, pause_s: float) -> float:
    if job.look_after_s is not None:
        return min(max(job.look_after_s, 0.05), 60.0)
    return pause_s * random.uniform(0.8, 1.0)


def _ended(job: Job) -> Exception:
    """Give the error of a job that did not succeed. The upstream does not serve what it has failed: another may."""
    said = clean(job.error)
    if job.reason == "blocked":
        return blocked(job.error)
    if job.reason == "refused_by_engine":
        return refused(job.error)
    if job.state == "cancelled":
        error = UpstreamFailed("The provider cancelled the job.", detail=f"the job was cancelled there: {said}")
    else:
        text = f"The provider's job failed: {said}" if said else "The provider's job failed."
        error = UpstreamFailed(text, reason=job.reason, detail=f"the job failed: {said}")
    error.lasting = True
    return error


async def _cancel(call: Call, way: Jobs, job: Job) -> None:
    """Stop a job at its upstream, as far as that can be done."""
    request_id = call.run.request.id
    try:
        async with asyncio.timeout(CANCEL_S):
            await way.cancel(call, job)
    except (UpstreamFailed, RefusedInput, TimeoutError) as error:
        log.warning("upstream.job_not_cancelled", request_id=request_id, job=job.id, error=type(error).__name__)
    else:
        log.info("upstream.job_cancelled", request_id=request_id, job=job.id)
