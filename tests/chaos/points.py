"""Named points in the program at which a process kills itself: once, where a test has asked for it."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]

POINTS = {
    "before-hand-over": (
        "workers/outbox.py",
        "            fenced = await _persist(self._queue.hand_over, batch)\n",
        "before",
    ),
    "after-hand-over": (
        "workers/outbox.py",
        "            fenced = await _persist(self._queue.hand_over, batch)\n",
        "after",
    ),
    "before-arrival": (
        "gateway/flow/hand_over.py",
        "            await self._queue(there).enqueue(items)\n",
        "before",
    ),
    "after-arrival": (
        "gateway/flow/hand_over.py",
        "            await self._queue(there).enqueue(items)\n",
        "after",
    ),
}
"""Where each point is: the file, a line of it, and on which side of that line."""

_DIE = """            import os as _os, signal as _signal
            if _os.path.exists({asked!r}):
                _os.unlink({asked!r})
                _os.kill(_os.getpid(), _signal.SIGKILL)
"""


def copy_with_points(source: Path, asked: Path) -> None:
    """Copy the program, and let it die at a point whose name is a file in `asked`."""
    for part in ("gateway", "workers", "migrations"):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    asked.mkdir()
    for name, (file, line, side) in POINTS.items():
        path = source / file
        text = path.read_text()
        assert text.count(line) == 1, f"{file} has changed: where is {name}?"
        die = _DIE.format(asked=str(asked / name))
        path.write_text(text.replace(line, die + line if side == "before" else line + die))
