"""Step 9's statement: ended requests are charged, exactly once, a batch in one commit."""

import asyncio
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import asyncpg
import msgspec
import structlog

from gateway.contract.ids import request_id_of
from gateway.contract.phases import Phases
from gateway.contract.states import OUTCOMES, REASONS, Outcome, Reason
from gateway.contract.units import UNIT_NAMES, Units
from gateway.db.session import HotSession
from gateway.db.usage import PHASE_COLUMNS
from gateway.ledger.endings import Ending, mended
from gateway.ledger.steps import attempt_rows

log = structlog.get_logger()

KEEP_OUTPUT_S = 7 * 86400

_SETTLE = "select n, charge, hold from settle($1, $2, $3, $4, $5, $6, $7)"
_SETTLE_ONE = "select charge, hold from settle_one($1, $2, $3, $4, $5, $6, $7)"
_STILL_OPEN = (
    "select id, price_version_id, hold_nanos, terms,"
    " coalesce((select w.prices from request_way w where w.id = o.id), '{}') as others"
    " from open_request o where id = any ($1)"
)
_TERMS = "select id, terms from open_request where id = any ($1) and terms is not null"
_SETTLED = (
    "select id, price_version_id, charge_nanos, hold_nanos, outcome, reason, attempt,"
    f" {', '.join(UNIT_NAMES)}, {', '.join(PHASE_COLUMNS)} from usage where id = any ($1)"
)
_FIXED_COLUMNS = 7
_id = attrgetter("id")
_OUTCOME_NUMBERS = {outcome: number for number, outcome in enumerate(OUTCOMES)}
_REASON_NUMBERS = {reason: number for number, reason in enumerate(REASONS)}


class Charged(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in Postgres about an ended request, whoever settled it."""

    id: str
    charge_nanos: int
    hold_nanos: int
    price_version_id: int
    outcome: Outcome
    reason: Reason
    attempt: int
    units: Units
    phases: Phases
    first: bool
    """Whether this call settled it. False: it had been settled before, and these are the figures of then."""
    mismatch: bool = False
    """It is open still, pinned to `price_version_id` and `terms`, not to those it was rated at: nothing was charged."""
    terms: str | None = None
    """Of a mismatch, what its charge depends on beside units and price version, as JSON; None for nothing."""


class Settlement:
    """Settles over one connection, batch after batch; calls take turns. One in each settler process."""

    def __init__(self, database_url: str, *, keep_output_s: int = KEEP_OUTPUT_S) -> None:
        self._session = HotSession(database_url, name="faregate settlement")
        self._keep_output_s = keep_output_s
        self._turn = asyncio.Lock()

    async def settle(self, endings: Sequence[Ending]) -> list[Charged]:
        """Charge what is open; answer for what was settled before with its committed charge.

        Answers every id that was ever admitted, once, in no particular order. Where an id comes twice, its
        first ending counts. Raises Unavailable while Postgres is away: repeat it, nothing is charged twice.
        """
        by_id: dict[str, Ending] = {}
        for ending in endings:
            by_id.setdefault(ending.id, ending)
        if not by_id:
            return []
        async with self._turn:
            charged = await self._settle(list(by_id.values()))
            if len(charged) < len(by_id):
                settled = {row.id for row in charged}
                charged += await self._look_up([ending for ending in by_id.values() if ending.id not in settled])
        return charged

    async def terms(self, ids: Sequence[str]) -> dict[str, str]:
        """Give the terms of those of these requests that are open and have any. Raises Unavailable."""
        async with self._turn:
            rows = await self._session.fetch(_TERMS, [id_[4:] for id_ in ids])
        return {request_id_of(row["id"]): row["terms"] for row in rows}

    async def close(self) -> None:
        """Close the connection."""
        async with self._turn:
            await self._session.close()

    async def _settle(self, endings: list[Ending]) -> list[Charged]:
        try:
            if len(endings) == 1:
                return await self._settle_one(endings[0])
            endings.sort(key=_id)
            ids, versions = [ending.id[4:] for ending in endings], [ending.price_version_id for ending in endings]
            told = [(n, ending) for n, ending in enumerate(endings, 1) if ending.steps or ending.pool]
            attempts = [row for n, ending in told for row in attempt_rows(n, ending.steps)]
            ways = [way for n, ending in told if (way := _way(n, ending)) is not None]
            rows = await self._session.fetch(
                _SETTLE,
                ids,
                versions,
                [ending.terms for ending in endings],
                [_row(ending) for ending in endings],
                attempts,
                ways,
                self._keep_output_s,
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, UnicodeError) as error:
            if len(endings) == 1:
                return await self._settle_mended(endings[0], error)
            # One of them cannot be stored, and nothing has happened: let the others not wait for it.
            return [row for ending in endings for row in await self._settle([ending])]
        numbers, charges, holds = rows[0]
        return [_charged(endings[n - 1], charge, hold) for n, charge, hold in zip(numbers, charges, holds, strict=True)]

    async def _settle_one(self, ending: Ending) -> list[Charged]:
        attempts = attempt_rows(1, ending.steps) if ending.steps else []
        rows = await self._session.fetch(
            _SETTLE_ONE,
            ending.id[4:],
            ending.price_version_id,
            ending.terms,
            _row(ending),
            attempts,
            _way(1, ending),
            self._keep_output_s,
        )
        charge, hold = rows[0]
        return [] if hold is None else [_charged(ending, charge, hold)]

    async def _settle_mended(self, ending: Ending, error: Exception) -> list[Charged]:
        """Settle an ending that Postgres refused, with its figures and words made storable.

        Where that is refused too, it is left open, so that it does not stop all others for ever: the
        sweeper finds it, and the books show it.
        """
        log.error("settlement.mended", request_id=ending.id, error=type(error).__name__)
        try:
            return await self._settle_one(mended(ending))
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as refused:
            log.error("settlement.refused", request_id=ending.id, error=type(refused).__name__)
            return []

    async def _look_up(self, endings: list[Ending]) -> list[Charged]:
        """Find out why endings were not settled now: settled before, or pinned to another price version or terms."""
        ids = [ending.id[4:] for ending in endings]
        settled = await self._session.fetch(_SETTLED, ids)
        rows = [_from_usage(row) for row in settled]
        if len(rows) < len(ids):
            by_id = {ending.id: ending for ending in endings}
            still_open = await self._session.fetch(_STILL_OPEN, ids)
            rows += [_mismatch(by_id[request_id_of(row["id"])], row) for row in still_open]
        return rows


def _row(e: Ending) -> tuple[Any, ...]:
    """Give the fields of the type `ending` in types.sql."""
    u, p = e.units, e.phases
    return (
        e.charge_nanos,
        _OUTCOME_NUMBERS[e.outcome],
        _REASON_NUMBERS[e.reason],
        e.attempt,
        e.forward_began,
        e.worker,
        u.input_tokens,
        u.cached_tokens,
        u.output_tokens,
        u.reasoning_tokens,
        u.characters,
        u.images,
        u.pixels,
        u.steps,
        u.audio_ms,
        u.video_ms,
        p.queue_us,
        p.load_us,
        p.preprocess_us,
        p.transfer_us,
        p.forward_us,
        p.postprocess_us,
        p.store_us,
        e.output,
        e.detail or None,
        e.cost_nanos,
        e.gpu_us,
        e.route,
    )


def _way(n: int, ending: Ending) -> tuple[int, int | None, str] | None:
    """Give the fields of the type `way_end` in types.sql; None for an end where it was admitted to."""
    return (n, ending.model_id, ending.pool) if ending.pool else None


def _charged(ending: Ending, charge_nanos: int, hold_nanos: int) -> Charged:
    return Charged(
        id=ending.id,
        charge_nanos=charge_nanos,
        hold_nanos=hold_nanos,
        price_version_id=ending.price_version_id,
        outcome=ending.outcome,
        reason=ending.reason,
        attempt=ending.attempt,
        units=ending.units,
        phases=ending.phases,
        first=True,
    )


def _from_usage(row: Any) -> Charged:
    figures = tuple(row)
    units_end = _FIXED_COLUMNS + len(UNIT_NAMES)
    return Charged(
        id=request_id_of(row["id"]),
        charge_nanos=row["charge_nanos"],
        hold_nanos=row["hold_nanos"],
        price_version_id=row["price_version_id"],
        outcome=OUTCOMES[row["outcome"]],
        reason=REASONS[row["reason"]],
        attempt=row["attempt"],
        units=Units(*figures[_FIXED_COLUMNS:units_end]),
        phases=Phases(*figures[units_end:]),
        first=False,
    )


def _mismatch(ending: Ending, row: Any) -> Charged:
    pinned = ending.price_version_id in row["others"]
    return Charged(
        id=ending.id,
        charge_nanos=0,
        hold_nanos=row["hold_nanos"],
        price_version_id=ending.price_version_id if pinned else row["price_version_id"],
        outcome=ending.outcome,
        reason=ending.reason,
        attempt=ending.attempt,
        units=ending.units,
        phases=ending.phases,
        first=False,
        mismatch=True,
        terms=row["terms"],
    )
