"""Set up a Triton inference server of its own. Needs Python 3.9 to 3.13 with pip, and the network.

    python deploy/triton.py FOLDER

NVIDIA's own way to Triton is its container, which is what production runs. This one takes the server from the wheel
`nvidia-pytriton` (55 MB), for tests and for trying things out on a machine without containers: real, with the Python
backend, without GPU backends. It needs NumPy 1, so it has a virtual environment to itself. FOLDER then holds
`tritonserver`, a script that starts the server with what it needs around it:

    FOLDER/tritonserver --model-repository=DIR --grpc-port=8001
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGES = ("nvidia-pytriton==0.7.0", "numpy==1.26.4")
"""Without what they depend on: the server needs none of PyTriton's own Python, its Python backend NumPy alone."""
MADE_BY = Path(__file__)
LAUNCHER = """\
#!/bin/sh
# Starts Triton. Made by deploy/triton.py. The second folder of libraries keeps the Python backend to its own Python.
export LD_LIBRARY_PATH='{libraries}:{python}'
export PATH='{folder}/venv/bin':"$PATH"
exec '{folder}/server/bin/tritonserver' --backend-directory='{folder}/server/backends' "$@"
"""


class SetupError(Exception):
    """A step failed; the message is one line."""


def say(line: str) -> None:
    """Tell whoever waits."""
    print(f"faregate: {line}", flush=True)


def digest(folder: Path) -> str:
    """Answer what the stamp must say for the folder to be ready."""
    parts = [sys.version, sys.base_prefix, str(folder), MADE_BY.read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_done(folder: Path) -> bool:
    """Say whether the folder was made by just this script and Python."""
    stamp = folder / "stamp"
    return stamp.exists() and stamp.read_text() == digest(folder)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process work in the folder at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(*command: str | Path) -> None:
    """Run a command. Raises SetupError with the last thing it said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["it said nothing"]
        raise SetupError(f"{' '.join(str(word) for word in command[:4])} failed: {errors[-1][:300]}")


def install(folder: Path) -> Path:
    """Make the virtual environment and fill it; answers its site-packages."""
    venv = folder / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    run(sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "--no-deps", "-q", *PACKAGES)
    return venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def assemble(folder: Path, packages: Path) -> None:
    """Put the server together: its program, the Python backend, and the backend's half for this Python."""
    server, version = folder / "server", f"{sys.version_info.major}.{sys.version_info.minor}"
    shutil.rmtree(server, ignore_errors=True)
    shutil.copytree(packages / "pytriton" / "tritonserver", server)
    stub = server / "python_backend_stubs" / version / "triton_python_backend_stub"
    if not stub.exists():
        raise SetupError(f"the wheel has no Python backend for Python {version}")
    shutil.copy2(stub, server / "backends" / "python" / stub.name)
    launcher = folder / "tritonserver"
    launcher.write_text(
        LAUNCHER.format(
            folder=folder, libraries=packages / "nvidia_pytriton.libs", python=sysconfig.get_config_var("LIBDIR")
        )
    )
    launcher.chmod(0o755)


def make(folder: Path) -> Path:
    """Make the folder unless it is made; answers the script that starts the server. Raises SetupError and OSError."""
    folder = folder.absolute()
    if "'" in str(folder):
        raise SetupError("the folder's name must have no apostrophe")
    with alone(folder):
        if not is_done(folder):
            start = time.monotonic()
            say(f"setting up a Triton server in {folder} (about 75 MB to fetch)")
            assemble(folder, install(folder))
            (folder / "stamp").write_text(digest(folder))
            say(f"done after {time.monotonic() - start:.0f} s")
    return folder / "tritonserver"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    try:
        make(parser.parse_args().folder)
    except (SetupError, OSError) as error:
        sys.exit(f"faregate: {os.fspath(MADE_BY.name)}: {error}")
