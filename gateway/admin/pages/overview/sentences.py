"""Six sentences about the health of the system, each about one thing, and the worst first."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from gateway.admin.live.snapshot import Snapshot
from gateway.admin.site.figures import ago, count, duration, share
from gateway.admin.site.period import Period
from gateway.catalog.model import Snapshot as Catalog
from gateway.ledger.books.runs import BooksRun
from gateway.reports.budgets import NearBudgets
from gateway.reports.scope import Sums

Tone = Literal["bad", "warn", "good", "off"]
_ORDER: Sequence[Tone] = ("bad", "warn", "good", "off")
STALE_BOOKS_S = 26 * 3600
SLOW_WAIT_S = 30
HIGH_ERRORS, SOME_ERRORS = 50, 10
"""Of a thousand requests."""
_NAMED = 3


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in words, how good it is, and where there is more."""

    tone: Tone
    icon: str
    text: str
    href: str


def worst_first(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Put sentences in order."""
    return sorted(sentences, key=lambda sentence: _ORDER.index(sentence.tone))


def about_books(run: BooksRun | None, period: Period) -> Sentence:
    """Say whether the books add up."""
    if run is None:
        tone: Tone = "off"
        said = "The books have not been verified yet."
    elif not run.green:
        broken = list(dict.fromkeys(check.invariant for check in run.report.checks if check.verdict == "broken"))
        tone = "bad"
        said = f"The books do not add up: {', '.join(broken)} broken, seen {ago(run.at, period.now)}."
    else:
        tone = "good" if (period.now - run.at).total_seconds() < STALE_BOOKS_S else "warn"
        statements = len({check.invariant for check in run.report.checks})
        said = f"The books add up to the nano: {statements} statements hold, verified {ago(run.at, period.now)}."
    return Sentence(tone=tone, icon="book", text=said, href="/admin/books")


def about_errors(now: Sums, before: Sums, period: Period) -> Sentence:
    """Say how many requests failed."""
    if not now.requests:
        return Sentence(tone="off", icon="list", text="No request has ended in this range.", href="/admin/requests")
    permille = now.errors * 1000 // now.requests
    tone: Tone = "bad" if permille >= HIGH_ERRORS else "warn" if permille >= SOME_ERRORS else "good"
    part = share(now.errors, now.requests) if now.errors else "None"
    said = f"{part} of {count(now.requests)} requests failed"
    if before.requests:
        said += f"; {period.before_title} it was {share(before.errors, before.requests)}"
    return Sentence(tone=tone, icon="alert" if now.errors else "list", text=f"{said}.",
                    href="/admin/requests?outcome=failed")  # fmt: skip


def about_waiting(snapshot: Snapshot) -> Sentence:
    """Say how long the oldest waits."""
    if snapshot.away:
        said = "Redis is away, so nobody can say what waits."
        return Sentence(tone="bad", icon="queue", text=said, href="/admin/queues")
    waiting = [(pool.oldest_at, pool) for pool in snapshot.pools if pool.oldest_at is not None]
    paused = [pool.name for pool in snapshot.pools if pool.paused]
    if not waiting:
        said, tone = "Nothing waits.", "good"
    else:
        oldest_at, pool = min(waiting, key=lambda one: one[0])
        waits_s = (snapshot.at - oldest_at).total_seconds()
        many = sum(each.waiting for each in snapshot.pools)
        said = f"The oldest of {count(many)} waiting requests has waited {duration(waits_s)}, in {pool.name}."
        tone = "warn" if waits_s >= SLOW_WAIT_S else "good"
    if paused:
        said, tone = f"{said[:-1]}; {_named(paused)} paused.", "warn"
    return Sentence(tone="warn" if tone == "warn" else "good", icon="queue", text=said, href="/admin/queues")


def about_workers(snapshot: Snapshot) -> Sentence:
    """Say whether all workers live, and whether every pool has one."""
    workers = snapshot.workers
    silent = [line.status.worker for line in workers if line.stand == "silent"]
    live = [line for line in workers if line.stand not in ("silent", "failed")]
    bare = [pool.name for pool in snapshot.pools if not any(line.stand != "silent" for line in pool.workers)]
    tone: Tone = "good"
    said = f"{count(len(live))} workers live, in {count(len(snapshot.pools) - len(bare))} pools"
    if bare:
        tone = "bad" if any(pool.waiting for pool in snapshot.pools if pool.name in bare) else "warn"
        said += f"; none in {_named(bare)}"
    if silent:
        tone = "bad" if tone == "bad" else "warn"
        said += f"; {_named(silent)} silent"
    return Sentence(tone=tone, icon="pulse", text=f"{said}.", href="/admin/queues")


def about_budgets(near: NearBudgets) -> Sentence:
    """Say which budgets are nearly spent."""
    if not near.many:
        return Sentence(tone="good", icon="key", text="No budget is at 80% or more.", href="/admin/keys")
    others = f"{count(near.many)} budgets are" if near.many > 1 else "One budget is"
    said = f"{others} at 80% or more; the fullest is that of {near.name}, at {near.percent}%."
    href = "/admin/keys" if near.kind == "key" else "/admin/accounts"
    return Sentence(tone="bad" if near.percent >= 100 else "warn", icon="key", text=said, href=href)


def about_prices(catalog: Catalog) -> Sentence:
    """Say which models have no price, and so cannot be called."""
    unpriced = sorted(name for name, model in catalog.models.items() if model.price is None)
    many = len(catalog.models)
    if not unpriced:
        return Sentence(tone="good", icon="cube", text=f"All {count(many)} models have a price.", href="/admin/models")
    have = "has" if len(unpriced) == 1 else "have"
    said = f"{count(len(unpriced))} of {count(many)} models {have} no price and cannot be called: {_named(unpriced)}."
    return Sentence(tone="warn", icon="cube", text=said, href="/admin/models")


def _named(names: Sequence[str]) -> str:
    """Name the first few."""
    shown = list(names[:_NAMED])
    return ", ".join(shown) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
