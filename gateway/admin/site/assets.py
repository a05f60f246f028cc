"""Stylesheet and scripts: named by their content, kept by browsers for good, served from memory."""

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from gateway.errors import NotFound

ADMIN = Path(__file__).parent.parent
STATIC = ADMIN / "static"
PREFIX = "/assets/"
KEPT = "public, max-age=31536000, immutable"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
TAKEN = ("htmx.js", "hx-csp.js", "hx-sse.js", "uplot.js", "uplot.css")
"""What deploy/assets.py brings from npm."""
OWN = ("app.js", "favicon.svg", "icons.svg", "statement.css")


class AssetsMissing(RuntimeError):
    """A file that pages need is not there; the message says how it comes."""


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is served."""

    address: str
    content: bytes
    zipped: bytes
    media_type: str


def check_assets(taken: Path = STATIC) -> None:
    """See that all that comes from npm is there. Raises AssetsMissing."""
    missing = [name for name in TAKEN if not (taken / name).is_file()]
    if missing:
        raise AssetsMissing(f"{', '.join(missing)} of the dashboard not found: run python3 deploy/assets.py")


class Assets:
    """All files that pages refer to, read once."""

    def __init__(self, own: Path = ADMIN / "assets", taken: Path = STATIC) -> None:
        check_assets(taken)
        sources = {name: [own / name] for name in OWN} | {
            "site.css": [taken / "uplot.css", own / "site.css"],
            "htmx.js": [taken / "htmx.js", taken / "hx-csp.js", taken / "hx-sse.js"],
            "uplot.js": [taken / "uplot.js"],
        }
        self._named: Mapping[str, Asset] = {name: _read(name, paths) for name, paths in sources.items()}
        self._at = {asset.address: asset for asset in self._named.values()}

    def address(self, name: str) -> str:
        """Give the address of a file by its plain name."""
        return self._named[name].address

    def handler(self) -> HTTPRouteHandler:
        """Make the route that serves them, to anyone."""
        at = self._at

        @get(f"{PREFIX}{{name:str}}", opt={"needs": "anyone"}, include_in_schema=False)
        async def serve_asset(name: FromPath[str], request: Request[object, object, State]) -> Response[bytes]:
            """Serve a file by its hashed name."""
            asset = at.get(PREFIX + name)
            if asset is None:
                raise NotFound("There is no such file.")
            zips = "gzip" in request.headers.get("accept-encoding", "")
            headers = {"cache-control": KEPT, "vary": "accept-encoding"}
            if zips:
                headers["content-encoding"] = "gzip"
            return Response(asset.zipped if zips else asset.content, media_type=asset.media_type, headers=headers)

        return serve_asset


def _read(name: str, paths: Sequence[Path]) -> Asset:
    content = b"\n".join(path.read_bytes() for path in paths)
    mark = hashlib.sha256(content).hexdigest()[:12]
    stem, _, ending = name.rpartition(".")
    return Asset(
        address=f"{PREFIX}{stem}.{mark}.{ending}",
        content=content,
        zipped=gzip.compress(content, 9, mtime=0),
        media_type=TYPES[f".{ending}"],
    )
