"""What `faregate up` prints: where the system is, the keys to it, and calls to copy and paste."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import click
import httpx

from gateway.catalog.model import Model
from gateway.commands.demo import BALANCE_USD
from gateway.stack.connection import Connection

POLL_S = 1.0

CHAT = """\
  curl -N {base_url}/v1/chat/completions \\
    -H "Authorization: Bearer {api_key}" -H "Content-Type: application/json" \\
    -d '{{"model": "{model}", "stream": true, "max_tokens": 32, "messages": [{{"role": "user", "content": "Hello"}}]}}'
"""
SPEECH = """\
  curl {base_url}/v1/audio/speech -o speech.wav \\
    -H "Authorization: Bearer {api_key}" -H "Content-Type: application/json" \\
    -d '{{"model": "{model}", "response_format": "wav", "input": "Hello, this is Faregate."}}'
"""
USAGE = """\
  curl "{base_url}/v1/usage?group_by=model" -H "Authorization: Bearer {api_key}"
"""


def welcome(connection: Connection, models: Sequence[Model]) -> str:
    """Write the page that a newcomer sees once everything answers."""
    lines = [
        "",
        f"  Faregate      {connection.base_url}",
        f"  API pages     {connection.base_url}/openapi",
        f"  Admin key     {connection.admin_key}",
        f"  API key       {connection.api_key}   (account demo, opened with ${BALANCE_USD}.00)",
        "",
    ]
    for title, call, task in (("Chat, streamed:", CHAT, "chat"), ("Speech:", SPEECH, "text-to-speech")):
        model = next((model.name for model in models if task in model.tasks), None)
        if model is not None:
            lines += [title, call.format(base_url=connection.base_url, api_key=connection.api_key, model=model)]
    lines += ["What it cost:", USAGE.format(base_url=connection.base_url, api_key=connection.api_key)]
    return "\n".join(lines)


async def tell_states(connection: Connection, say: Callable[[str], None]) -> None:
    """Say of each model when it is ready, or that it failed, until none is left that loads."""
    told: dict[str, str] = {}
    headers = {"Authorization": f"Bearer {connection.api_key}"}
    async with httpx.AsyncClient(base_url=connection.base_url, headers=headers, trust_env=False) as client:
        while True:
            rows = await _models(client)
            for row in rows:
                name, state = row["id"], row["state"]
                if told.get(name) != state and state in {"ready", "failed"}:
                    say(f"{name} is ready" if state == "ready" else f"{name} cannot be used: {row['reason']}")
                told[name] = state
            if rows and all(state not in {"loading", "no_worker"} for state in told.values()):
                return
            await asyncio.sleep(POLL_S)


async def _models(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Ask for the models; an empty list while the gateway does not answer."""
    try:
        answer = await client.get("/v1/models")
        rows: list[dict[str, Any]] = answer.json()["data"] if answer.status_code == 200 else []
    except (httpx.HTTPError, ValueError, KeyError):
        return []
    return rows


def now_line(line: str) -> None:
    """Print a line of what happens."""
    click.echo(f"faregate: {line.rstrip()}")
