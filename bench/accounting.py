"""What the operating system says that processes used: CPU time and memory, by /proc.

A process's CPU is its user and system time and that of its children that have ended and were waited
for (fields 14 to 17 of /proc/PID/stat; proc(5)). Summed over a tree of processes this loses nothing
when a short-lived process comes and goes: its time stands on its own line while it lives and on its
parent's once it was reaped. Linux scales user and system time to the scheduler's exact run time, so
the figures are exact to one tick (10 ms) a process.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

PROC = Path("/proc")
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
SCANS = 10


class ProcessLine(msgspec.Struct, frozen=True):
    """One process of a scan: its parent, and its CPU time with that of its reaped children."""

    parent: int
    cpu_ms: float


class Machine(msgspec.Struct, frozen=True):
    """All processors together since the start: time they were busy, or taken by the host, and time in all."""

    busy_ms: float
    total_ms: float


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a set of processes in MB: resident, and proportional (shared pages divided among their users)."""

    rss_mb: float
    pss_mb: float


def parse_stat(text: str) -> ProcessLine:
    """Read a /proc/PID/stat line; the command's name in it may hold spaces and brackets."""
    fields = text[text.rindex(")") + 2 :].split()
    ticks = sum(int(value) for value in fields[11:15])
    return ProcessLine(int(fields[1]), ticks * TICK_MS)


def parse_machine(text: str) -> Machine:
    """Read the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.

    Interrupts are left out: most of them carry the load's own packets, and no process is charged for them.
    """
    ticks = [int(value) for value in text.split("\n", 1)[0].split()[1:9]]
    user, nice, system, steal = ticks[0], ticks[1], ticks[2], ticks[7]
    return Machine((user + nice + system + steal) * TICK_MS, sum(ticks) * TICK_MS)


def machine() -> Machine:
    """Read how busy all processors have been."""
    return parse_machine((PROC / "stat").read_text())


def others_share(before: Machine, after: Machine, known_ms: float) -> float:
    """Say which share of all processors went to what is not `known_ms`: other programs, kernel, host."""
    total_ms = after.total_ms - before.total_ms
    return max(0.0, after.busy_ms - before.busy_ms - known_ms) / total_ms if total_ms else 0.0


def _scan_once() -> dict[int, ProcessLine]:
    processes = {}
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            processes[int(folder.name)] = parse_stat((folder / "stat").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between the listing and the reading
    return processes


def scan() -> dict[int, ProcessLine]:
    """Read all processes; scans again while processes come and go, so that none counts twice or not at all."""
    before = _scan_once()
    for _ in range(SCANS):
        after = _scan_once()
        if after.keys() == before.keys():
            return after
        before = after
    return before


def members(processes: Mapping[int, ProcessLine], roots: Mapping[int, str]) -> dict[str, list[int]]:
    """Share processes out to roots (names by pid): each belongs to the nearest root at or above it, or to none."""
    found: dict[str, list[int]] = {name: [] for name in roots.values()}
    for pid in processes:
        at = pid
        while at not in roots and at in processes:
            at = processes[at].parent
        if at in roots:
            found[roots[at]].append(pid)
    return found


def cpu_ms(roots: Mapping[int, str]) -> dict[str, float]:
    """Give the CPU time so far of each name's roots with what is below them. Raises ProcessLookupError."""
    processes = scan()
    for pid, name in roots.items():
        if pid not in processes:
            raise ProcessLookupError(f"the {name} process {pid} has ended")
    return {name: sum(processes[pid].cpu_ms for pid in pids) for name, pids in members(processes, roots).items()}


def memory(roots: Mapping[int, str]) -> Memory:
    """Give the memory of the roots with what is below them."""
    pids = [pid for group in members(scan(), roots).values() for pid in group]
    rss_kb = sum(_field_kb(PROC / str(pid) / "status", "VmRSS:") for pid in pids)
    pss_kb = sum(_field_kb(PROC / str(pid) / "smaps_rollup", "Pss:") for pid in pids)
    return Memory(rss_mb=rss_kb / 1024, pss_mb=pss_kb / 1024)


def _field_kb(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0
