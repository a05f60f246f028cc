"""What is done about queues and workers: pausing a pool, draining a worker, cancelling a request. Each asks first."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from gateway.admin.live.orders import Done, Orders
from gateway.admin.live.sampler import Sampler
from gateway.admin.live.snapshot import PoolLine, Snapshot, WorkerLine
from gateway.admin.site.figures import count, usd
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import NotFound
from gateway.ledger.audit import Actor

HOME = "/admin/queues"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An order about a pool or a worker: what is asked before, what is done, and what is said then."""

    path: str
    """Of the page that asks and of the action that does it, with `{name}` in it."""
    title: str
    button: str
    effects: Callable[[Snapshot, str], list[str]]
    """What it does, in figures. Raises NotFound."""
    give: Callable[[Orders, Snapshot, str, Actor], Awaitable[Done]]
    said: Callable[[Snapshot, str], str]


def order_pages(order: Order) -> tuple[HTTPRouteHandler, HTTPRouteHandler]:
    """Make the page and the action of an order."""
    path = order.path.replace("{name}", "{name:str}")

    @page(path, needs="owner", data=False)
    async def ask(view: NamedDependency[View], sampler: NamedDependency[Sampler], name: FromPath[str]) -> Response[Any]:
        effects = order.effects(await sampler.now(), name)
        title, act = order.title.format(name=name), order.path.format(name=name)
        return view.confirm(title=title, act=act, button=order.button, effects=effects, back=HOME)

    @action(path, needs="owner")
    async def give(
        view: NamedDependency[View],
        orders: NamedDependency[Orders],
        sampler: NamedDependency[Sampler],
        name: FromPath[str],
    ) -> Response[Any]:
        snapshot = await sampler.now()
        said = order.said(snapshot, name)
        done = await order.give(orders, snapshot, name, view.actor)
        return view.redirect(HOME, toast=said, audit_id=done.audit_id)

    return ask, give


def _pausing(snapshot: Snapshot, name: str) -> list[str]:
    line = _pool(snapshot, name)
    effects = [
        f"{count(line.running)} running finish, none is taken.",
        f"{count(line.waiting)} wait on, and more may come up to the pool's backlog; each until its own deadline.",
    ]
    return [*effects, f"{line.in_per_s:.1f} come in a second at present."] if line.in_per_s else effects


def _resuming(snapshot: Snapshot, name: str) -> list[str]:
    line = _pool(snapshot, name)
    return [f"{count(line.waiting)} wait; {count(line.capacity)} places are there to run them."]


def _draining(snapshot: Snapshot, name: str) -> list[str]:
    line = _worker(snapshot, name)
    pool = line.status.pool
    others = [one for one in snapshot.workers if one.status.pool == pool and one.stand in ("serving", "idle")]
    left = len([one for one in others if one.status.worker != name])
    return [
        f"{count(line.status.running)} running finish, none is taken.",
        f"{count(left)} other workers of {pool} go on."
        if left
        else f"No other worker of {pool} is there: what waits in it waits on.",
        "It stays up with its models loaded until you undo this, or stop it.",
    ]


def _undraining(snapshot: Snapshot, name: str) -> list[str]:
    line = _worker(snapshot, name)
    return [f"It takes from {line.status.pool} again with its next heartbeat, a second from now at most."]


async def _pause(orders: Orders, snapshot: Snapshot, name: str, by: Actor) -> Done:
    return await orders.pause(name, on=True, by=by)


async def _resume(orders: Orders, snapshot: Snapshot, name: str, by: Actor) -> Done:
    return await orders.pause(name, on=False, by=by)


async def _drain(orders: Orders, snapshot: Snapshot, name: str, by: Actor) -> Done:
    return await orders.drain(_worker(snapshot, name).status.pool, name, on=True, by=by)


async def _undrain(orders: Orders, snapshot: Snapshot, name: str, by: Actor) -> Done:
    return await orders.drain(_worker(snapshot, name).status.pool, name, on=False, by=by)


def _drained(snapshot: Snapshot, name: str) -> str:
    return f"{name} takes no more; {count(_worker(snapshot, name).status.running)} running finish."


@page("/admin/queues/requests/{request_id:str}/cancel", needs="owner", data=False)
async def ask_cancel(
    view: NamedDependency[View], orders: NamedDependency[Orders], request_id: FromPath[str]
) -> Response[Any]:
    """Ask before a request is stopped."""
    one = await orders.open_request(request_id)
    effects = [
        f"It is in {one.pool}. If it still waits, it is removed and {usd(one.hold_nanos)} go back to its account.",
        "If it runs, its worker stops it, and what was produced is charged as its model declares.",
        "Its caller is told that it was cancelled.",
    ]
    return view.confirm(
        title=f"Cancel {request_id}",
        act=f"{HOME}/requests/{request_id}/cancel",
        button="Cancel the request",
        danger=True,
        effects=effects,
        back=HOME,
    )


@action("/admin/queues/requests/{request_id:str}/cancel", needs="owner")
async def cancel(
    view: NamedDependency[View], orders: NamedDependency[Orders], request_id: FromPath[str]
) -> Response[Any]:
    """Stop a request."""
    done = await orders.cancel(request_id, by=view.actor)
    said = f"{request_id} is cancelled." if done.new else f"{request_id} had ended already, or is on its way."
    return view.redirect(HOME, toast=said, audit_id=done.audit_id, failed=not done.new)


def _pool(snapshot: Snapshot, name: str) -> PoolLine:
    line = snapshot.pool(name)
    if line is None:
        raise NotFound("There is no such pool.")
    return line


def _worker(snapshot: Snapshot, name: str) -> WorkerLine:
    line = snapshot.worker(name)
    if line is None:
        raise NotFound("There is no such worker any more.")
    return line


_POOL = f"{HOME}/pools/{{name}}"
_WORKER = f"{HOME}/workers/{{name}}"
ORDERS = (
    Order(
        path=f"{_POOL}/pause",
        title="Pause {name}",
        button="Pause the pool",
        effects=_pausing,
        give=_pause,
        said=lambda snapshot, name: f"{_pool(snapshot, name).name} is paused.",
    ),
    Order(
        path=f"{_POOL}/resume",
        title="Resume {name}",
        button="Resume the pool",
        effects=_resuming,
        give=_resume,
        said=lambda snapshot, name: f"{_pool(snapshot, name).name} goes on.",
    ),
    Order(
        path=f"{_WORKER}/drain",
        title="Drain {name}",
        button="Drain",
        effects=_draining,
        give=_drain,
        said=_drained,
    ),
    Order(
        path=f"{_WORKER}/undrain",
        title="Undo the drain of {name}",
        button="Let it take again",
        effects=_undraining,
        give=_undrain,
        said=lambda snapshot, name: f"{_worker(snapshot, name).status.worker} takes again.",
    ),
)
QUEUE_ORDERS = (*(each for order in ORDERS for each in order_pages(order)), ask_cancel, cancel)
