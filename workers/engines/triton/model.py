"""What the models of all tasks share: where a model runs, and how a call to it is made."""

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec
from tritonclient.grpc import InferInput, InferRequestedOutput, InferResult

from gateway.contract.events import Output
from workers.engine import EngineError, EngineLost, Run
from workers.engines.triton.connection import Call, Connection, Signature


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a server."""

    connection: Connection
    name: str
    version: str
    signature: Signature
    silence_s: float

    def call(self, run: Run, inputs: Sequence[InferInput], outputs: Iterable[str], part: str) -> Call:
        """Make one of the calls of a request, under a name that the server's log shows."""
        return Call(
            model=self.name,
            version=self.version,
            id=f"{run.request.id}-{run.attempt}-{part}",
            inputs=inputs,
            outputs=[InferRequestedOutput(name) for name in outputs],
            silence_s=self.silence_s,
        )

    async def answer(self, run: Run, inputs: Sequence[InferInput], outputs: Iterable[str], part: str) -> InferResult:
        """Make a call and give its one response; of a model that sends previews, the last.

        Raises EngineError, RefusedInput and EngineLost.
        """
        last: InferResult | None = None
        async with aclosing(self.connection.infer(self.call(run, inputs, outputs, part))) as responses:
            async for response in responses:
                last = response
        if last is None:
            raise EngineError("The model gave no answer.")
        return last


class Model(Protocol):
    """A model that is ready to run."""

    def width(self, run: Run) -> int:
        """Say how many inferences a request is at once."""
        ...

    async def run(self, run: Run) -> Output:
        """Run a request. Raises RefusedInput, EngineError and EngineLost."""
        ...


def first_of(several: ExceptionGroup[Exception]) -> Exception:
    """Choose of the errors of one request that which says most: a lost engine, else the first."""
    lost = several.subgroup(EngineLost)
    return (lost or several).exceptions[0]
