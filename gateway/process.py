"""What gateways and settlers share as processes: a name, settings, and what counts as away."""

import os
import socket

import click

from gateway.db.session import is_unavailable
from gateway.errors import Unavailable
from gateway.queues.port import QueueUnavailable
from gateway.settings import Settings, SettingsError, load_settings


def process_name() -> str:
    """Name this process for others: replies are addressed by it, and it never comes twice."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(3).hex()}"


def is_away(error: BaseException) -> bool:
    """Say whether an error means that Postgres or Redis is away for the moment."""
    return isinstance(error, Unavailable | QueueUnavailable) or is_unavailable(error)


def process_settings() -> Settings:
    """Read the settings of this process. Raises click's UsageError, in one line."""
    try:
        return load_settings(os.environ)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
