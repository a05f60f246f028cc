"""Calls made by litellm as a client of our OpenAI family; run by a Python that has it, and printed as one JSON object.

litellm wants an older openai than the other tests do, so it lives in a virtual environment of its own.
"""

import asyncio
import importlib
import json
import sys
import time
from typing import Any

import openai

litellm: Any = importlib.import_module("litellm")

MESSAGES = [{"role": "user", "content": "Say something."}]
WITHIN_S = 60.0


def charge_of(answer: Any) -> str | None:
    """Read what litellm keeps of our headers."""
    headers = answer._hidden_params.get("additional_headers", {})
    charge: str | None = headers.get("llm_provider-x-faregate-charge-nanos")
    return charge


def refusal(call: Any) -> list[Any]:
    """Name the error that a call raises, and its status."""
    try:
        call()
    except openai.APIError as error:  # what all of litellm's inherit
        return [type(error).__name__, getattr(error, "status_code", None)]
    return []


def video(there: dict[str, Any]) -> list[Any]:
    """Ask for a video, poll it, and fetch it."""
    known = {name: there[name] for name in ("api_base", "api_key")}
    made = litellm.video_generation(model="openai/fake-veo", prompt="a gate", seconds="1", **known)
    end = time.monotonic() + WITHIN_S
    while made.status not in ("completed", "failed") and time.monotonic() < end:
        time.sleep(0.1)
        made = litellm.video_status(video_id=made.id, custom_llm_provider="openai", **known)
    content = litellm.video_content(video_id=made.id, custom_llm_provider="openai", **known)
    return [made.status, made.model, content[4:8].decode()]


def main(base: str, key: str) -> dict[str, Any]:
    """Make the calls."""
    there = {"api_base": f"{base}/v1", "api_key": key, "num_retries": 0, "max_retries": 0}
    whole = litellm.completion(model="openai/fake-chat", messages=MESSAGES, **there)
    chunks = list(
        litellm.completion(
            model="fake-stream",
            custom_llm_provider="openai",
            messages=MESSAGES,
            stream=True,
            stream_options={"include_usage": True},
            max_tokens=30,
            **there,
        )
    )
    later = asyncio.run(litellm.acompletion(model="openai/fake-chat", messages=MESSAGES, priority="low", **there))
    image = litellm.image_generation(model="openai/fake-image", prompt="a gate", n=2, size="96x64", **there)
    spoken = litellm.speech(model="openai/fake-voice", voice="alloy", input="Mind the gap.", **there)
    again = litellm.text_completion(model="openai/fake-chat", prompt="Once", **there)
    return {
        "whole": whole.choices[0].message.content,
        "usage": whole.usage.model_dump(),
        "charge": charge_of(whole),
        "stream": "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
        "stream_tokens": [chunk.usage.completion_tokens for chunk in chunks if getattr(chunk, "usage", None)],
        "later": later.choices[0].message.content,
        "images": len(image.data),
        "speech": len(spoken.content),
        "video": video(there),
        "completion": again.choices[0].text,
        "unknown": refusal(lambda: litellm.completion(model="openai/nothing", messages=MESSAGES, **there)),
        "odd": refusal(
            lambda: litellm.completion(model="openai/fake-chat", messages=MESSAGES, extra_body={"odd": 1}, **there)
        ),
        "stranger": refusal(
            lambda: litellm.completion(model="openai/fake-chat", messages=MESSAGES, **there | {"api_key": "wrong"})
        ),
        "dear": refusal(
            lambda: litellm.completion(
                model="openai/fake-chat", messages=MESSAGES, extra_body={"max_price": "0.0000001"}, **there
            )
        ),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2])))
