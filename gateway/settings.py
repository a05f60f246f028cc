"""Every setting of gateway and settler: the only reader of the environment on this side."""

import base64
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gateway.blobs.choice import check_place
from gateway.blobs.store import BlobPlace
from gateway.net.addresses import Allowed, networks_of

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
    billing_key: str = ""
    """A key that opens the dashboard and the admin API for whatever is about money; empty is none."""
    viewer_key: str = ""
    """A key that opens the dashboard and the admin API for reading; empty is none."""
    oidc_issuer: str = ""
    """The OpenID Connect provider that operators sign in by, as it calls itself; empty is none."""
    oidc_client_id: str = ""
    """What this system is called there; its way back is the public URL with `/admin/sign-in/oidc/return`."""
    oidc_client_secret: str = ""
    """The secret that the provider gave this system."""
    oidc_role_claim: str = ""
    """The claim that roles are looked up by, such as `groups`; empty takes the verified e-mail."""
    oidc_owners: str = ""
    """E-mails, or values of the claim, whose role is owner, separated by commas."""
    oidc_billing: str = ""
    """Those whose role is billing."""
    oidc_viewers: str = ""
    """Those whose role is viewer."""
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
    max_body_bytes: Positive = 10 * 1024 * 1024
    """The largest request body that is read, but for forms with files."""
    max_upload_bytes: Positive = 512 * 1024 * 1024
    """The largest form with files."""
    max_file_bytes: Positive = 200 * 1024 * 1024
    """The largest file that `POST /v1/files` takes."""
    max_image_bytes: Positive = 50 * 1024 * 1024
    """The largest image file of a caller."""
    max_image_pixels: Positive = 50_000_000
    """The most pixels of a caller's image."""
    max_video_bytes: Positive = 200 * 1024 * 1024
    """The largest video file of a caller."""
    max_video_pixels: Positive = 8_300_000
    """The most pixels of one frame of a caller's video; the default is 4K."""
    max_video_frames: Positive = 9_000
    """The most frames of a caller's video."""
    max_video_s: Positive = 600
    """The longest video of a caller, in seconds."""
    max_audio_bytes: Positive = 100 * 1024 * 1024
    """The largest sound file of a caller."""
    max_audio_s: Positive = 7_200
    """The longest sound of a caller, in seconds."""
    fetch_allow: str = ""
    """Hosts and networks (CIDR), separated by commas, that URLs of callers may name beside public addresses."""
    fetch_s: Annotated[float, Meta(gt=0)] = 30.0
    """Seconds that fetching one URL of a caller may take."""
    media_wait_s: Annotated[float, Meta(gt=0)] = 300.0
    """Seconds that a call for media is waited for, before it is answered 202 with the id of its request."""
    trusted_proxies: str = ""
    """Addresses and networks (CIDR), by commas, of proxies whose `X-Forwarded-For` and `-Proto` are believed."""
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
    """Seconds for which kept outputs and media can be read, where an account has no time of its own."""
    keep_records_s: Positive = 400 * 86400
    """Seconds for which budget alerts, verifications of the books, and events of payments that moved nothing stay."""
    media_url_s: Positive = 3600
    """Seconds for which a signed address of a media file serves."""
    media_sweep_s: Annotated[float, Meta(gt=0)] = 10.0
    """Seconds between two rounds of the settler over the media store; a round looks at up to 1,000 files."""
    webhook_timeout_s: Annotated[float, Meta(gt=0)] = 10.0
    """Seconds that one try to deliver a webhook may take."""
    books_every_s: Annotated[float, Meta(ge=0)] = 3600.0
    """Seconds between two verifications of the books; 0 verifies them only when somebody asks."""
    alert_url: str = ""
    """Where it is told, as a signed webhook, that the books broke or hold again; empty is nowhere."""
    alert_secret: str = ""
    """What that is signed with: `whsec_` and the base64 of 24 to 64 bytes."""
    payment_secret: str = ""
    """What signs the payments that come in at `/payments/generic`, at least 20 characters; empty takes none."""
    stripe_webhook_secret: str = ""
    """The signing secret of Stripe's endpoint, `whsec_...`, for `/payments/stripe`; empty takes none."""
    settler_metrics_port: Port = 0
    """The port on which a settler serves `/metrics`, at the address of `FAREGATE_HOST`; 0 serves none."""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`."""

    @property
    def base_url(self) -> str:
        """How callers reach this system."""
        return self.public_url or f"http://{self.host}:{self.port}"

    @property
    def operator_keys(self) -> Mapping[str, str]:
        """The key of each role of operators; an empty one is none."""
        return {"owner": self.admin_key, "billing": self.billing_key, "viewer": self.viewer_key}

    @property
    def alert_key(self) -> bytes:
        """The bytes of `alert_secret`; empty where it is none."""
        try:
            key = base64.b64decode(self.alert_secret.removeprefix("whsec_"), validate=True)
        except ValueError:
            return b""
        return key if 24 <= len(key) <= 64 and self.alert_secret.startswith("whsec_") else b""

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
        if field.startswith("upstream_") and field.endswith(("_key", "_url")):
            continue  # the keys of upstreams, which workers alone need
        if field not in known:
            raise SettingsError(f"{name} is not a setting; see docs/reference/settings.md")
        given[field] = value
    given.update(overrides)
    try:
        settings = msgspec.convert(given, Settings, strict=False)
        check_place(settings.blobs)
        Allowed.parse(settings.fetch_allow)
        networks_of(settings.trusted_proxies, "trusted_proxies")
    except ValueError as error:  # msgspec's ValidationError among them
        raise SettingsError(f"a setting does not fit: {error}") from None
    _check_keys(settings)
    _check_secrets(settings)
    if settings.oidc_issuer and not (settings.oidc_client_id and settings.oidc_client_secret):
        raise SettingsError("FAREGATE_OIDC_ISSUER needs FAREGATE_OIDC_CLIENT_ID and FAREGATE_OIDC_CLIENT_SECRET")
    return settings


def _check_secrets(settings: Settings) -> None:
    """Refuse secrets that could be guessed, and an alert that nobody could verify."""
    for name in ("payment_secret", "stripe_webhook_secret"):
        if 0 < len(getattr(settings, name)) < 20:
            raise SettingsError(f"{PREFIX}{name.upper()} needs at least 20 characters")
    if settings.alert_url and not settings.alert_key:
        raise SettingsError("FAREGATE_ALERT_URL needs FAREGATE_ALERT_SECRET: whsec_ and the base64 of 24 to 64 bytes")


def _check_keys(settings: Settings) -> None:
    """Refuse keys of operators that are short, or that two roles share."""
    given = {role: key for role, key in settings.operator_keys.items() if key or role == "owner"}
    for role, key in given.items():
        if len(key) < 20:
            raise SettingsError(
                f"FAREGATE_{'ADMIN' if role == 'owner' else role.upper()}_KEY needs at least 20 characters"
            )
    if len(set(given.values())) < len(given):
        raise SettingsError("FAREGATE_ADMIN_KEY, FAREGATE_BILLING_KEY and FAREGATE_VIEWER_KEY must differ")
