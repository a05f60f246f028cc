"""Every setting of gateway and settler: the only reader of the environment on this side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

PREFIX = "FAREGATE_"

Port = Annotated[int, Meta(ge=0, le=65535)]
Positive = Annotated[int, Meta(ge=1)]


class SettingsError(ValueError):
    """A setting is unknown, missing, or has a value that does not fit. The message names it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings; each is read from `FAREGATE_` and its name in capitals."""

    database_url: str
    """Postgres, as `postgresql://user:password@host:port/name`, or with `?host=/socket/folder`."""
    redis_url: str
    """Redis or Valkey, as `redis://host:port/0`."""
    admin_key: str
    """The bearer secret of `/admin/api`: at least 20 characters."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: Port = 8080
    """The port to listen on; 0 takes a free one."""
    listen_fd: int = -1
    """A socket that listens already, inherited from the process that started this one; -1 opens host and port."""
    public_url: str = ""
    """How callers reach this system; empty means `http://host:port`."""
    engines: str = ""
    """Only models of these engines are listed, separated by commas; empty lists all."""
    blob_dir: Path = Path("data/blobs")
    """The folder for output media."""
    max_body_bytes: Positive = 10 * 1024 * 1024
    """The largest request body that is read."""
    admit_batch: Positive = 128
    """The most requests that one admission statement takes."""
    settle_batch: Positive = 256
    """The most requests that one settlement statement takes."""
    sweep_s: Annotated[float, Meta(gt=0)] = 2.0
    """Seconds between two rounds of the sweeper."""
    snapshot_s: Annotated[float, Meta(gt=0)] = 0.3
    """Seconds between two looks for changed keys, prices and models."""
    drain_notice_s: Annotated[float, Meta(ge=0)] = 0.0
    """Seconds from SIGTERM, which `/health/ready` shows at once, to the last new connection: for load balancers."""
    keep_output_s: Positive = 7 * 86400
    """Seconds for which kept outputs can be read."""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`."""


def load_settings(environ: Mapping[str, str], **overrides: Any) -> Settings:
    """Read the settings from `environ`; `overrides` win. Raises SettingsError, never showing a value."""
    known = set(Settings.__struct_fields__)
    given: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX):
            continue
        field = name.removeprefix(PREFIX).lower()
        if field.startswith("worker_") or field in {"url", "api_key", "data"}:
            continue  # read by workers and by the client commands
        if field not in known:
            raise SettingsError(f"{name} is not a setting; see docs/reference/settings.md")
        given[field] = value
    given.update(overrides)
    try:
        settings = msgspec.convert(given, Settings, strict=False, dec_hook=_read_path)
    except msgspec.ValidationError as error:
        raise SettingsError(f"a setting does not fit: {error}") from None
    if len(settings.admin_key) < 20:
        raise SettingsError("FAREGATE_ADMIN_KEY needs at least 20 characters")
    return settings


def _read_path(kind: type[Any], value: Any) -> Any:
    """Make a path of a text: the environment knows nothing else."""
    if kind is not Path or not isinstance(value, str) or not value:
        raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return Path(value)
