"""`/replicate/v1/models`, versions, deployments and the account, as Replicate's clients read them.

Every model is a deployment of itself: there is nothing to deploy here, and calls of deployments find the model.
"""

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from gateway.catalog.model import Model
from gateway.contract.inputs import INPUT_TYPES
from gateway.errors import NotFound
from gateway.http.dialect import Asking
from gateway.http.errors import replicate_body
from gateway.http.handlers import handlers_of
from gateway.http.replicate.names import OWNER, full_name, version_id
from gateway.http.replicate.predictions import Name, Owner, Replicate, Version
from gateway.http.replicate.views import PREFIX, output_schema
from gateway.http.seen import for_sale, seen
from gateway.ledger.keyring import Caller
from gateway.reports.query import UsageQuery
from gateway.reports.ranges import read_range
from gateway.reports.scope import Scope
from gateway.reports.usage import UsageReport

PAGE = 25
_REFS = "#/components/schemas/{name}"

Cursor = Annotated[str, QueryParameter(description="Where the page before ended", max_length=256)]


class ReplicateModelsController(Controller):
    """Models, versions, deployments, and whose key it is."""

    path = PREFIX
    tags = ("Replicate",)
    exception_handlers = handlers_of(replicate_body)

    @get("/models", summary="All models that can be called, a page at a time")
    async def list_models(
        self,
        request: Asking,
        replicate: NamedDependency[Replicate],
        usage_report: NamedDependency[UsageReport],
        cursor: Cursor = "",
    ) -> dict[str, Any]:
        """List models, by name."""
        caller = await replicate.caller(request)
        runs = await _runs(usage_report, caller.account_id)
        page, following = _page(replicate, caller, cursor, "models")
        results = [model_view(model, replicate.base, runs.get(model.name, 0)) for model in page]
        return {"previous": None, "next": following, "results": results}

    @get("/models/{owner:str}/{name:str}", summary="One model")
    async def show_model(
        self,
        request: Asking,
        owner: Owner,
        name: Name,
        replicate: NamedDependency[Replicate],
        usage_report: NamedDependency[UsageReport],
    ) -> dict[str, Any]:
        """Show one model."""
        caller = await replicate.caller(request)
        model = _model(replicate, caller, owner, name)
        runs = await _runs(usage_report, caller.account_id)
        return model_view(model, replicate.base, runs.get(model.name, 0))

    @get("/models/{owner:str}/{name:str}/versions", summary="The versions of a model: it has one")
    async def list_versions(
        self, request: Asking, owner: Owner, name: Name, replicate: NamedDependency[Replicate]
    ) -> dict[str, Any]:
        """List the versions of a model."""
        model = _model(replicate, await replicate.caller(request), owner, name)
        return {"previous": None, "next": None, "results": [version_view(model)]}

    @get("/models/{owner:str}/{name:str}/versions/{version:str}", summary="One version of a model")
    async def show_version(
        self, request: Asking, owner: Owner, name: Name, version: Version, replicate: NamedDependency[Replicate]
    ) -> dict[str, Any]:
        """Show one version."""
        model = _model(replicate, await replicate.caller(request), owner, name)
        if replicate.model(version) is not model:
            raise NotFound("This model has no such version.")
        return version_view(model)

    @get("/deployments", summary="All models, as deployments")
    async def list_deployments(
        self, request: Asking, replicate: NamedDependency[Replicate], cursor: Cursor = ""
    ) -> dict[str, Any]:
        """List models as deployments."""
        page, following = _page(replicate, await replicate.caller(request), cursor, "deployments")
        return {"previous": None, "next": following, "results": [_deployment(model) for model in page]}

    @get("/deployments/{owner:str}/{name:str}", summary="A model as a deployment")
    async def show_deployment(
        self, request: Asking, owner: Owner, name: Name, replicate: NamedDependency[Replicate]
    ) -> dict[str, Any]:
        """Show one model as a deployment."""
        return _deployment(_model(replicate, await replicate.caller(request), owner, name))

    @get("/account", summary="Whose key it is")
    async def account(self, request: Asking, replicate: NamedDependency[Replicate]) -> dict[str, Any]:
        """Show the account of the calling key."""
        caller = await replicate.caller(request)
        named = {"username": caller.account_name, "name": caller.account_name}
        return {"type": "organization", "github_url": None} | named


def model_view(model: Model, base: str, runs: int) -> dict[str, Any]:
    """Show a model; `run_count` is how often the asking account ran it in the last 30 days."""
    owner, name = full_name(model.name)
    return {
        "url": f"{base}/v1/models/{model.name}",
        "owner": owner,
        "name": name,
        "description": model.description,
        "visibility": "public",
        "github_url": None,
        "paper_url": None,
        "license_url": None,
        "run_count": runs,
        "cover_image_url": None,
        "default_example": None,
        "latest_version": version_view(model),
    }


def version_view(model: Model) -> dict[str, Any]:
    """Show the one version of a model, with schemas of its input and output."""
    since = model.price.valid_from if model.price else datetime.fromtimestamp(0, UTC)
    return {
        "id": version_id(model.name),
        "created_at": since.isoformat(),
        "cog_version": OWNER,
        "openapi_schema": _schema(model),
    }


def _schema(model: Model) -> dict[str, Any]:
    """Describe the input of a model's tasks, with its own limits and defaults, and what it puts out."""
    bodies, schemas = msgspec.json.schema_components([INPUT_TYPES[task] for task in model.tasks], ref_template=_REFS)
    own = {name: _limits(parameter) for name, parameter in model.parameters.items()}
    schemas["Input"] = {"anyOf": [*bodies], "properties": own}
    schemas["Output"] = output_schema(model.tasks[0])
    info = {"title": model.name, "version": version_id(model.name)[:12]}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}


def _limits(parameter: Any) -> dict[str, Any]:
    told = {"type": parameter.type, "default": parameter.default, "description": parameter.description}
    if parameter.type in ("integer", "number"):
        told |= {"minimum": parameter.minimum, "maximum": parameter.maximum}
    return {name: value for name, value in told.items() if value not in (None, "")} | (
        {"enum": list(parameter.choices)} if parameter.choices else {}
    )


def _deployment(model: Model) -> dict[str, Any]:
    owner, name = full_name(model.name)
    return {"owner": owner, "name": name, "current_release": None}


def _model(replicate: Replicate, caller: Caller, owner: str, name: str) -> Model:
    return seen(caller, replicate.model(f"{owner}/{name}"))


def _page(replicate: Replicate, caller: Caller, cursor: str, what: str) -> tuple[list[Model], str | None]:
    """Give a page of the models that a caller can call after a name, and the address of the next."""
    models = [model for model in for_sale(replicate.way.snapshot(), caller) if model.name > cursor]
    more = len(models) > PAGE
    following = f"{replicate.base}{PREFIX}/{what}?cursor={quote(models[PAGE - 1].name)}" if more else None
    return models[:PAGE], following


async def _runs(usage_report: UsageReport, account_id: int) -> dict[str, int]:
    span = read_range(None, None, datetime.now(UTC))
    rows = (
        await usage_report.read(UsageQuery(range=span, group_by=("model",), scope=Scope(account_id=account_id)))
    ).rows
    return {row.model: row.requests for row in rows if isinstance(row.model, str)}
