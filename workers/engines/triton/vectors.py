"""Embeddings by a model that takes texts, or their tokens, and gives vectors."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tritonclient.grpc import InferInput, InferResult

from gateway.contract.events import VectorOutput
from gateway.contract.inputs import EmbeddingInput
from gateway.contract.pools import ServedModel
from workers.engine import EngineError, RefusedInput, Run
from workers.engines.triton.model import Place
from workers.engines.triton.options import TOKEN_FIELDS, BadModel, InputField, OutputField, TritonOptions
from workers.engines.triton.tensors import (
    Array,
    batch_limit,
    column,
    floats,
    needed,
    row,
    scalar,
    table,
    takes_batches,
    whole_number,
)
from workers.engines.triton.tokenizer import Tokenizer, find_tokenizer


class VectorModel:
    """A model that makes embeddings."""

    def __init__(self, place: Place, options: TritonOptions, tokenizer: Tokenizer | None) -> None:
        self._place = place
        self._options = options
        self._tokenizer = tokenizer
        names = [name for name, field in options.inputs.items() if field != "dimensions"]
        self._batch = batch_limit(place.signature, names, options.batch)
        self._out: dict[OutputField, str] = {field: name for name, field in options.outputs.items()}

    @classmethod
    async def make(cls, model: ServedModel, options: TritonOptions, place: Place, models_dir: Path) -> "VectorModel":
        """Check what the catalog says of tensors, and read the tokenizer. Raises BadModel."""
        tokenizer = await asyncio.to_thread(find_tokenizer, model.source, models_dir) if model.source else None
        fields = set(options.inputs.values())
        if not fields & {"input", "input_ids"}:
            raise BadModel("inputs needs the tensor that takes the input, or its input_ids")
        if tokenizer is None and fields & set(TOKEN_FIELDS):
            raise BadModel("input_ids are made by a tokenizer: name its repository or folder in source")
        if tokenizer is None and "tokens" not in options.outputs.values() and options.token_counts != "none":
            raise BadModel(
                "nobody can count its tokens: name in source the repository or folder of its tokenizer, in outputs "
                "a tensor that gives tokens, or say token_counts: none"
            )
        return cls(place, options, tokenizer)

    def width(self, run: Run) -> int:
        """Texts go to the server one batch after the other."""
        return 1

    async def run(self, run: Run) -> VectorOutput:
        """Embed the texts of one request, batch by batch. Raises RefusedInput, EngineError and EngineLost."""
        given = run.input
        if not isinstance(given, EmbeddingInput):
            raise RefusedInput(f"This model makes embeddings, and does not do the task {run.request.task}.")
        texts = [given.input] if isinstance(given.input, str) else given.input
        with run.phases.timed("preprocess"):
            self._check(given)
            ids = await asyncio.to_thread(self._tokens, texts)
        run.began()
        vectors: list[Array] = []
        for start in range(0, len(texts), self._batch):
            chosen = slice(start, start + self._batch)
            with run.phases.timed("transfer"):
                inputs = self._inputs(given, texts[chosen], ids[chosen])
            with run.phases.timed("forward"):
                result = await self._place.answer(run, inputs, self._options.outputs, str(start))
            with run.phases.timed("postprocess"):
                vectors += self._read(result, ids[chosen], len(texts[chosen]))
            run.units.input_tokens += self._count(result, ids[chosen])
            run.progress(len(vectors) / len(texts))
        return VectorOutput([vector.tobytes() for vector in vectors], len(vectors[0]))

    def _check(self, given: EmbeddingInput) -> None:
        """Refuse a number of dimensions that the model does not give."""
        own = self._place.signature.outputs[self._out["vector"]].shape[-1]
        if given.dimensions not in (None, own) and "dimensions" not in self._options.inputs.values():
            raise RefusedInput("This model gives vectors of one size: leave dimensions out.")

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise, where there is a tokenizer; in a thread."""
        if self._tokenizer is None:
            return [[] for _ in texts]
        made = [self._tokenizer.ids(text) for text in texts]
        context = self._options.context_tokens
        longest = max(len(ids) for ids in made)
        if context is not None and longest > context:
            raise RefusedInput(f"A text has {longest} tokens, and the model takes {context}: shorten it.")
        return made

    def _inputs(self, given: EmbeddingInput, texts: Sequence[str], ids: Sequence[list[int]]) -> list[InferInput]:
        known = self._place.signature.inputs
        made = [
            row(known[name], value) if isinstance(value, list) else column(known[name], [value] * len(texts))
            for name, value in self._options.constants.items()
        ]
        for name, field in self._options.inputs.items():
            if field == "input":
                made.append(column(known[name], texts))
            elif field == "dimensions":
                made += [scalar(known[name], given.dimensions)] if given.dimensions else []
            else:
                made.append(table(known[name], self._padded(field, ids)))
        return made

    def _padded(self, field: InputField, ids: Sequence[list[int]]) -> Array:
        """Lay tokens in rows of one length, or what says which of them are meant."""
        pad = self._tokenizer.pad_id if self._tokenizer is not None and field == "input_ids" else 0
        rows = np.full((len(ids), max(1, *(len(each) for each in ids), 1)), pad, dtype=np.int64)
        for index, each in enumerate(ids):
            if field == "input_ids":
                rows[index, : len(each)] = each
            elif field == "attention_mask":
                rows[index, : len(each)] = 1
        return rows

    def _read(self, result: InferResult, ids: Sequence[list[int]], count: int) -> list[Array]:
        """Give the vectors of a response, one for each text."""
        name = self._out["vector"]
        array = needed(floats(result, name), name).astype(np.float32)
        if not takes_batches(self._place.signature.outputs[name]) and count == 1:
            array = array[np.newaxis]
        if self._options.pooling != "none":
            array = _pooled(array, [len(each) for each in ids], self._options.pooling)
        array = array.reshape(array.shape[0], -1)
        if len(array) != count:
            raise EngineError(f"The model gave {len(array)} vectors for {count} texts.")
        if self._options.normalize:
            array = array / np.maximum(np.linalg.norm(array, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return list(array.astype("<f4"))

    def _count(self, result: InferResult, ids: Sequence[list[int]]) -> int:
        """Count the tokens of a batch: by the model where it tells them, else by the tokenizer."""
        told = self._out.get("tokens")
        return whole_number(result, told) if told is not None else sum(len(each) for each in ids)


def _pooled(array: Array, lengths: Sequence[int], how: str) -> Array:
    """Make one vector of those of a text's tokens: their mean without the padding, or the first."""
    if array.ndim != 3:
        raise EngineError("The model gave no vectors of tokens, which pooling is for.")
    if how == "first":
        return array[:, 0]
    return np.stack([each[: max(1, length)].mean(axis=0) for each, length in zip(array, lengths, strict=True)])
