"""A Triton server over gRPC: the only file that speaks to it.

Error texts of a server quote paths, stacks and inputs, so none of them goes to a caller; the server's own log has them.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, NoReturn

import grpc
import msgspec
from tritonclient.grpc import InferInput, InferRequestedOutput, InferResult
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from workers.engine import EngineError, EngineLost, RefusedInput
from workers.engines.triton.options import Address, BadModel

QUICK_S = 5.0
"""How long a server may take to say how it is."""
LOAD_S = 3600.0
"""How long a server may take to load a model."""
FAILED = "The model's server failed on this request."
GONE = "The model's server is gone."
TOO_LONG = re.compile(r"exceeds max\w* (input|sequence) length|must be less than max sequence length", re.IGNORECASE)
"""How TensorRT-LLM says that a prompt, or a prompt and its answer, do not fit."""
CHANNEL = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A server that restarts is found again within a second, not within the two minutes that are usual.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)


class Unreachable(Exception):
    """The server does not answer."""


class Tensor(msgspec.Struct, frozen=True):
    """A tensor as a model declares it. Of the shape, -1 may be any size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    optional: bool = False


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a model takes and gives."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    decoupled: bool
    """Whether it may send several responses to one request."""
    max_batch: int
    """The most items in one request; 0 where the first dimension is no batch."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One inference."""

    model: str
    version: str
    id: str
    inputs: Sequence[InferInput]
    outputs: Sequence[InferRequestedOutput]
    """Those that are wanted: the server sends no others."""
    silence_s: float


class Connection:
    """A channel to one server, for one event loop."""

    def __init__(self, address: Address) -> None:
        """Open it; nothing is sent yet. Raises OSError where a file of TLS cannot be read."""
        self._client = InferenceServerClient(
            address.url,
            ssl=address.tls,
            root_certificates=address.tls_ca or None,
            certificate_chain=address.tls_cert or None,
            private_key=address.tls_key or None,
            channel_args=CHANNEL,
        )

    async def close(self) -> None:
        """Close it."""
        await self._client.close()

    async def is_live(self) -> bool:
        """Say whether the server answers."""
        try:
            return bool(await self._client.is_server_live(client_timeout=QUICK_S))
        except InferenceServerException:
            return False

    async def is_ready(self, model: str, version: str) -> bool:
        """Say whether a model is ready. Raises Unreachable."""
        try:
            return bool(await self._client.is_model_ready(model, version, client_timeout=QUICK_S))
        except InferenceServerException as error:
            if _away(error):
                raise Unreachable from None
            return False

    async def state(self, model: str, version: str) -> tuple[str, str] | None:
        """Give the state of a model, of any version where none is named, and the reason; None where it is not known.

        Raises Unreachable.
        """
        try:
            index = await self._client.get_model_repository_index(client_timeout=QUICK_S)
        except InferenceServerException as error:
            if _away(error):
                raise Unreachable from None
            return None
        found = [
            (each.state, each.reason) for each in index.models if each.name == model and version in ("", each.version)
        ]
        return found[-1] if found else None

    async def load(self, model: str) -> None:
        """Have the server load a model. Raises Unreachable, and BadModel where it does not load."""
        try:
            await self._client.load_model(model, client_timeout=LOAD_S)
        except InferenceServerException as error:
            if _away(error):
                raise Unreachable from None
            raise BadModel(f"the server does not load it: {_first_line(error.message())}") from None

    async def signature(self, model: str, version: str) -> Signature:
        """Read what a model takes and gives. Raises Unreachable."""
        try:
            told = await self._client.get_model_metadata(model, version, client_timeout=QUICK_S)
            config = (await self._client.get_model_config(model, version, client_timeout=QUICK_S)).config
        except InferenceServerException:
            raise Unreachable from None
        optional = {each.name for each in config.input if each.optional}
        return Signature(
            inputs={each.name: _tensor(each, each.name in optional) for each in told.inputs},
            outputs={each.name: _tensor(each) for each in told.outputs},
            decoupled=config.model_transaction_policy.decoupled,
            max_batch=config.max_batch_size,
        )

    async def infer(self, call: Call) -> AsyncGenerator[InferResult, None]:
        """Run an inference and give its responses as they come. Closing the iterator cancels what is left of it.

        A stream is read to its end wherever there is one, after an error as well: to cancel what is about to end
        kills some releases of the server (triton-inference-server/server, issues 7368 and 8034), 2.51 one time in 200.

        Raises EngineError, RefusedInput and EngineLost.
        """
        answers = self._client.stream_infer(_once(call))
        ended = False
        failure: EngineError | RefusedInput | None = None
        try:
            while True:
                try:
                    async with asyncio.timeout(call.silence_s):
                        result, error = await anext(answers)
                except StopAsyncIteration:
                    ended = True
                    break
                except TimeoutError:
                    raise EngineError(f"The model's server said nothing for {call.silence_s:g} seconds.") from None
                except grpc.aio.AioRpcError:
                    ended = True
                    await self._give_up()
                if error is not None:
                    failure = failure or _failure(error.message() or "")
                elif failure is None:
                    yield result
        finally:
            if not ended:
                answers.cancel()
        if failure is not None:
            raise failure

    async def _give_up(self) -> NoReturn:
        """Tell a server that is gone from one that failed."""
        if await self.is_live():
            raise EngineError(FAILED)
        raise EngineLost(GONE)


async def _once(call: Call) -> AsyncIterator[dict[str, Any]]:
    yield {
        "model_name": call.model,
        "model_version": call.version,
        "request_id": call.id,
        "inputs": call.inputs,
        "outputs": call.outputs,
    }


def _failure(message: str) -> EngineError | RefusedInput:
    if TOO_LONG.search(message):
        return RefusedInput("The prompt and the answer that is asked for are too long for this model.")
    return EngineError(FAILED)


def _away(error: InferenceServerException) -> bool:
    return error.status() in ("StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED", "StatusCode.CANCELLED")


def _tensor(told: Any, optional: bool = False) -> Tensor:
    return Tensor(told.name, told.datatype, tuple(told.shape), optional)


def _first_line(text: str | None) -> str:
    return (text or "it does not say why").partition("\n")[0][:300]
