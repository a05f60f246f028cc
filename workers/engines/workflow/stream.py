"""What a caller who streams is told of a workflow: its whole output, once it is there."""

from gateway.contract.events import AudioDelta, Output, TextDelta, TextOutput, media_of
from workers.engine import Run


def tell(run: Run, output: Output) -> None:
    """Send an output as deltas, one for each choice or sound."""
    if not run.request.stream:
        return
    if isinstance(output, TextOutput):
        tokens = run.units.output_tokens // max(1, len(output.choices))
        for number, choice in enumerate(output.choices):
            run.emit(
                TextDelta(
                    choice.text,
                    tokens=tokens,
                    choice=number,
                    finish_reason=choice.finish_reason,
                    reasoning=choice.reasoning,
                    logprobs=choice.logprobs,
                    tool_calls=choice.tool_calls,
                )
            )
    for item in media_of(output):
        if item.media_type.startswith("audio/"):
            run.emit(AudioDelta(item.data))
