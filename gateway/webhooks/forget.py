"""Once in a while, forgets what was told long ago and secrets that no longer sign."""

import asyncio
import contextlib

import structlog

from gateway.errors import Unavailable
from gateway.webhooks.outbox import Outbox
from gateway.webhooks.secrets import Secrets

log = structlog.get_logger()

EVERY_S = 600.0
KEEP_S = 30 * 86400.0
"""How long events and their tries can be looked up."""


async def forget(outbox: Outbox, secrets: Secrets, stopping: asyncio.Event) -> None:
    """Forget until told to stop."""
    while not stopping.is_set():
        try:
            await outbox.prune(KEEP_S)
            await secrets.prune()
        except Unavailable as error:
            log.warning("webhooks.retry", error=error.message)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), EVERY_S)
