"""Which models a key sees: those that it may call. Of any other nobody hears that it is there."""

from gateway.catalog.model import Model, Snapshot
from gateway.errors import NotFound
from gateway.flow.resolve import may_call
from gateway.ledger.keyring import Caller


def seen(caller: Caller, model: Model | None) -> Model:
    """Give the model that a name was found to mean. Raises NotFound, the same for no model and for one of others."""
    if model is None or not may_call(caller, model):
        raise NotFound("There is no such model. GET /v1/models lists those that can be called.", code="model_not_found")
    return model


def all_seen(snapshot: Snapshot, caller: Caller) -> list[Model]:
    """Give all models that a caller may call, by name."""
    models = [model for model in snapshot.models.values() if may_call(caller, model)]
    return sorted(models, key=lambda model: model.name)


def for_sale(snapshot: Snapshot, caller: Caller) -> list[Model]:
    """Give those of them that cost the caller something known, by name."""
    return [model for model in all_seen(snapshot, caller) if snapshot.price_for(model, caller.price_list_id)]
