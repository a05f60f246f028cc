"""The page on protocols says what the protocols send, and the catalog lets each do what it can."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.upstreams import PROTOCOL_TASKS
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES, Media
from gateway.contract.inputs.text import Message
from gateway.contract.pools import ProtocolName, Target, UpstreamSpec
from gateway.contract.request import Request
from gateway.contract.tasks import TASKS, Task
from workers.engine import EngineError, Run
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols import make_wire

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protocols.md"
TABLES = {
    "gmi": ("gmi", "FIELDS"),
    "fal": ("fal", "FIELDS"),
    "replicate": ("replicate", "FIELDS"),
    "replicate, text": ("replicate_text", "FIELDS"),
    "elevenlabs, speech": ("elevenlabs", "SPEECH_FIELDS"),
    "elevenlabs, music": ("elevenlabs", "MUSIC_FIELDS"),
    "minimax, speech": ("minimax", "SPEECH_FIELDS"),
    "minimax, music": ("minimax", "MUSIC_FIELDS"),
    "minimax, images": ("minimax", "IMAGE_FIELDS"),
    "minimax, videos": ("minimax_films", "FIELDS"),
    "kling": ("kling", "FIELDS"),
}
OWN = ("gmi", "fal", "replicate", "elevenlabs", "minimax", "kling")

MEDIA = Media(blob="b", media_type="image/png", size_bytes=1)
GIVEN: dict[str, Any] = {
    "prompt": "a", "messages": [Message(role="user", content="a")], "input": "a", "query": "a", "documents": ["a"],
    "image": MEDIA, "images": [MEDIA, MEDIA], "video": MEDIA, "sample": MEDIA, "file": MEDIA,
}  # fmt: skip


def documented() -> dict[str, dict[str, str]]:
    """Read the table of fields."""
    found: dict[str, dict[str, str]] = {}
    for label, cell in re.findall(r"^\| ([a-z]+(?:, [a-z]+)?) \| (`.*`) \|$", PAGE.read_text(), re.MULTILINE):
        pairs = (entry.partition(": ") for entry in re.findall(r"`([^`]+)`", cell))
        found[label] = {name: wire or name for name, _, wire in pairs}
    return found


def test_the_page_names_every_field_as_it_is_sent() -> None:
    code = {
        label: getattr(importlib.import_module(f"workers.engines.upstream.protocols.{module}"), table)
        for label, (module, table) in TABLES.items()
    }
    assert documented() == code


def call(task: Task) -> Call:
    """Make the least call of a task."""
    kind = INPUT_TYPES[task]
    run = Run(
        Request(new_request_id(), 1, "m", task, b"", 1),
        kind(**{name: value for name, value in GIVEN.items() if name in kind.__struct_fields__}),
        1,
        lambda request, frame: None,
    )
    spec = UpstreamSpec(name="there", protocol="gmi", url="http://127.0.0.1")
    nothing: Any = None
    return Call(run, Target(upstream="there", model="m"), spec, nothing, nothing, "pool")


@pytest.mark.parametrize("protocol", OWN)
def test_a_protocol_does_the_tasks_that_the_catalog_lets_it_do_and_no_others(protocol: ProtocolName) -> None:
    wire = make_wire(protocol)

    def serves(task: Task) -> bool:
        try:
            wire.way(call(task))
        except EngineError:
            return False
        return True

    assert {task for task in TASKS if serves(task)} == set(PROTOCOL_TASKS[protocol])
