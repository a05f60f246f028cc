"""Chats and completions on TensorRT-LLM's `ensemble`: a stream for each choice."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec
from tritonclient.grpc import InferInput

from gateway.contract.events import Choice, TextOutput
from gateway.contract.inputs import ChatInput, CompletionInput
from gateway.contract.pools import ServedModel
from workers.engine import RefusedInput, Run
from workers.engines.triton.answer import Growing
from workers.engines.triton.counting import TOLD, Counts, counts_of
from workers.engines.triton.model import Place, first_of
from workers.engines.triton.options import TritonOptions
from workers.engines.triton.prompting import Prompt, Prompter
from workers.engines.triton.sampling import NEEDED, TEXT, check_ensemble, check_fields, sampling_inputs, seed_input
from workers.engines.triton.tensors import scalar, told
from workers.engines.triton.tokenizer import ChatTemplate, find_tokenizer


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    prompt: Prompt
    inputs: Sequence[Sequence[InferInput]]
    """Those of each choice."""
    stops: Sequence[str]
    limit: int


class TextModel:
    """A model that makes text."""

    def __init__(self, place: Place, options: TritonOptions, counts: Counts, prompter: Prompter) -> None:
        self._place = place
        self._options = options
        self._counts = counts
        self._prompter = prompter

    @classmethod
    async def make(cls, model: ServedModel, options: TritonOptions, place: Place, models_dir: Path) -> "TextModel":
        """Check the model, and read its tokenizer and template. Raises BadModel."""
        check_ensemble(place.signature)
        tokenizer = await asyncio.to_thread(find_tokenizer, model.source, models_dir) if model.source else None
        counts = counts_of(options, place.signature, tokenizer)
        written = options.chat_template or ("" if tokenizer is None else tokenizer.template)
        template = ChatTemplate(written, {} if tokenizer is None else tokenizer.config) if written else None
        return cls(place, options, counts, Prompter(template, tokenizer, options))

    def width(self, run: Run) -> int:
        """Say how many inferences a request is."""
        given = run.input
        return (given.n or 1) if isinstance(given, ChatInput | CompletionInput) else 1

    async def run(self, run: Run) -> TextOutput:
        """Run one chat or completion. Raises RefusedInput, EngineError and EngineLost."""
        given = run.input
        if not isinstance(given, ChatInput | CompletionInput):
            raise RefusedInput(f"This model makes text, and does not do the task {run.request.task}.")
        with run.phases.timed("preprocess"):
            check_fields(given)
            prompt = await self._prompter.prompt(given)
            limit = self._limit(given, prompt)
        with run.phases.timed("transfer"):
            plan = self._plan(given, prompt, limit)
        run.began()
        with run.phases.timed("forward"):
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._draw(run, given, plan, index)) for index in range(len(plan.inputs))
                    ]
            except ExceptionGroup as several:
                raise first_of(several) from None
        return TextOutput([task.result() for task in tasks])

    def _limit(self, given: ChatInput | CompletionInput, prompt: Prompt) -> int:
        asked = given.max_tokens
        if isinstance(given, ChatInput) and given.max_completion_tokens is not None:
            asked = given.max_completion_tokens
        limit = asked or self._options.max_output_tokens
        room = self._prompter.room(prompt)
        limit = limit if room is None else min(limit, room)
        if (given.min_tokens or 0) > limit:
            raise RefusedInput(f"min_tokens is {given.min_tokens}, but at most {limit} tokens can be produced.")
        return limit

    def _plan(self, given: ChatInput | CompletionInput, prompt: Prompt, limit: int) -> _Plan:
        asked = [given.stop] if isinstance(given.stop, str) else given.stop or []
        stops = [*self._options.stop, *asked]
        signature = self._place.signature
        shared = [
            scalar(signature.inputs[NEEDED[0]], prompt.text),
            scalar(signature.inputs[NEEDED[1]], limit),
            *sampling_inputs(signature, self._options, given, stops),
        ]
        each = [[*shared, *seed_input(signature, given.seed, index)] for index in range(given.n or 1)]
        return _Plan(prompt=prompt, inputs=each, stops=stops, limit=limit)

    async def _draw(self, run: Run, given: ChatInput | CompletionInput, plan: _Plan, index: int) -> Choice:
        """Draw one choice. However it ends, what came of it is counted and the server has been told to stop."""
        choice = Growing(run, index, plan.limit, plan.stops, accumulated=self._options.accumulated)
        if isinstance(given, CompletionInput) and given.echo:
            choice.repeat(plan.prompt.text)
        wanted = (TEXT, *TOLD) if self._counts == "server" else (TEXT,)
        call = self._place.call(run, plan.inputs[index], wanted, str(index))
        try:
            async with aclosing(self._place.connection.infer(call)) as responses:
                async for response in responses:
                    if choice.stopped:  # the model did not see its stop text, else this would have been the end
                        break
                    said = told(response)
                    if TEXT in said:
                        self._count(run, plan, choice, said)
                        choice.add(str(said[TEXT]))
        finally:
            if self._counts == "tokenizer" and choice.heard:
                choice.recount(self._prompter.count(choice.heard))
        return choice.finish()

    def _count(self, run: Run, plan: _Plan, choice: Growing, said: dict[str, str | int]) -> None:
        """Count a response. The prompt is counted once, when the first of an answer has come of it."""
        of_prompt, of_answer = plan.prompt.tokens, 1
        if self._counts == "server":
            of_prompt, of_answer = (int(said.get(name, 0)) for name in TOLD)
        if self._counts != "none" and not run.units.input_tokens:
            run.units.input_tokens = of_prompt
        choice.count(of_answer)
