"""An input held against its model: limits, choices and combinations; defaults put in."""

from typing import Any

import msgspec

from gateway.catalog.model import Model
from gateway.contract.inputs import ChatInput, CompletionInput, Input, NamedTool
from gateway.errors import InvalidRequest


def check_input(model: Model, value: Input) -> Input:
    """Give the input with the model's defaults in it. Raises InvalidRequest, whose `param` names the field."""
    changes: dict[str, Any] = {}
    for field in model.checks.get(type(value), ()):
        given = getattr(value, field.name)
        if given is None:
            if field.default is not None:
                changes[field.name] = field.default
        elif field.check is not None:
            field.check(given)
    if isinstance(value, ChatInput):
        _check_chat(value)
        if value.max_completion_tokens is not None:
            changes.pop("max_tokens", None)
        elif value.max_tokens is not None:
            changes.pop("max_completion_tokens", None)
    if isinstance(value, ChatInput | CompletionInput):
        _check_output(model, value, changes)
    return msgspec.structs.replace(value, **changes) if changes else value


def _check_output(model: Model, value: ChatInput | CompletionInput, changes: dict[str, Any]) -> None:
    """Hold the output, of all choices together, against the context; put in the model's limit where there is none."""
    name, limit = "max_tokens", value.max_tokens
    if limit is None and isinstance(value, ChatInput) and value.max_completion_tokens is not None:
        name, limit = "max_completion_tokens", value.max_completion_tokens
    if limit is None:
        limit = changes.get("max_tokens") or changes.get("max_completion_tokens")
    if limit is None and model.max_output_tokens:
        limit = changes["max_tokens"] = model.max_output_tokens
    context = model.context_tokens
    least = limit or 1
    if context and least > context:
        raise InvalidRequest(f"{name} must be at most {context}, the context of this model.", param=name)
    choices = value.n or changes.get("n") or 1
    if context and choices > 1 and choices * (limit or context) > context:
        asked = limit or context
        raise InvalidRequest(
            f"{choices} choices of up to {asked} tokens are more than the {context} that this model's context holds. "
            f"Lower n, or set {name} to at most {context // choices}.",
            param="n",
        )
    minimum = value.min_tokens if value.min_tokens is not None else changes.get("min_tokens")
    if minimum and minimum > (limit or context or minimum):
        raise InvalidRequest(
            f"min_tokens must be at most {limit or context}, the limit of the output.", param="min_tokens"
        )


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
