"""What a catalog may say about a model on Triton."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.contract.pools import ServedModel

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Url = Annotated[str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$")]

InputField = Literal[
    "input",
    "input_ids",
    "attention_mask",
    "token_type_ids",
    "dimensions",
    "prompt",
    "negative_prompt",
    "width",
    "height",
    "steps",
    "guidance",
    "seed",
]
"""What of a caller's input may go into a tensor. `input_ids` and the two after it are the tokens of `input`."""

OutputField = Literal["vector", "tokens", "image", "steps"]
"""What a tensor may give: the answer, or what was measured of it."""

Kind = Literal["text", "vector", "image"]
"""What a model makes."""

TOKEN_FIELDS: tuple[InputField, ...] = ("input_ids", "attention_mask", "token_type_ids")
INPUTS: dict[Kind, tuple[InputField, ...]] = {
    "text": (),
    "vector": ("input", *TOKEN_FIELDS, "dimensions"),
    "image": ("prompt", "negative_prompt", "width", "height", "steps", "guidance", "seed"),
}
OUTPUTS: dict[Kind, tuple[OutputField, ...]] = {"text": (), "vector": ("vector", "tokens"), "image": ("image", "steps")}


class BadModel(ValueError):
    """A model cannot be served as the catalog describes it. The message names what is wrong."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens, and how it is to be spoken to."""

    url: str
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


class TritonOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options. Where the server is stands here, so it is the operator's word and never a caller's."""

    url: Url
    """`host:port` of the server's gRPC endpoint."""
    tls: bool = False
    tls_ca: str = ""
    """A PEM file with the authority that signed the server's certificate; empty takes the system's."""
    tls_cert: str = ""
    tls_key: str = ""
    model_name: Name | None = None
    """How the server calls the model; None takes the catalog's name."""
    model_version: Annotated[str, Meta(pattern=r"^[0-9]*$")] = ""
    """Empty lets the server choose."""
    load: bool = False
    """Whether to have the server load the model, which runs with explicit model control."""
    wait_s: Seconds = 300.0
    """How long to wait for a server that does not answer, or is still loading the model, before `failed` is said."""
    silence_s: Seconds = 120.0
    """How long the server may say nothing while it works on a request, before that fails."""
    max_concurrency: Positive = 64
    """How many requests the server gets at once; each choice of a text counts as one."""
    token_counts: Literal["auto", "server", "tokenizer", "none"] = "auto"
    """Who counts tokens; see `counting.py`."""
    max_output_tokens: Positive = 512
    """The longest answer where a caller names no limit."""
    context_tokens: Positive | None = None
    """The longest prompt and answer together; None leaves it to the server."""
    chat_template: str = ""
    """A template in Jinja; empty takes that of the tokenizer."""
    stop: list[Name] = []
    """Texts that end every answer, beside those of the caller."""
    accumulated: bool = False
    """Whether each response of a stream repeats the text before it."""
    inputs: dict[Name, InputField] = {}
    """Which field of the input each tensor takes, of models for embedding and images."""
    outputs: dict[Name, OutputField] = {}
    constants: dict[Name, str | bool | int | float | list[str | bool | int | float]] = {}
    """Tensors that are always the same."""
    batch: Positive = 32
    """The most texts in one call, where the model takes several."""
    pooling: Literal["none", "mean", "first"] = "none"
    """How the vectors of tokens become that of a text."""
    normalize: bool = False
    """Whether to scale vectors to length 1."""
    layout: Literal["hwc", "chw"] = "hwc"
    """The order of an image's dimensions: height, width, channels."""
    pixel_range: tuple[float, float] = (0.0, 1.0)
    """What black and white are in an image of floating point numbers."""

    @property
    def address(self) -> Address:
        """Give what a connection needs."""
        return Address(url=self.url, tls=self.tls, tls_ca=self.tls_ca, tls_cert=self.tls_cert, tls_key=self.tls_key)


def options_of(model: ServedModel) -> TritonOptions:
    """Check a model's options. Raises BadModel naming the one that does not fit."""
    try:
        options = msgspec.convert(model.options, TritonOptions)
    except msgspec.ValidationError as error:
        raise BadModel(f"an option does not fit: {error}") from None
    if options.pixel_range[0] >= options.pixel_range[1]:
        raise BadModel("pixel_range is black and white in this order, such as [0, 1]")
    kind = kind_of(model)
    given: set[str] = {*options.inputs.values(), *options.outputs.values()}
    foreign = sorted(given - {*INPUTS[kind], *OUTPUTS[kind]})
    if foreign:
        raise BadModel(f"{foreign[0]} is nothing that inputs or outputs of {model.tasks[0]} may name")
    if OUTPUTS[kind] and OUTPUTS[kind][0] not in given:
        raise BadModel(f"outputs needs the tensor that gives the {OUTPUTS[kind][0]}")
    return options


def kind_of(model: ServedModel) -> Kind:
    """Say what a model makes. Raises BadModel where its tasks need several."""
    kinds: set[Kind] = {_KINDS.get(task, "text") for task in model.tasks}
    if len(kinds) > 1:
        raise BadModel("text, embeddings and images are models apart: give each an entry of its own")
    return kinds.pop()


_KINDS: dict[str, Kind] = {"embedding": "vector", "text-to-image": "image"}
