"""Chats and completions: from an input, through the engine, to an answer."""

import asyncio
import time

import msgspec

from gateway.contract.events import TextOutput
from gateway.contract.inputs import ChatInput, CompletionInput
from workers.engine import RefusedInput, Run
from workers.engines.vllm.answer import Answer, Echo
from workers.engines.vllm.batches import origin_of
from workers.engines.vllm.formats import constraint_of
from workers.engines.vllm.prompting import conversation, tool_list
from workers.engines.vllm.sampling import draw_of
from workers.engines.vllm.shapes import Draw, Prompt, Reader, Served, Step, Times
from workers.engines.vllm.tools import PlainReader, plan_tools


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    prompt: Prompt
    draw: Draw
    answer: Answer


async def generate(model: Served, run: Run, given: ChatInput | CompletionInput) -> TextOutput:
    """Run one chat or completion. When the task is cancelled, the engine has let it go before this raises."""
    with run.phases.timed("preprocess"):
        prepare = _prepare_chat(model, run, given) if isinstance(given, ChatInput) else _prepare_text(model, run, given)
        plan = await prepare
    run.began()
    handed_ns = time.perf_counter_ns()
    times: Times | None = None
    try:
        generation = await model.generate(f"{run.request.id}-{run.attempt}", plan.prompt, plan.draw)
        try:
            finished = False
            while not finished:
                step: Step = await generation.step()
                finished, times = step.finished, step.metrics
                plan.answer.add(step)
        except BaseException:
            rest = await asyncio.shield(generation.abort())
            if rest is not None:
                times = rest.metrics
                plan.answer.count(rest)
            raise
    finally:
        _count_times(run, times, handed_ns)
    return plan.answer.whole()


async def _prepare_chat(model: Served, run: Run, given: ChatInput) -> _Plan:
    tools = plan_tools(given, can_parse=model.can_parse_tools)
    shown = tool_list(tools.shown)
    prompt = await model.chat_prompt(conversation(given.messages), shown, origin_of(run))
    keep_special = tools.parsed and model.tool_reader(shown).keep_special

    def reader() -> Reader:
        return model.tool_reader(shown) if tools.parsed else tools.reader()

    draw = draw_of(
        given, _room(model, prompt), constraint=tools.constraint, keep_special=keep_special, stream=run.watched
    )
    return _Plan(prompt=prompt, draw=draw, answer=Answer(run, draw, reader))


async def _prepare_text(model: Served, run: Run, given: CompletionInput) -> _Plan:
    constraint = constraint_of(given.response_format)
    prompt = await model.text_prompt(given.prompt, origin_of(run))
    draw = draw_of(given, _room(model, prompt), constraint=constraint, keep_special=False, stream=run.watched)
    echo = Echo(text=given.prompt, first=model.token_text(prompt.ids[0])) if given.echo else None
    return _Plan(prompt=prompt, draw=draw, answer=Answer(run, draw, PlainReader, echo))


def _room(model: Served, prompt: Prompt) -> int:
    room = model.context_tokens - len(prompt.ids)
    if room < 1:
        raise RefusedInput(
            f"The prompt has {len(prompt.ids)} tokens and fills the context of {model.context_tokens}: shorten it."
        )
    return room


def _count_times(run: Run, times: Times | None, handed_ns: int) -> None:
    """Split the time inside the engine: waiting for a slot is `queue`, from the slot to the last token `forward`."""
    phases = run.phases
    if times is None or not times.last_token_ts:
        phases.forward_us += (time.perf_counter_ns() - handed_ns) // 1000
        return
    phases.queue_us += max(0, round((times.scheduled_ts - times.queued_ts) * 1e6))
    phases.forward_us += max(0, round((times.last_token_ts - times.scheduled_ts) * 1e6))
