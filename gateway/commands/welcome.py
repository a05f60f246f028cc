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
IMAGE = """\
  curl {base_url}/v1/images/generations \\
    -H "Authorization: Bearer {api_key}" -H "Content-Type: application/json" \\
    -d '{{"model": "{model}", "response_format": "url", "prompt": "A lighthouse"}}'
"""
USAGE = """\
  curl "{base_url}/v1/usage?group_by=model" -H "Authorization: Bearer {api_key}"
"""

EXAMPLES = (
    ("Chat, streamed:", CHAT, "chat"),
    ("Speech:", SPEECH, "text-to-speech"),
    ("A picture, at an address:", IMAGE, "text-to-image"),
)


def welcome(connection: Connection, models: Sequence[Model]) -> str:
    """Write the page that a newcomer sees once everything answers."""
    lines = [
        "",
        f"  Faregate      {connection.base_url}",
        f"  Dashboard     {connection.base_url}/admin   (sign in with the admin key)",
        f"  Your usage    {connection.base_url}/usage   (sign in with the API key)",
        f"  API pages     {connection.base_url}/openapi",
        f"  Admin key     {connection.admin_key}",
        f"  API key       {connection.api_key}   (account demo, opened with ${BALANCE_USD}.00)",
        "",
    ]
    for title, call, task in EXAMPLES:
        model = next((model.name for model in models if task in model.tasks), None)
        if model is not None:
            lines += [title, call.format(base_url=connection.base_url, api_key=connection.api_key, model=model)]
    lines += ["What it cost:", USAGE.format(base_url=connection.base_url, api_key=connection.api_key)]
    return "\n".join(lines)


_WORDS = {"ready": "ready", "on_demand": "loaded when it is called"}
FEW = 4
"""Of so many models that come into a state together each is named; of more, the first of them."""


async def tell_states(connection: Connection, say: Callable[[str], None]) -> None:
    """Say of the models for sale when they are ready, or that they failed, until none is left that loads."""
    told: dict[str, str] = {}
    headers = {"Authorization": f"Bearer {connection.api_key}"}
    async with httpx.AsyncClient(base_url=connection.base_url, headers=headers, trust_env=False) as client:
        while True:
            rows = [row for row in await _models(client) if row["price"]]
            for line in news_of([row for row in rows if told.get(row["id"]) != row["state"]]):
                say(line)
            told |= {row["id"]: row["state"] for row in rows}
            if rows and all(state not in {"loading", "no_worker"} for state in told.values()):
                return
            await asyncio.sleep(POLL_S)


def news_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Say how models stand that stood otherwise before: one line for each, or one for many of a kind."""
    lines = [f"{row['id']} cannot be used: {row['reason']}" for row in rows if row["state"] == "failed"]
    for state in ("ready", "on_demand"):
        names = [row["id"] for row in rows if row["state"] == state]
        if len(names) > FEW:
            lines.append(f"{len(names)} models are {_WORDS[state]}: {', '.join(names[:FEW])}, ...")
        else:
            lines += [f"{name} is {_WORDS[state]}" for name in names]
    unset = [row for row in rows if row["state"] == "unset"]
    if unset:
        lines.append(f"{len(unset)} models of other providers wait for a key (docs/reference/settings.md, Upstreams)")
    return lines


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
