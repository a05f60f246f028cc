"""The protocols by name, one file or package each; none imports another, and none is imported unasked."""

from importlib import import_module
from typing import cast

from gateway.contract.pools import ProtocolName
from workers.engines.upstream.protocol import Wire

PROTOCOLS: dict[ProtocolName, str] = {
    "elevenlabs": "workers.engines.upstream.protocols.elevenlabs:ElevenLabs",
    "fal": "workers.engines.upstream.protocols.fal:Fal",
    "gmi": "workers.engines.upstream.protocols.gmi:Gmi",
    "kling": "workers.engines.upstream.protocols.kling:Kling",
    "minimax": "workers.engines.upstream.protocols.minimax:MiniMax",
    "openai": "workers.engines.upstream.protocols.openai.wire:OpenAI",
    "replicate": "workers.engines.upstream.protocols.replicate:Replicate",
}
"""Where the class of each protocol lies."""


def make_wire(name: ProtocolName) -> Wire:
    """Import a protocol and make it."""
    module, _, kind = PROTOCOLS[name].partition(":")
    return cast(Wire, getattr(import_module(module), kind)())
