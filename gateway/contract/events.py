"""What happens to a request between its queue and its end.

Each event is a tagged array (msgpack); the tag and the field order are the wire format: append, never
reorder. `Delta` and `Progress` are for whoever watches; `Ended` is the one terminal event, which money
depends on; `Settled` is the settler's word that the charge has committed.
"""

import msgspec

from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """The log-probability of one token, and of its rivals `(text, logprob)`."""

    token: str
    logprob: float
    top: list[tuple[str, float]] = []


class ToolCallDelta(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a tool call: id and name come with the first piece, arguments bit by bit."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class Started(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A worker has taken the request."""

    worker: str


class TextDelta(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A piece of text of one choice; `tokens` counts the tokens it stands for."""

    text: str
    tokens: int = 1
    choice: int = 0
    finish_reason: str | None = None
    reasoning: str | None = None
    logprobs: list[TokenLogprob] | None = None
    tool_calls: list[ToolCallDelta] | None = None


class AudioDelta(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The next bytes of an encoded audio file."""

    data: bytes


class Progress(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """How far an attempt is: `fraction` from 0 to 1."""

    fraction: float


Delta = TextDelta | AudioDelta


class Choice(msgspec.Struct, frozen=True, array_like=True):
    """One whole answer of a text model."""

    text: str
    finish_reason: str = "stop"
    reasoning: str | None = None
    logprobs: list[TokenLogprob] | None = None
    tool_calls: list[ToolCallDelta] | None = None


class TextOutput(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The choices of a chat or completion, in order."""

    choices: list[Choice]


class VectorOutput(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Embeddings: one vector an input text, each as little-endian float32 bytes of `dimensions` numbers."""

    vectors: list[bytes]
    dimensions: int


class MediaOutput(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """One media file: in `data` where a gateway waits for it, else in the blob store under the name `blob`."""

    media_type: str
    size_bytes: int
    data: bytes = b""
    blob: str = ""


Output = TextOutput | VectorOutput | MediaOutput


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The terminal event of one attempt: what it measured, and how it ended."""

    id: str
    attempt: int
    outcome: Outcome
    reason: Reason
    units: Units
    phases: Phases
    price: int
    """The price version of the request, as the worker received it."""
    worker: str = ""
    reply: str = ""
    output: Output | None = None
    detail: str = ""
    """What a caller may read about a failure; never a prompt, a path or a stack."""
    forward_began: bool = False
    """Whether the engine had begun its work: what a cancelled per-request price depends on."""


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The charge of a request has committed. The first settlement of an id is the only one."""

    id: str
    outcome: Outcome
    reason: Reason
    charge_nanos: int
    hold_nanos: int
    units: Units
    phases: Phases
    attempt: int


Event = Started | TextDelta | AudioDelta | Progress | Ended | Settled


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One event of one attempt on a reply channel.

    `seq` counts an attempt's deltas from 0 without a gap; -1 where order is no matter.
    """

    id: str
    attempt: int
    seq: int
    event: Event


_ENCODER = msgspec.msgpack.Encoder()
_FRAMES = msgspec.msgpack.Decoder(list[Frame])
_ENDED = msgspec.msgpack.Decoder(list[Ended])
_EVENT: "msgspec.msgpack.Decoder[Event]" = msgspec.msgpack.Decoder(Event)
_OUTPUT: "msgspec.msgpack.Decoder[Output]" = msgspec.msgpack.Decoder(Output)


def encode_frames(frames: list[Frame]) -> bytes:
    """Encode what one event-loop tick produced for one reply channel."""
    return _ENCODER.encode(frames)


def decode_frames(data: bytes) -> list[Frame]:
    """Decode one message of a reply channel."""
    return _FRAMES.decode(data)


def encode_ended(ended: list[Ended]) -> bytes:
    """Encode one entry of a settlements stream."""
    return _ENCODER.encode(ended)


def decode_ended(data: bytes) -> list[Ended]:
    """Decode one entry of a settlements stream."""
    return _ENDED.decode(data)


def encode_event(event: Event) -> bytes:
    """Encode one event of a kept request's event log."""
    return _ENCODER.encode(event)


def decode_event(data: bytes) -> Event:
    """Decode one event of a kept request's event log."""
    return _EVENT.decode(data)


def encode_output(output: Output) -> bytes:
    """Encode an output to be kept."""
    return _ENCODER.encode(output)


def decode_output(data: bytes) -> Output:
    """Decode a kept output."""
    return _OUTPUT.decode(data)
