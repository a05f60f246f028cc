"""CPU time is taken from the operating system for whole trees of processes, and nothing is lost or counted twice."""

import os
import subprocess
import sys
import time

import pytest

from bench.accounting import (
    Machine,
    ProcessLine,
    cpu_ms,
    members,
    memory,
    others_share,
    parse_machine,
    parse_stat,
    scan,
)

STAT = "42 (a b) c) S 7 1 1 0 -1 4194560 1 0 0 0 3 4 5 6 20 0 1 0 99 1 1 1"
SPIN = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_a_stat_line_is_read_behind_the_name() -> None:
    """User, system, and both of reaped children are summed, whatever the process is called."""
    tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
    assert parse_stat(STAT) == ProcessLine(7, (3 + 4 + 5 + 6) * tick_ms)


def test_each_process_belongs_to_the_nearest_root() -> None:
    """The supervisor's share excludes the trees that have a name of their own; strangers belong to nobody."""
    line = ProcessLine
    processes = {1: line(0, 0), 2: line(1, 0), 3: line(2, 0), 4: line(3, 0), 5: line(2, 0), 9: line(1, 0)}
    assert members(processes, {2: "supervisor", 3: "postgres"}) == {"supervisor": [2, 5], "postgres": [3, 4]}


def test_two_roots_of_one_name_are_summed() -> None:
    """Two workers count as `worker`."""
    processes = {2: ProcessLine(1, 0), 3: ProcessLine(1, 0)}
    assert members(processes, {2: "worker", 3: "worker"}) == {"worker": [2, 3]}


def test_a_child_that_came_and_went_is_counted() -> None:
    """A short-lived child's CPU is found on its parent, once it has been reaped."""
    before = cpu_ms({os.getpid(): "test"})["test"]
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    assert cpu_ms({os.getpid(): "test"})["test"] - before >= 250


def test_a_child_that_lives_is_counted_once() -> None:
    """A running child's CPU belongs to its own root where it has one, and to its parent's otherwise."""
    with subprocess.Popen([sys.executable, "-c", SPIN + "time.sleep(60)"]) as child:
        while child.pid not in scan() or scan()[child.pid].cpu_ms < 250:
            time.sleep(0.05)
        apart = cpu_ms({os.getpid(): "parent", child.pid: "child"})
        together = cpu_ms({os.getpid(): "parent"})
        child.kill()
    assert apart["child"] >= 250
    assert together["parent"] == pytest.approx(
        apart["parent"] + apart["child"], abs=250
    )  # counted twice it would be 300 more


def test_a_process_that_has_ended_is_an_error() -> None:
    """Figures of a process that died under load are refused, not taken for zero."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    with pytest.raises(ProcessLookupError, match="gateway"):
        cpu_ms({child.pid: "gateway"})


def test_what_others_take_is_what_is_left_of_the_busy_time() -> None:
    """Idle time, waiting and interrupts are not busy; what the host takes is; guests stand in user already."""
    tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
    before = parse_machine("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1")
    after = parse_machine("cpu  20 1 10 50 9 2 3 5 20 0\ncpu0 1")
    assert after == Machine(36 * tick_ms, 100 * tick_ms)
    assert others_share(before, after, known_ms=26 * tick_ms) == pytest.approx(0.1)
    assert others_share(before, after, known_ms=50 * tick_ms) == 0


def test_memory_is_that_of_the_tree() -> None:
    """A child's memory is part of its parent's; shared pages are divided in PSS."""
    alone = memory({os.getpid(): "test"})
    hold = "x = b'x' * 50_000_000\nprint(len(x), flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        both = memory({os.getpid(): "test"})
        child.kill()
    assert both.rss_mb - alone.rss_mb > 45
    assert 0 < both.pss_mb <= both.rss_mb
