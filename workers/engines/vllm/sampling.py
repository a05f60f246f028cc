"""From a caller's sampling fields to a drawing of tokens."""

from gateway.contract.inputs import ChatInput, CompletionInput
from workers.engine import RefusedInput
from workers.engines.vllm.shapes import Constraint, Draw

_SEEDS = 2**62
"""Seeds are taken modulo this: -1 means none to vLLM, and each choice adds its number to the seed."""


def draw_of(
    given: ChatInput | CompletionInput, room: int, *, constraint: Constraint | None, keep_special: bool, stream: bool
) -> Draw:
    """Make the drawing for an input whose prompt leaves `room` tokens. Raises RefusedInput for contradictions."""
    asked = given.max_tokens
    if isinstance(given, ChatInput) and given.max_completion_tokens is not None:
        asked = given.max_completion_tokens
    least = given.min_tokens or 0
    most = room if asked is None else min(asked, room)
    if least > most:
        raise RefusedInput(f"min_tokens is {least}, but at most {most} tokens can be produced.")
    if constraint is not None and (least or given.ignore_eos):
        raise RefusedInput("min_tokens and ignore_eos cannot go with a format or a forced tool: that ends the answer.")
    count = given.n or 1
    if count > 1 and given.temperature == 0:
        raise RefusedInput("n must be 1 at temperature 0: all choices would be the same.")
    stop = given.stop or []
    logprobs, prompt_logprobs = _logprobs(given)
    return Draw(
        n=count,
        max_tokens=most,
        min_tokens=least,
        temperature=given.temperature,
        top_p=given.top_p,
        top_k=given.top_k,
        min_p=given.min_p,
        presence_penalty=given.presence_penalty,
        frequency_penalty=given.frequency_penalty,
        repetition_penalty=given.repetition_penalty,
        seed=None if given.seed is None else given.seed % _SEEDS,
        stop=[stop] if isinstance(stop, str) else stop,
        ignore_eos=given.ignore_eos,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        constraint=constraint,
        keep_special=keep_special,
        stream=stream,
    )


def _logprobs(given: ChatInput | CompletionInput) -> tuple[int | None, int | None]:
    """Answer how many rivals are wanted for each token of the answer, and of an echoed prompt."""
    if isinstance(given, CompletionInput):
        return given.logprobs, given.logprobs if given.echo else None
    if not given.logprobs:
        if given.top_logprobs:
            raise RefusedInput("top_logprobs needs logprobs to be true.")
        return None, None
    return given.top_logprobs or 0, None
