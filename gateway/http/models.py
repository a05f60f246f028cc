"""`GET /v1/models`.

An OpenAI list whose rows say what each model does, costs and takes, and whether it can be called now.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, get_args

import msgspec
from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.params import PathParameter, QueryParameter

from gateway.catalog.discovery import model_row
from gateway.catalog.model import Model, Snapshot
from gateway.catalog.typical import typical_attos
from gateway.contract.tasks import TASKS, Task
from gateway.errors import InvalidRequest
from gateway.flow.authenticate import identify
from gateway.flow.floor import Floor
from gateway.flow.way import Way
from gateway.flow.wish import Sort
from gateway.http.native.requests import secret_of
from gateway.http.seen import all_seen, seen
from gateway.ledger.keyring import Caller
from gateway.money import ATTOS_PER_PICO, parse_price
from gateway.routing.choice import Routes

ModelName = Annotated[str, PathParameter(description="The name or an alias; it may hold slashes")]
TaskName = Annotated[str | None, QueryParameter(description="Only models that do this task")]
Role = Annotated[
    str | None, QueryParameter(description="Only models picked for this role, whatever the case of its letters")
]
MaxPrice = Annotated[
    str | None, QueryParameter(description="Only models whose typical request costs at most so many US dollars")
]
SortName = Annotated[
    str | None, QueryParameter(description="By what to sort: price, name (the default), latency, throughput")
]

SORTS = ("name", *get_args(Sort))


class Wanted(msgspec.Struct, frozen=True):
    """Which models a list is to hold, and in which order."""

    task: Task | None
    most_attos: int | None
    """What a typical request may cost."""
    role: str | None
    sort: str


def wanted_of(
    task: TaskName = None,
    max_price: MaxPrice = None,
    role: Role = None,
    sort: SortName = None,
) -> Wanted:
    """Read the query of a list. Raises InvalidRequest."""
    if sort is not None and sort not in SORTS:
        raise InvalidRequest(f"sort must be one of: {', '.join(SORTS)}.", param="sort")
    return Wanted(_task(task), _limit(max_price), role, sort or "name")


class ModelsController(Controller):
    """The models that can be called by name."""

    path = "/v1/models"
    tags = ("Models",)
    dependencies = {"wanted": Provide(wanted_of, sync_to_thread=False)}

    @get(summary="All models with tasks, prices, parameters and state")
    async def list_models(
        self,
        request: Request[Any, Any, State],
        way: NamedDependency[Way],
        floor: NamedDependency[Floor],
        wanted: NamedDependency[Wanted],
    ) -> dict[str, Any]:
        """List the models that fit."""
        caller = await identify(way.keyring, secret_of(request))
        snapshot = way.snapshot()
        listed = [_for(snapshot, each, caller) for each in all_seen(snapshot, caller)]
        models = [model for model in listed if _fits(model, wanted)]
        models.sort(key=_sorting(wanted, way.routes))
        return {"object": "list", "data": [_row(model, way, floor, caller) for model in models]}

    @get("/{name:path}", summary="One model")
    async def show_model(
        self,
        request: Request[Any, Any, State],
        name: ModelName,
        way: NamedDependency[Way],
        floor: NamedDependency[Floor],
    ) -> dict[str, Any]:
        """Show one model."""
        caller = await identify(way.keyring, secret_of(request))
        model = seen(caller, way.snapshot().model(name.lstrip("/")))
        return _row(_for(way.snapshot(), model, caller), way, floor, caller)


def _for(snapshot: Snapshot, model: Model, caller: Caller) -> Model:
    """Give a model with the price that the caller's account pays."""
    price = snapshot.price_for(model, caller.price_list_id)
    return model if price is model.price else msgspec.structs.replace(model, price=price)


def _row(model: Model, way: Way, floor: Floor, caller: Caller) -> dict[str, Any]:
    return dict(model_row(model, floor.workers_of(model), way.routes.times(model), caller.discount_ppm))


def _task(name: str | None) -> Task | None:
    found = next((task for task in TASKS if task == name), None)
    if name is not None and found is None:
        raise InvalidRequest(f"task must be one of: {', '.join(TASKS)}.", param="task")
    return found


def _limit(usd: str | None) -> int | None:
    """Read a price in US dollars as attos."""
    if usd is None:
        return None
    try:
        return parse_price(usd) * ATTOS_PER_PICO
    except ValueError as error:
        raise InvalidRequest(f"max_price: {error}", param="max_price") from None


def _fits(model: Model, wanted: Wanted) -> bool:
    role = wanted.role.casefold() if wanted.role is not None else None
    if wanted.task is not None and wanted.task not in model.tasks:
        return False
    if role is not None and not any(pick.role.casefold() == role for pick in model.picks):
        return False
    if wanted.most_attos is None:
        return True
    typical = typical_attos(model, wanted.task)
    return typical is not None and typical <= wanted.most_attos


def _sorting(wanted: Wanted, routes: Routes) -> Callable[[Model], tuple[float, str]]:
    """Give the key of a sort; models of which nothing is known come last, and equals by name."""

    def badness(model: Model) -> float:
        if wanted.sort == "price":
            typical = typical_attos(model, wanted.task)
            return math.inf if typical is None else typical
        if wanted.sort == "latency":
            return routes.soonest_s(model)
        if wanted.sort == "throughput":
            return -routes.throughput(model) or math.inf
        return 0.0

    return lambda model: (badness(model), model.name)
