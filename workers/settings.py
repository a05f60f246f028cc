"""Every setting of a worker: the only reader of the environment on this side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from gateway.blobs.choice import check_place
from gateway.blobs.store import BlobPlace
from gateway.net.addresses import Allowed
from workers.engine import Access

PREFIX = "FAREGATE_WORKER_"
UPSTREAM_PREFIX = "FAREGATE_UPSTREAM_"

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
    blob_url: str = "data/blobs"
    """Where media lie: a folder, as a path or `file:///path`, or a bucket, as `s3://bucket/prefix`."""
    blob_endpoint: str = ""
    """Where the store of the bucket answers, as `https://host:port`; empty is AWS."""
    blob_region: str = ""
    """The region of the bucket."""
    blob_key_id: str = ""
    """The access key of the bucket; empty takes credentials from where AWS's own tools do."""
    blob_secret: str = ""
    """The secret of the access key."""
    models_dir: Path = Path("data/models")
    """The folder of local and tiny models."""
    max_concurrency: Positive = 1024
    """The most requests under lease at once, those included whose end is not yet acknowledged."""
    memory_mb: Annotated[int, Meta(ge=0)] = 0
    """The memory for the models of an engine that loads on demand, in MiB; 0 loads them all and keeps them."""
    heartbeat_s: Seconds = 1.0
    """Seconds between two heartbeats; a third of the pool's lease where that is shorter."""
    take_wait_s: Seconds = 1.0
    """How long one take waits for work; also how late a drain begins."""
    spec_s: Seconds = 5.0
    """Seconds between two looks at what the pool serves; a change drains the worker, so that it starts afresh."""
    drain_s: Seconds = 28.0
    """How long running requests may go on after SIGTERM. `faregate up` kills a worker after 35 s."""
    inline_bytes: Positive = 4 * 1024 * 1024
    """The largest media file that goes back through Redis to a waiting gateway; a larger one goes to the blob store."""
    fetch_allow: str = ""
    """Hosts and networks (CIDR), separated by commas, that results of upstreams may lie at beside public addresses."""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`."""
    upstreams: dict[str, Access] = {}
    """Keys and addresses of upstreams by name, from `FAREGATE_UPSTREAM_<NAME>_KEY` and `..._URL`."""

    @property
    def allowed(self) -> Allowed:
        """What results of upstreams may be copied from beside public addresses."""
        return Allowed.parse(self.fetch_allow)

    @property
    def blobs(self) -> BlobPlace:
        """Where media lie."""
        return BlobPlace(
            url=self.blob_url,
            endpoint=self.blob_endpoint,
            region=self.blob_region,
            key_id=self.blob_key_id,
            secret=self.blob_secret,
        )


def load_settings(environ: Mapping[str, str], **overrides: Any) -> WorkerSettings:
    """Read the settings from `environ`; `overrides` but None win. Raises SettingsError, which shows no value."""
    known = set(WorkerSettings.__struct_fields__) - {"upstreams"}
    given: dict[str, Any] = {"upstreams": _read_upstreams(environ)}
    for name, value in environ.items():
        if not name.startswith(PREFIX):
            continue
        field = name.removeprefix(PREFIX).lower()
        if field not in known:
            raise SettingsError(f"{name} is not a setting; see docs/reference/settings.md")
        given[field] = value
    given.update({name: value for name, value in overrides.items() if value is not None})
    try:
        settings = msgspec.convert(given, WorkerSettings, strict=False, dec_hook=_read_path)
        check_place(settings.blobs)
        Allowed.parse(settings.fetch_allow)
    except ValueError as error:  # msgspec's ValidationError among them
        raise SettingsError(f"a worker's setting does not fit: {error}") from None
    return settings


def _read_upstreams(environ: Mapping[str, str]) -> dict[str, Access]:
    """Read the keys and addresses of upstreams. Raises SettingsError, which shows no value."""
    found: dict[str, Access] = {}
    for name, value in environ.items():
        if not name.startswith(UPSTREAM_PREFIX):
            continue
        upstream, _, what = name.removeprefix(UPSTREAM_PREFIX).rpartition("_")
        if not upstream or what not in ("KEY", "URL"):
            raise SettingsError(f"{name} is not a setting; see docs/reference/settings.md")
        value = value.strip()
        if not value.isprintable() or not value.isascii():
            raise SettingsError(f"{name} has characters that no key and no address has")
        if what == "URL" and value and not _is_address(value):
            raise SettingsError(f"{name} takes an address, as https://host/path")
        found[upstream] = msgspec.structs.replace(found.get(upstream, Access()), **{what.lower(): value})
    return found


def _is_address(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment


def _read_path(kind: type[Any], value: Any) -> Any:
    """Make a path of a text, which is all that the environment knows; the command line brings paths."""
    if kind is not Path or not isinstance(value, str | Path) or not value:
        raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return Path(value)
