"""Step 5's statement: holds are set aside and requests opened, all that came together in one commit."""

from collections.abc import Callable, Sequence
from typing import Any

import asyncpg
import msgspec

from gateway.contract.ids import request_id_of
from gateway.contract.tasks import TASKS, Task
from gateway.db.accounts import MOST_NANOS
from gateway.db.session import HotSession
from gateway.db.webhooks import WebhookKind
from gateway.errors import (
    Conflict,
    FaregateError,
    InvalidRequest,
    PaymentRequired,
    Unauthorized,
    Unavailable,
    Unprocessable,
)
from gateway.ledger.batcher import AGAIN, Again, Batcher
from gateway.ledger.standing import Limit, Standing, broken
from gateway.money import MAX_NANOS, usd_text

MOST_WAITING = 4_000
"""Callers that wait for admission before more are refused: under half a second at full speed."""

_ADMIT = "select n, verdict, original, standing from admit($1, $2, $3, $4, $5, $6, $7)"
_ADMIT_ONE = "select admit_one($1, $2) as verdict"
_TASK_NUMBERS = {task: number for number, task in enumerate(TASKS)}


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A priced and routed request that asks to be admitted."""

    id: str
    account_id: int
    api_key_id: int
    model_id: int
    price_version_id: int
    pool: str
    task: Task
    hold_nanos: int
    deadline_s: int
    gateway: str
    keep: bool = False
    """Whether its output is kept in Postgres."""
    idempotency_key: str | None = None
    body_hash: bytes = b""
    """SHA-256 of the body; only looked at beside an idempotency key."""
    payload: bytes | None = None
    """What the sweeper needs to put it back into its queue; None where its gateway has it in memory only."""
    metadata: dict[str, str] | None = None
    """The caller's own; kept only beside a payload."""
    alternatives: tuple[int, ...] = ()
    """The price versions of the other ways that it may go: it may be charged at each of them."""
    plan: bytes | None = None
    """Its ways (`contract.request.Plan`), for the sweeper; only beside a payload."""
    webhook: str | None = None
    """Where the caller wants to be told of it; only beside a payload."""
    webhook_events: tuple[WebhookKind, ...] = ()
    """What of it is to be told."""
    tokens: int = 0
    """The most tokens that it can come to, in and out: what limits of tokens a minute count until it is settled."""
    terms: str | None = None
    """What its charge depends on beside units and price version (`pricing.terms`), as JSON; None for nothing."""
    limited: bool = False
    """Whether its account or key is thought to have limits. Postgres knows; a wrong guess costs a statement more."""


class Replay(msgspec.Struct, frozen=True):
    """The same call was made before with the same idempotency key, and has ended: this is its request."""

    request_id: str


_Answer = Replay | Standing
_STANDING: "msgspec.json.Decoder[Standing]" = msgspec.json.Decoder(tuple[Limit, ...])


class Admission:
    """Admits requests over one connection, batch after batch. One in each gateway process.

    `abandoned` is told of requests that were admitted after their caller had been cancelled: whoever
    wired this settles them as cancelled, else the sweeper ends them at their deadline.
    """

    def __init__(
        self,
        database_url: str,
        *,
        most: int = 128,
        abandoned: Callable[[Opening], None] | None = None,
    ) -> None:
        self._session = HotSession(database_url, name="faregate admission")
        self._abandoned = abandoned
        self._batcher: Batcher[Opening, _Answer] = Batcher(
            self._send, most=most, limit=MOST_WAITING, abandoned=self._tell_abandoned
        )

    async def admit(self, opening: Opening) -> Replay | Standing:
        """Set the hold aside and open the request; a Standing means it is open, and that has committed.

        Raises PaymentRequired (`insufficient_balance`, `budget_exceeded`), TooManyRequests (`rate_limit_exceeded`,
        `concurrency_limit_exceeded`), Conflict (`idempotency_in_flight`)
        and Unprocessable (`idempotency_mismatch`) with the first request's id, Unauthorized, or Unavailable:
        then the commit is unknown, and a repeat with the same idempotency key finds out.
        """
        if not 0 <= opening.hold_nanos <= MOST_NANOS:
            raise PaymentRequired("This request can cost more than any account can pay.")
        if opening.idempotency_key is not None and "\0" in opening.idempotency_key:
            raise InvalidRequest("An idempotency key holds no NUL.", param="Idempotency-Key")
        if opening.metadata and any("\0" in name or "\0" in value for name, value in opening.metadata.items()):
            raise InvalidRequest("Metadata hold no NUL.", param="metadata")
        return await self._batcher.submit(opening)

    async def close(self) -> None:
        """Answer who waits, then close the connection."""
        await self._batcher.close()
        await self._session.close()

    def _tell_abandoned(self, opening: Opening, answer: _Answer) -> None:
        if not isinstance(answer, Replay) and self._abandoned is not None:
            self._abandoned(opening)

    async def _send(self, openings: list[Opening]) -> Sequence[_Answer | BaseException | Again]:
        try:
            return await self._admit(openings)
        except Unavailable as error:
            return [Unavailable(error.message, retry_after_s=error.retry_after_s) for _ in openings]
        except (asyncpg.PostgresError, asyncpg.InterfaceError, msgspec.MsgspecError, UnicodeError) as error:
            if len(openings) == 1:
                return [error]
        # One of them cannot be stored, and nothing has happened: let it fail alone.
        return [(await self._send([opening]))[0] for opening in openings]

    async def _admit(self, openings: list[Opening]) -> list[_Answer | BaseException | Again]:
        first = openings[0]
        if len(openings) == 1 and _is_plain(first):
            rows = await self._session.fetch(_ADMIT_ONE, _row(first), first.gateway)
            verdict = rows[0]["verdict"]
            if verdict != "limited":
                return [() if verdict is None else _refusal(verdict, first, None, ())]
        now, later = _without_twins(openings)
        rows = await self._session.fetch(_ADMIT, *_arguments(now))
        answers: list[_Answer | BaseException | Again] = [()] * len(now)
        standings: dict[int, Standing] = {}
        refused: set[int] = set()
        for n, verdict, original, standing in rows:
            limits = _STANDING.decode(standing) if standing else ()
            if verdict == "standing":
                standings[n] = limits
            else:
                answers[n - 1] = _answer(verdict, now[n - 1], original, limits)
                refused.add(n - 1)
        if standings:
            for position, opening in enumerate(now):
                if position not in refused:
                    answers[position] = standings.get(opening.api_key_id, ())
        for position in later:
            answers.insert(position, AGAIN)
        return answers


def _is_plain(opening: Opening) -> bool:
    """Say whether nothing has to be written for it but the open request."""
    kept = opening.idempotency_key is not None or opening.payload is not None
    return not kept and not opening.limited and not opening.alternatives and opening.plan is None


def _without_twins(openings: list[Opening]) -> tuple[list[Opening], list[int]]:
    """Take out all but the first of those that share an idempotency key: the next batch finds out what became of it."""
    seen: set[tuple[int, str]] = set()
    later = []
    for position, opening in enumerate(openings):
        key = opening.idempotency_key
        if key is not None:
            if (opening.api_key_id, key) in seen:
                later.append(position)
            seen.add((opening.api_key_id, key))
    if not later:
        return openings, later
    return [opening for position, opening in enumerate(openings) if position not in later], later


def _arguments(openings: list[Opening]) -> tuple[Any, ...]:
    """Give the arguments of `admit.sql`."""
    payers: dict[tuple[int, int], list[int]] = {}
    callers: dict[tuple[int, int], list[int]] = {}
    keyed = []
    kept = []
    ways = []
    rows = []
    for opening in openings:
        account_id, key_id = opening.account_id, opening.api_key_id
        _add(payers, (account_id, account_id), opening)
        _add(callers, (key_id, account_id), opening)
        row = _row(opening)
        rows.append(row)
        if opening.idempotency_key is not None:
            keyed.append((len(rows), row[0], account_id, key_id, opening.idempotency_key, opening.body_hash))
        if opening.payload is not None:
            kept.append(_kept(row[0], opening))
        if opening.alternatives or opening.plan is not None:
            ways.append((row[0], opening.alternatives, opening.plan))
    return (
        rows,
        openings[0].gateway,
        _sums(payers),
        _sums(callers),
        keyed,
        kept,
        ways,
    )


def _add(sums: dict[tuple[int, int], list[int]], owner: tuple[int, int], opening: Opening) -> None:
    """Add an opening to what its owner asks for: hold, requests, tokens."""
    asked = sums.get(owner)
    if asked is None:
        sums[owner] = [opening.hold_nanos, 1, opening.tokens]
    else:
        asked[0] += opening.hold_nanos
        asked[1] += 1
        asked[2] += opening.tokens


def _sums(asked: dict[tuple[int, int], list[int]]) -> list[tuple[int, int, int, int, int]]:
    """Give rows of the type `hold_sum` in types.sql, by id."""
    return [
        (*owner, min(hold, MAX_NANOS), requests, min(tokens, MAX_NANOS))
        for owner, (hold, requests, tokens) in sorted(asked.items())
    ]


def _kept(id_: str, o: Opening) -> tuple[Any, ...]:
    """Give the fields of the type `kept_request` in types.sql."""
    metadata = msgspec.json.encode(o.metadata).decode() if o.metadata else None
    return id_, o.payload, metadata, o.webhook, o.webhook_events if o.webhook else None


def _row(o: Opening) -> tuple[Any, ...]:
    """Give the fields of the type `opening` in types.sql."""
    return (
        o.id[4:],
        o.account_id,
        o.api_key_id,
        o.hold_nanos,
        o.deadline_s,
        o.model_id,
        o.price_version_id,
        _TASK_NUMBERS[o.task],
        o.keep,
        o.pool,
        o.tokens,
        o.terms,
    )


def _answer(verdict: str, opening: Opening, original: Any, standing: Standing) -> _Answer | BaseException:
    if verdict == "replay":
        return Replay(request_id_of(original))
    return _refusal(verdict, opening, original, standing)


def _refusal(verdict: str, opening: Opening, original: Any, standing: Standing) -> FaregateError:
    limit = next((limit for limit in standing if limit.name == verdict), None)
    if limit is not None:
        return broken(limit, opening.hold_nanos, opening.tokens, standing)
    request_id = None if original is None else request_id_of(original)
    if verdict in ("balance", "budget"):
        most = f"which can cost up to {usd_text(opening.hold_nanos)} US dollars"
        if verdict == "balance":
            return PaymentRequired(f"The balance does not cover this request, {most}: top it up, or ask for less.")
        return PaymentRequired(
            f"The key's budget does not cover this request, {most}: raise it, or ask for less.", code="budget_exceeded"
        )
    if verdict == "in_flight":
        return Conflict(
            "A request with this idempotency key is under way: ask again when it has ended.",
            code="idempotency_in_flight",
            request_id=request_id,
            retry_after_s=1.0,
        )
    if verdict == "mismatch":
        return Unprocessable(
            "This idempotency key came before with another body: send a new key with a new request.",
            code="idempotency_mismatch",
            request_id=request_id,
        )
    return Unauthorized("No valid API key was given. Send it as 'Authorization: Bearer KEY'.")
