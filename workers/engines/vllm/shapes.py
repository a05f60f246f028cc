"""What passes between the adapter and the rest: prompts and drawings in, steps out.

`Step` and `StepChoice` describe the attributes of vLLM's `RequestOutput` and `CompletionOutput` that
are read here; they are passed on as they come, since there is one for every token.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from workers.engines.vllm.serving import Adapter

Kind = Literal["json", "json_object", "regex", "choice"]


class Constraint(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer must look like. `value` is a JSON schema as text, a regular expression, or a list of texts."""

    kind: Kind
    value: str | list[str] = ""


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn. A field that is None takes the model's own default."""

    n: int = 1
    max_tokens: int
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: list[str] = []
    ignore_eos: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    constraint: Constraint | None = None
    keep_special: bool = False
    """Whether special tokens stay in the text, as some tool parsers need it."""
    stream: bool = False
    """Whether steps come as tokens do; else there is one, the last."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Whose prompt it is, and by which of the names that a process serves it was called."""

    account: int
    model: str

    @property
    def salt(self) -> str:
        """What keeps the cached prefixes of accounts apart: a hit costs less, and would tell one of another's."""
        return f"account-{self.account}"


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as token ids, ready for the engine."""

    ids: list[int]
    ready: Any
    """vLLM's own form of it."""
    origin: Origin
    pooling: Any = None
    """How vLLM is to judge a pair."""


class Pooled(msgspec.Struct, frozen=True, kw_only=True):
    """What a pooling model makes of a text: little-endian float32 numbers."""

    numbers: bytes
    cached_tokens: int = 0


Scoring = Literal["pairs", "vectors"]
"""How a model ranks: it reads query and document together, or gives a vector for each."""


class Chances(Protocol):
    """The log-probability of one token at one place."""

    logprob: float
    rank: int | None
    decoded_token: str | None


class StepChoice(Protocol):
    """What one choice has gained; text and ids are new ones in a stream, all of them otherwise."""

    index: int
    text: str
    token_ids: Sequence[int]
    logprobs: Sequence[Mapping[int, Chances]] | None
    finish_reason: str | None
    stop_reason: int | str | None


class Times(Protocol):
    """The engine's monotonic seconds of one sequence; 0 where that has not happened."""

    queued_ts: float
    scheduled_ts: float
    first_token_ts: float
    last_token_ts: float


class Step(Protocol):
    """What the engine says of a request."""

    prompt_token_ids: Sequence[int] | None
    prompt_logprobs: Sequence[Mapping[int, Chances] | None] | None
    outputs: Sequence[StepChoice]
    finished: bool
    num_cached_tokens: int | None
    metrics: Times | None


class Generation(Protocol):
    """A request inside the engine."""

    async def step(self) -> Step:
        """Wait for what comes next. Raises EngineLost."""
        ...

    async def abort(self) -> Step | None:
        """Stop at once; answer what was produced and not yet told."""
        ...


class Load(msgspec.Struct):
    """How full the engine says it is."""

    running: int = 0
    waiting: int = 0
    kv_share: float = 0.0


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader makes of new text: text for the caller, and `(index, name, arguments)` of tool calls."""

    text: str = ""
    calls: list[tuple[int, str | None, str]] = []


class Reader(Protocol):
    """Reads one choice: tells text from tool calls."""

    called: bool
    """Whether a tool has been called."""

    def read(self, text: str, ids: Sequence[int], *, finished: bool) -> Piece:
        """Take what is new. One who is not streaming reads once, with `finished`."""
        ...


class Served(Protocol):
    """A loaded model, as the adapter gives it."""

    load: Load
    context_tokens: int
    can_parse_tools: bool
    scoring: Scoring | None
    """None where it does not rank."""

    @property
    def dead(self) -> bool:
        """Whether its engine has died."""
        ...

    def stop(self) -> None:
        """Stop the engine and its processes; blocks."""
        ...

    def forget(self) -> None:
        """Free what is left of a stopped engine, one turn of the event loop later."""
        ...

    async def adopt(self, name: str, adapter: Adapter) -> None:
        """Load a LoRA adapter to be called by `name`. Raises what vLLM raises where it does not fit the model."""
        ...

    async def chat_prompt(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], origin: Origin) -> Prompt:
        """Apply the chat template and tokenise. Raises RefusedInput."""
        ...

    async def text_prompt(self, text: str, origin: Origin) -> Prompt:
        """Tokenise a text. Raises RefusedInput."""
        ...

    async def pair_prompt(self, query: str, document: str, origin: Origin) -> Prompt:
        """Write query and document as one text; only where `scoring` is "pairs". Raises RefusedInput."""
        ...

    def token_text(self, token: int) -> str:
        """Decode one token."""
        ...

    def tool_reader(self, tools: list[dict[str, Any]]) -> "ToolReader":
        """Make a reader of tool calls as this model writes them; only where `can_parse_tools`."""
        ...

    async def generate(self, request_id: str, prompt: Prompt, draw: Draw) -> Generation:
        """Hand a request to the engine. Raises RefusedInput and EngineLost."""
        ...

    async def embed(self, request_id: str, prompt: Prompt, dimensions: int | None) -> Pooled:
        """Embed one text. Raises RefusedInput and EngineLost."""
        ...

    async def score(self, request_id: str, prompt: Prompt) -> Pooled:
        """Judge one pair: one number, without bounds. Raises RefusedInput and EngineLost."""
        ...


class ToolReader(Reader, Protocol):
    """A reader that knows one model's own way of writing calls."""

    keep_special: bool
    """Whether it needs the special tokens in the text."""
