"""What a worker sees of Triton: the models of one server, as many requests at once as each may get."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path

from gateway.contract.events import Output
from gateway.contract.pools import ModelState, ServedModel
from workers.engine import EngineError, EngineLost, Report, Run
from workers.engines.triton.connection import Connection, Signature
from workers.engines.triton.images import ImageModel
from workers.engines.triton.model import Model, Place
from workers.engines.triton.options import Address, BadModel, Kind, TritonOptions, kind_of, options_of
from workers.engines.triton.readiness import Watch, Watched, await_model
from workers.engines.triton.text import TextModel
from workers.engines.triton.vectors import VectorModel

MODELS: dict[Kind, type[TextModel] | type[VectorModel] | type[ImageModel]] = {
    "text": TextModel,
    "vector": VectorModel,
    "image": ImageModel,
}


class _Loaded:
    """A model that is ready, and how many inferences it has to do."""

    __slots__ = ("limit", "live", "model", "watched")

    def __init__(self, model: Model, limit: int, watched: Watched) -> None:
        self.model = model
        self.limit = limit
        self.watched = watched
        self.live = 0


class TritonEngine:
    """An engine that hands requests to a Triton server.

    When the server is gone its requests fail with `engine_lost`, and the worker ends. The next one waits for the
    server while requests wait in the queue, so a server may be restarted at any time. All models of a pool are on one
    server, and share its queue: `capacity` is that of the fullest of them.
    """

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir
        self._models: dict[str, _Loaded] = {}
        self._connection: Connection | None = None
        self._watch: Watch | None = None
        self._watching: asyncio.Task[None] | None = None

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Wait for the server, check each model against it, and report each as `ready` or `failed`."""
        address: Address | None = None
        loads: list[Coroutine[None, None, None]] = []
        for model in models:
            try:
                options = options_of(model)
                if address not in (None, options.address):
                    raise BadModel("it is on another server than its pool's other models: give it a pool of its own")
                connection = self._connection = self._connection or _connect(options)
                address = options.address
                loads.append(self._load(connection, model, options, report))
            except BadModel as error:
                report(model.name, ModelState(state="failed", detail=str(error)))
        await asyncio.gather(*loads)
        if self._connection is not None and self._models:
            watched = {name: loaded.watched for name, loaded in self._models.items()}
            self._watch = Watch(self._connection, watched, report)
            self._watching = asyncio.create_task(self._watch.run())

    async def _load(self, connection: Connection, model: ServedModel, options: TritonOptions, report: Report) -> None:
        name = options.model_name or model.name
        report(model.name, ModelState(state="loading"))
        try:
            signature = await await_model(
                connection,
                name,
                options,
                lambda waits_for: report(model.name, ModelState(state="loading", detail=waits_for)),
            )
            _check_tensors(signature, options)
            place = Place(
                connection=connection,
                name=name,
                version=options.model_version,
                signature=signature,
                silence_s=options.silence_s,
            )
            made = await MODELS[kind_of(model)].make(model, options, place, self._models_dir)
        except BadModel as error:
            report(model.name, ModelState(state="failed", detail=str(error)))
            return
        ready = ModelState(state="ready", context_tokens=options.context_tokens or 0)
        watched = Watched(name=name, version=options.model_version, ready=ready)
        self._models[model.name] = _Loaded(made, options.max_concurrency, watched)
        report(model.name, ready)

    def capacity(self) -> int:
        """Say how many more requests of any model could start now."""
        return max(0, min((each.limit - each.live for each in self._models.values()), default=0))

    async def run(self, run: Run) -> Output:
        """Execute one request. Raises RefusedInput, EngineError or EngineLost."""
        loaded = self._models.get(run.request.model)
        if loaded is None:
            raise EngineError("This model is not loaded.")
        width = loaded.model.width(run)
        loaded.live += width
        try:
            return await loaded.model.run(run)
        finally:
            loaded.live -= width

    def failure(self) -> EngineLost | None:
        """Say that the server is gone."""
        return None if self._watch is None else self._watch.lost

    async def unload(self) -> None:
        """Let go of the server, which keeps its models."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        if self._connection is not None:
            await self._connection.close()
        self._models.clear()


def _connect(options: TritonOptions) -> Connection:
    try:
        return Connection(options.address)
    except OSError as error:
        raise BadModel(f"a file of tls cannot be read: {error.strerror}") from None


def _check_tensors(signature: Signature, options: TritonOptions) -> None:
    """Check that the tensors of the catalog are the model's, and that it gets all that it needs. Raises BadModel."""
    given = {*options.inputs, *options.constants}
    unknown = sorted(given - set(signature.inputs))
    if unknown:
        raise BadModel(f"the model has no input {unknown[0]}, but {', '.join(signature.inputs)}")
    unknown = sorted(set(options.outputs) - set(signature.outputs))
    if unknown:
        raise BadModel(f"the model has no output {unknown[0]}, but {', '.join(signature.outputs)}")
    if not options.outputs:
        return
    missing = [each.name for each in signature.inputs.values() if not each.optional and each.name not in given]
    if missing:
        raise BadModel(f"the model needs {missing[0]}: say in inputs or constants what it gets")
