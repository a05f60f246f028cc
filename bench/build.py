"""The load client is C, built on first use: by the system's compiler, else by the one in the `ziglang` wheel."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = (HERE / "load.c", HERE / "answer.c")
HEADERS = (HERE / "answer.h",)
BIN = HERE / "bin"
CLIENT = BIN / "load"
ZIG = "ziglang==0.15.2"


def build_client() -> Path:
    """Give the path of the load client, built anew where a source is younger than it."""
    if CLIENT.exists() and all(CLIENT.stat().st_mtime >= path.stat().st_mtime for path in SOURCES + HEADERS):
        return CLIENT
    BIN.mkdir(exist_ok=True)
    fresh = BIN / f"load.{os.getpid()}"
    command, environ = compiler()
    subprocess.run([*command, "-O2", "-o", str(fresh), *map(str, SOURCES)], check=True, env=environ)
    fresh.rename(CLIENT)
    return CLIENT


def compiler() -> tuple[list[str], dict[str, str]]:
    """Find a C compiler: its command and environment."""
    environ = dict(os.environ)
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found], environ
    return zig_compiler(environ)


def zig_compiler(environ: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Install the compiler of the `ziglang` wheel into the ignored folder, and give its command and environment."""
    home = BIN / "zig"
    if not (home / "ziglang").is_dir():
        print(f"no C compiler found: installing {ZIG} into {home}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(home), ZIG]
        subprocess.run(pip, check=True)
    environ["PYTHONPATH"] = str(home)
    environ["ZIG_GLOBAL_CACHE_DIR"] = environ["ZIG_LOCAL_CACHE_DIR"] = str(BIN / "zig-cache")
    return [sys.executable, "-m", "ziglang", "cc"], environ
