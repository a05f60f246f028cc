"""An input held against its model: limits, choices and combinations; defaults put in."""

from typing import Any

import msgspec

from gateway.catalog.model import Model
from gateway.catalog.parameters import missing, not_taken
from gateway.catalog.vendor import check_extra
from gateway.contract.inputs import ChatInput, CompletionInput, Input, TalkingHeadInput
from gateway.contract.inputs.text import NamedTool
from gateway.errors import InvalidRequest


def check_input(model: Model, value: Input) -> Input:
    """Give the input with the model's defaults in it. Raises InvalidRequest, whose `param` names the field."""
    changes: dict[str, Any] = {}
    for field in model.checks.get(type(value), ()):
        given = getattr(value, field.name)
        if given is None:
            if field.default is not None:
                changes[field.name] = field.default
            elif field.required:
                raise missing(field.name)
        elif field.check is not None:
            field.check(given)
    if value.extra is not None or model.vendor_checks:
        changes["extra"] = check_extra(model.vendor_checks, value.extra)
    for refusal in model.refusals.get(type(value), ()):
        given = getattr(value, refusal.name)
        if given != refusal.absent:
            if given != refusal.idle:
                raise not_taken(refusal.name)
            changes[refusal.name] = refusal.absent
    if isinstance(value, ChatInput):
        _check_chat(value)
        if value.max_completion_tokens is not None:
            changes.pop("max_tokens", None)
        elif value.max_tokens is not None:
            changes.pop("max_completion_tokens", None)
    if isinstance(value, TalkingHeadInput) and (value.text is None) == (value.audio is None):
        raise InvalidRequest("Give either text or audio: what the head is to say.", param="text")
    if isinstance(value, ChatInput | CompletionInput):
        _check_output(model, value, changes)
    return msgspec.structs.replace(value, **changes) if changes else value


def _check_output(model: Model, value: ChatInput | CompletionInput, changes: dict[str, Any]) -> None:
    """Hold the output, of all choices together, against the context; put in a limit where the caller names none."""
    name, limit = _asked(value)
    context = model.context_tokens
    choices = value.n or changes.get("n") or 1
    if limit is None:
        limit = changes.pop("max_completion_tokens", None) or changes.get("max_tokens") or model.max_output_tokens
        if context and choices > 1:
            limit = min(limit or context, context // choices)
        if limit:
            changes["max_tokens"] = limit
    elif context and limit > context:
        raise InvalidRequest(f"{name} must be at most {context}, the context of this model.", param=name)
    elif context and choices * limit > context:
        raise InvalidRequest(
            f"{choices} choices of up to {limit} tokens are more than the {context} that this model's context holds. "
            f"Lower n, or set {name} to at most {context // choices}.",
            param="n",
        )
    least = value.min_tokens if value.min_tokens is not None else changes.get("min_tokens")
    most = limit or context
    if least and most and least > most:
        raise InvalidRequest(f"min_tokens must be at most {most}, the limit of the output.", param="min_tokens")


def _asked(value: ChatInput | CompletionInput) -> tuple[str, int | None]:
    """Give the output limit that the caller names, and under which name."""
    if value.max_tokens is None and isinstance(value, ChatInput) and value.max_completion_tokens is not None:
        return "max_completion_tokens", value.max_completion_tokens
    return "max_tokens", value.max_tokens


def _check_chat(value: ChatInput) -> None:
    """Refuse combinations of fields that contradict each other."""
    completion, plain = value.max_completion_tokens, value.max_tokens
    if completion is not None and plain is not None and completion != plain:
        raise InvalidRequest(
            "max_tokens and max_completion_tokens differ. Set one of them.", param="max_completion_tokens"
        )
    if value.top_logprobs and not value.logprobs:
        raise InvalidRequest("top_logprobs needs logprobs to be true.", param="top_logprobs")
    choice = value.tool_choice
    if choice is None or choice in ("none", "auto"):
        return
    names = [tool.function.name for tool in value.tools or ()]
    if not names:
        raise InvalidRequest("tool_choice asks for a tool, and there are no tools.", param="tool_choice")
    if isinstance(choice, NamedTool) and choice.function.name not in names:
        raise InvalidRequest("tool_choice names a tool that is not among tools.", param="tool_choice")
