"""Log-probabilities as OpenAI's answers write them: one form for chat, another for completions."""

from typing import Any

from gateway.contract.events import TokenLogprob


def chat_logprobs(tokens: list[TokenLogprob]) -> dict[str, Any]:
    """Write log-probabilities as chat answers do."""
    return {
        "content": [
            {**_token(entry.token, entry.logprob), "top_logprobs": [_token(text, value) for text, value in entry.top]}
            for entry in tokens
        ],
        "refusal": None,
    }


def _token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def completion_logprobs(tokens: list[TokenLogprob]) -> dict[str, Any]:
    """Write log-probabilities as completion answers do: parallel lists, offsets in characters."""
    offsets, at = [], 0
    for entry in tokens:
        offsets.append(at)
        at += len(entry.token)
    return {
        "tokens": [entry.token for entry in tokens],
        "token_logprobs": [entry.logprob for entry in tokens],
        "top_logprobs": [dict(entry.top) for entry in tokens],
        "text_offset": offsets,
    }
