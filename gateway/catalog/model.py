"""The types of the catalog, as every other part reads them."""

from functools import cached_property
from typing import Any

import msgspec

from gateway.catalog.parameters import Checks, Parameter, compile_checks
from gateway.contract.pools import EngineName
from gateway.contract.tasks import Task
from gateway.pricing.policy import ChargeWhen, OutcomePolicy
from gateway.pricing.price import PriceComponent, PriceVersion

__all__ = [
    "Catalog",
    "ChargeWhen",
    "Model",
    "OutcomePolicy",
    "Parameter",
    "Pick",
    "Pool",
    "PriceVersion",
    "Route",
    "Snapshot",
]


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is good for: for whom, for what, and why in one line."""

    role: str
    use: str
    line: str


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve a model: a pool, with its order and weight."""

    pool: str
    order: int = 0
    weight: int = 1


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Workers that pull from one queue."""

    name: str
    engine: EngineName
    workers: int = 1
    """How many workers `faregate up` starts."""
    backlog: int = 10_000
    """How many requests may wait; more are answered 429."""
    lease_ms: int = 10_000
    attempts: int = 3
    """How often a request is taken before it is given up."""
    withdrawn: bool = False
    """No longer in the catalog, and still settled and swept until an apply finds no open request in it."""


class Model(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A catalog entry that can be called by name. `id` is its number in Postgres; 0 before it is applied."""

    name: str
    id: int = 0
    tasks: tuple[Task, ...]
    description: str
    price: PriceVersion | None = None
    """The version in force now; None is not for sale."""
    parameters: dict[str, Parameter] = {}
    routes: tuple[Route, ...]
    picks: tuple[Pick, ...] = ()
    outcome: OutcomePolicy = OutcomePolicy()
    deadline_s: int = 600
    context_tokens: int = 0
    """The longest input and output together; 0 where tokens mean nothing."""
    max_output_tokens: int = 0
    """The output taken for granted when a caller names no limit; 0 means what the context leaves."""
    prompt_overhead_tokens: int = 0
    """The most tokens that the chat template adds to each message, and once to the whole."""
    source: str = ""
    options: dict[str, Any] = {}

    @cached_property
    def checks(self) -> Checks:
        """What `gateway.catalog.validate` holds an input against, prepared once."""
        return compile_checks(self.tasks, self.parameters)


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """What a catalog file says: its models have no id and no price version yet."""

    pools: dict[str, Pool]
    models: dict[str, Model]
    prices: dict[str, tuple[PriceComponent, ...]]
    """Components by model name. A model without any is not for sale."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The catalog at one revision, as every gateway and settler holds it in memory."""

    revision: int
    models: dict[str, Model]
    pools: dict[str, Pool]
    prices: dict[int, PriceVersion]
    """Every version that an open request may have pinned."""
    model_names: dict[int, str]
    """Names by id, of withdrawn models too."""
    policies: dict[int, OutcomePolicy] = {}
    """Outcome policies by model id, of withdrawn and unlisted models too: what settlement needs."""
