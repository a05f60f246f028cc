"""The types of the catalog, as every other part reads them."""

from typing import Any, Literal

import msgspec

from gateway.contract.pools import EngineName
from gateway.contract.tasks import Task
from gateway.pricing.price import PriceVersion

ChargeWhen = Literal["nothing", "produced", "full"]
"""What an outcome costs: nothing; the units produced (a per-request price once its forward phase began); or the price of the hold."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a model's input: its type, default and limits, tighter than the task's own."""

    type: Literal["integer", "number", "string", "boolean", "array", "object"]
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()
    priced: bool = False
    """Whether the price depends on it."""
    description: str = ""


class OutcomePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a request costs that did not succeed."""

    failed: ChargeWhen = "nothing"
    cancelled: ChargeWhen = "produced"
    expired: ChargeWhen = "produced"


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


class Model(msgspec.Struct, frozen=True, kw_only=True):
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


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The catalog at one revision, as every gateway and settler holds it in memory."""

    revision: int
    models: dict[str, Model]
    pools: dict[str, Pool]
    prices: dict[int, PriceVersion]
    """Every version that an open request may have pinned."""
    model_names: dict[int, str]
    """Names by id, of withdrawn models too."""
