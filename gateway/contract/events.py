"""What happens to a request between its queue and its end.

Each event is a tagged array (msgpack); the tag and the field order are the wire format: append, never
reorder. `Delta` and `Progress` are for whoever watches; `Ended` is the one terminal event, which money
depends on; `Settled` is the settler's word that the charge has committed.
"""

from collections.abc import Sequence

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


class ImageDelta(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A preview of an image that is being drawn, as an encoded file."""

    data: bytes
    media_type: str
    index: int = 0
    """Which of the images that were asked for."""
    preview: int = 0
    """Which of its previews, from 0."""


Delta = TextDelta | AudioDelta | ImageDelta


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
    width: int = 0
    height: int = 0
    duration_ms: int = 0
    frames: int = 0
    seed: int | None = None
    role: str = ""
    """Empty for what was asked for; `thumbnail` for the small picture that stands for a video."""


class GalleryOutput(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Several media files: the images of one call, or a video and its thumbnail."""

    items: list[MediaOutput]


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a transcript: from when to when, in milliseconds, and what was said."""

    start_ms: int
    end_ms: int
    text: str


class TranscriptOutput(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """What was said in a sound file."""

    text: str
    language: str = ""
    duration_ms: int = 0
    segments: list[Segment] = []
    words: list[Segment] = []


class RankingOutput(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Documents in order, the best first: `(index, relevance)`, relevance from 0 to 1."""

    results: list[tuple[int, float]]


Output = TextOutput | VectorOutput | MediaOutput | GalleryOutput | TranscriptOutput | RankingOutput


def media_of(output: Output | None) -> Sequence[MediaOutput]:
    """Give the media files of an output; none where it has none."""
    if isinstance(output, MediaOutput):
        return [output]
    return output.items if isinstance(output, GalleryOutput) else []


def asked_for(output: Output | None) -> list[MediaOutput]:
    """Give the files that were asked for, without the small pictures that stand for them."""
    return [item for item in media_of(output) if not item.role]


class Step(msgspec.Struct, frozen=True, array_like=True):
    """An attempt inside a request, for the trace and its cost.

    It is a step of a workflow, a call of an upstream, or an attempt in another pool before the request was handed on.
    """

    name: str
    """Of the workflow's step, or of the upstream; empty for an attempt in a pool of our own."""
    model: str
    """The catalog's name; of an upstream, its own."""
    request: str
    """The id under which it ran: of a workflow's step, or of the upstream's job; empty where it had none."""
    pool: str
    worker: str
    attempt: int
    outcome: Outcome
    reason: Reason
    units: Units
    phases: Phases
    upstream: bool = False
    """Whether `name` is an upstream."""
    cost_nanos: int | None = None
    """What the upstream says that it charges; None where it does not say."""
    estimated: bool = False
    """Whether the units are an estimate, since the upstream gave none."""
    detail: str = ""
    """Why it failed, as the operator may read it; never a prompt or a key."""
    gpu_us: int = 0
    """Its share of the time of the worker that ran it."""


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
    steps: list[Step] = []
    """What it ran or tried, in the order of their ends."""
    parent: str = ""
    """The workflow's request that this was a step of: such an end is not settled."""
    pool: str = ""
    """The pool it ended in, where it was handed on from another."""
    gpu_us: int = 0
    """Its share of the time of the worker that ran it, beside whatever ran there with it."""


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


Event = Started | TextDelta | AudioDelta | ImageDelta | Progress | Ended | Settled


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
