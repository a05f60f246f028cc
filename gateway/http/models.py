"""`GET /v1/models`.

An OpenAI list whose rows say what each model does, costs and takes, and whether it can be called now.
"""

from typing import Annotated, Any

from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter

from gateway.catalog.discovery import model_row
from gateway.errors import NotFound
from gateway.flow.authenticate import identify
from gateway.flow.floor import Floor
from gateway.flow.way import Way
from gateway.http.native.requests import secret_of

ModelName = Annotated[str, PathParameter(description="The name; it may hold slashes")]


class ModelsController(Controller):
    """The models that can be called by name."""

    path = "/v1/models"
    tags = ("Models",)

    @get(summary="All models with tasks, prices, parameters and state")
    async def list_models(
        self, request: Request[Any, Any, State], way: NamedDependency[Way], floor: NamedDependency[Floor]
    ) -> dict[str, Any]:
        """List the models."""
        await identify(way.keyring, secret_of(request))
        models = sorted(way.snapshot().models.values(), key=lambda model: model.name)
        return {"object": "list", "data": [model_row(model, floor.workers_of(model)) for model in models]}

    @get("/{name:path}", summary="One model")
    async def show_model(
        self,
        request: Request[Any, Any, State],
        name: ModelName,
        way: NamedDependency[Way],
        floor: NamedDependency[Floor],
    ) -> dict[str, Any]:
        """Show one model."""
        await identify(way.keyring, secret_of(request))
        model = way.snapshot().models.get(name.lstrip("/"))
        if model is None:
            raise NotFound(
                "There is no such model. GET /v1/models lists those that can be called.", code="model_not_found"
            )
        return dict(model_row(model, floor.workers_of(model)))
