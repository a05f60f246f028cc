"""The types of the catalog, as every other part reads them."""

from functools import cached_property
from typing import Any

import msgspec

from gateway.catalog.parameters import Checks, Parameter, Refusals, compile_checks, compile_refusals, task_fields
from gateway.catalog.vendor import VendorFields, compile_vendor
from gateway.contract.pools import EngineName, ProtocolName
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
    "Sold",
    "Upstream",
    "Weights",
]


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is good for: for whom, for what, and why in one line."""

    role: str
    use: str
    line: str


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve a model: a pool of our own, or an upstream, with its order and weight."""

    pool: str
    """Of an upstream, the pool whose workers call it."""
    order: int = 0
    """The lowest that can serve is used; the others follow where it fails."""
    weight: int = 1
    """Among equals, requests are shared by weight."""
    upstream: str = ""
    """Empty for a pool of our own."""
    model: str = ""
    """Its name at the upstream."""
    fields: dict[str, str] = {}
    """How fields of the input are called there: see `gateway.contract.pools.Target`."""
    fixed: dict[str, Any] = {}
    """What is sent with each call."""
    cost: tuple[PriceComponent, ...] = ()
    """What the upstream charges the operator; recorded with each attempt, and charged to nobody."""


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that serves models elsewhere, called by the workers of a pool of the engine `upstream`."""

    name: str
    protocol: ProtocolName
    url: str
    pool: str
    timeout_s: int = 60
    """For one answer, or between two pieces of a stream; of a job, for each look at it."""
    concurrency: int = 256
    """The most calls and jobs that a worker has open there."""
    withdrawn: bool = False
    """No longer in the catalog, and still known to its workers until an apply finds no open request in its pool."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is made of, where its weights are open."""

    repository: str = ""
    """On Hugging Face."""
    parameters_b: str = ""
    """Billions of parameters, as a decimal."""
    precision: str = ""


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
    cost_picos_per_hour: int | None = None
    """What an hour of one of its workers costs the operator, in 1e-12 US dollars; None where nobody says."""
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
    aliases: tuple[str, ...] = ()
    """Other names it answers to, such as a vendor's `owner/name`."""
    weights: Weights = Weights()
    picks: tuple[Pick, ...] = ()
    outcome: OutcomePolicy = OutcomePolicy()
    deadline_s: int = 600
    context_tokens: int = 0
    """The longest input and output together; 0 where tokens mean nothing."""
    max_output_tokens: int = 0
    """The output taken for granted when a caller names no limit; 0 means what the context leaves."""
    prompt_overhead_tokens: int = 0
    """The most tokens that the chat template adds to each message, and once to the whole."""
    image_tokens: int = 0
    """The most tokens that one image in a message counts as; 0 where the model takes no images there."""
    audio_tokens_per_s: int = 0
    """The most tokens that a second of sound in a message counts as; 0 where the model takes none there."""
    source: str = ""
    options: dict[str, Any] = {}

    @cached_property
    def checks(self) -> Checks:
        """What `gateway.catalog.validate` holds an input against, prepared once."""
        return compile_checks(self.tasks, self.parameters)

    @cached_property
    def priced(self) -> tuple[str, ...]:
        """The parameters that a price may depend on: what conditions of price rows may look at."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.priced)

    @cached_property
    def vendor_fields(self) -> dict[str, Parameter]:
        """The parameters that are fields of none of its tasks: what callers write into `TaskInput.extra`."""
        known = {name for task in self.tasks for name in task_fields(task)}
        return {name: parameter for name, parameter in self.parameters.items() if name not in known}

    @cached_property
    def vendor_checks(self) -> VendorFields:
        """What `gateway.catalog.validate` holds the fields of this model alone against, prepared once."""
        return compile_vendor(self.vendor_fields)

    @cached_property
    def refusals(self) -> Refusals:
        """The fields of its tasks that it does not take."""
        return compile_refusals(self.tasks, self.parameters) if self.upstream_only else {}

    @cached_property
    def upstream_only(self) -> bool:
        """Whether nobody but upstreams serves it."""
        return bool(self.routes) and all(route.upstream for route in self.routes)


class Sold(msgspec.Struct, frozen=True):
    """What a model costs, as a file says it: the rows, and the least for a request."""

    rows: tuple[PriceComponent, ...] = ()
    minimum_nanos: int = 0


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """What a catalog file says: its models have no id and no price version yet."""

    pools: dict[str, Pool]
    models: dict[str, Model]
    prices: dict[str, tuple[PriceComponent, ...]]
    """Components by model name. A model without any is not for sale."""
    minimums: dict[str, int] = {}
    """The least for a request, in nanos, by model name; where none is named, nothing."""
    upstreams: dict[str, Upstream] = {}
    price_lists: dict[str, dict[str, Sold]] | None = None
    """What models cost in price lists, by list and model; None where the file says nothing of lists."""
    prices_as_of: int = 0
    """The newest price version that its writer knew of; 0 where the file does not say."""

    def sold(self, name: str) -> Sold:
        """Give the list price of a model."""
        return Sold(self.prices.get(name, ()), self.minimums.get(name, 0))


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The catalog at one revision, as every gateway and settler holds it in memory."""

    revision: int
    models: dict[str, Model]
    pools: dict[str, Pool]
    prices: dict[int, PriceVersion]
    """Every version that an open request may have pinned."""
    model_names: dict[int, str]
    """Names by id, of withdrawn models too."""
    upstreams: dict[str, Upstream] = {}
    aliases: dict[str, str] = {}
    """The names of models by their aliases."""
    price_lists: dict[int, dict[int, PriceVersion]] = {}
    """The versions in force of each price list, by list and model."""

    def price_for(self, model: Model, price_list_id: int | None) -> PriceVersion | None:
        """Give the version that counts for an account: that of its price list, else the list price; None for none."""
        if price_list_id is None:
            return model.price
        return self.price_lists.get(price_list_id, {}).get(model.id, model.price)

    @cached_property
    def costs(self) -> dict[tuple[str, str], tuple[PriceComponent, ...]]:
        """What upstreams charge the operator, by upstream and the model's name there."""
        routes = [route for model in self.models.values() for route in model.routes]
        return {(route.upstream, route.model): route.cost for route in routes if route.upstream and route.cost}

    def model(self, name: str) -> Model | None:
        """Find a model by its name or an alias; None where there is none."""
        found = self.models.get(name)
        if found is None and (alias := self.aliases.get(name)) is not None:
            return self.models.get(alias)
        return found
