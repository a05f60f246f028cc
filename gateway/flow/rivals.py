"""The other models that could do the same: what `auto` chooses from, and what a refusal for its price names."""

import contextlib
from collections.abc import Callable, Iterator
from typing import cast

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.contract.inputs import MEDIA_FIELDS, Input
from gateway.contract.tasks import Task
from gateway.errors import FaregateError, InvalidRequest
from gateway.flow.authenticate import Authentic
from gateway.flow.call import Call
from gateway.flow.resolve import Resolved, input_of, may_call, resolve
from gateway.flow.stage import Staged
from gateway.flow.wish import Wish
from gateway.ledger.keyring import Caller
from gateway.pricing.quote import ceiling

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])

Serves = Callable[[Model], bool]
"""Says whether a model can be run now."""


def sold_for(snapshot: Snapshot, task: Task, caller: Caller) -> Iterator[Model]:
    """Give the models that do a task and are for sale to a caller whose key may call them, by name."""
    for name in sorted(snapshot.models):
        model = snapshot.models[name]
        for_sale = snapshot.price_for(model, caller.price_list_id) is not None
        if task in model.tasks and for_sale and may_call(caller, model):
            yield model


def resolve_as(snapshot: Snapshot, authentic: Authentic, name: str) -> Resolved:
    """Resolve a call as if it had named another model. Raises as `resolve`."""
    call = msgspec.structs.replace(authentic.call, model=name)
    return resolve(snapshot, msgspec.structs.replace(authentic, call=call))


def staged_like(staged: Staged, other: Resolved) -> Staged:
    """Give the same call for another model and the same task the media that were taken in for the first."""
    media = {name: getattr(staged.input, name) for name in MEDIA_FIELDS[type(staged.input)]}
    value: Input = msgspec.structs.replace(other.input, **media) if media else other.input
    return Staged(other.call, other.caller, other.model, other.price, other.task, value, staged.intake)


class Readings:
    """Resolves one call for many models that do one task.

    A native input is decoded once for all of them, and once more for each set of fields in it that are a model's own: a
    megabyte would else take six milliseconds for each model.
    """

    def __init__(self, snapshot: Snapshot, authentic: Authentic, task: Task) -> None:
        call = authentic.call
        self._snapshot = snapshot
        self._caller = authentic.caller
        self._call = msgspec.structs.replace(call, wish=msgspec.structs.replace(call.wish or Wish(), task=task))
        self._names: frozenset[str] | None = None
        self._read: dict[frozenset[str], tuple[Task, Input] | InvalidRequest] = {}

    def resolve(self, model: Model) -> Resolved:
        """Resolve the call as if it had named this model. Raises as `resolve`."""
        call = msgspec.structs.replace(self._call, model=model.name)
        if call.task is None:
            task, value = self._input(call, model)
            call = msgspec.structs.replace(call, task=task, input=value)
        elif not self._read:
            self._read[frozenset()] = call.task, _warmed(cast(Input, call.input))
        return resolve(self._snapshot, Authentic(call, self._caller))

    def _input(self, call: Call, model: Model) -> tuple[Task, Input]:
        own = self._given(call).intersection(model.vendor_fields)
        read = self._read.get(own)
        if read is None:
            try:
                task, value = input_of(call, model)
                read = task, _warmed(value)
            except InvalidRequest as error:
                read = error
            self._read[own] = read
        if isinstance(read, InvalidRequest):
            raise read
        return read

    def _given(self, call: Call) -> frozenset[str]:
        if self._names is None:
            try:
                self._names = frozenset(_OBJECT.decode(cast(msgspec.Raw, call.input)))
            except msgspec.ValidationError:
                self._names = frozenset()  # no object: whoever reads it says so
        return self._names


def _warmed(value: Input) -> Input:
    """Make the texts of an input keep their UTF-8, as CPython's strings do once it was asked for.

    Counting the bytes of a megabyte takes 1.4 ms the first time, and a tenth of that for each further model.
    """
    with contextlib.suppress(ValueError, OverflowError):
        msgspec.json.encode(value)
    return value


def _ceiling(staged: Staged) -> int:
    return ceiling(staged.model, staged.input, staged.price, staged.caller.discount_ppm).nanos


def cheapest(snapshot: Snapshot, staged: Staged, serves: Serves) -> tuple[str, int] | None:
    """Name the model that does the same at the lowest ceiling, and that in nanos; None where no other does it now."""
    best: tuple[int, str] | None = None
    readings = Readings(snapshot, Authentic(staged.call, staged.caller), staged.task)
    for model in sold_for(snapshot, staged.task, staged.caller):
        if model.name == staged.model.name or not serves(model):
            continue
        try:
            resolved = readings.resolve(model)
            nanos = _ceiling(staged_like(staged, resolved))
        except FaregateError:
            continue  # it does not take this input, or has no price for it
        if resolved.task == staged.task:
            best = min(best or (nanos, model.name), (nanos, model.name))
    return None if best is None else (best[1], best[0])
