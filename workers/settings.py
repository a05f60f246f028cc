"""Every setting of a worker: the only reader of the environment on this side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

PREFIX = "FAREGATE_WORKER_"

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class SettingsError(ValueError):
    """A setting is unknown, missing, or has a value that does not fit. The message names it."""


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings; each is read from `FAREGATE_WORKER_` and its name in capitals."""

    redis_url: str
    """Redis or Valkey, as `redis://host:port/0`: the one the gateways use."""
    pool: str
    """The pool to pull from."""
    name: str = ""
    """How this worker is called in reports; empty means the pool, the machine and the process id."""
    blob_dir: Path = Path("data/blobs")
    """The folder for output media: the one the gateways read."""
    models_dir: Path = Path("data/models")
    """The folder of local and tiny models."""
    max_concurrency: Positive = 1024
    """The most requests under lease at once, those included whose end is not yet acknowledged."""
    heartbeat_s: Seconds = 1.0
    """Seconds between two heartbeats; a third of the pool's lease where that is shorter."""
    take_wait_s: Seconds = 1.0
    """How long one take waits for work; also how late a drain begins."""
    spec_s: Seconds = 5.0
    """Seconds between two looks at what the pool serves; a change drains the worker, so that it starts afresh."""
    drain_s: Seconds = 28.0
    """How long running requests may go on after SIGTERM. `faregate up` kills a worker after 35 s."""
    inline_bytes: Positive = 4 * 1024 * 1024
    """The largest media file that goes back through Redis to a waiting gateway; a larger one goes to `blob_dir`."""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`."""


def load_settings(environ: Mapping[str, str], **overrides: Any) -> WorkerSettings:
    """Read the settings from `environ`; `overrides` but None win. Raises SettingsError, which shows no value."""
    known = set(WorkerSettings.__struct_fields__)
    given: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX):
            continue
        field = name.removeprefix(PREFIX).lower()
        if field not in known:
            raise SettingsError(f"{name} is not a setting; see docs/reference/settings.md")
        given[field] = value
    given.update({name: value for name, value in overrides.items() if value is not None})
    try:
        return msgspec.convert(given, WorkerSettings, strict=False, dec_hook=_read_path)
    except msgspec.ValidationError as error:
        raise SettingsError(f"a worker's setting does not fit: {error}") from None


def _read_path(kind: type[Any], value: Any) -> Any:
    """Make a path of a text: the environment knows nothing else."""
    if kind is not Path or not isinstance(value, str) or not value:
        raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return Path(value)
