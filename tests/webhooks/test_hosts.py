"""A receiver in trouble gets a pause that grows, is tried by one call after it, and others never notice."""

from gateway.webhooks.hosts import FAILURES, LONGEST_PAUSE_S, MOST_AT_ONCE, PAUSE_S, Hosts
from gateway.webhooks.schedule import JITTER, RETRY_S, next_s


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def fail(hosts: Hosts, times: int) -> None:
    for _ in range(times):
        hosts.began("bad")
        hosts.ended("bad", well=False)


def test_a_receiver_gets_only_a_few_calls_at_a_time() -> None:
    hosts = Hosts(Clock())
    for _ in range(MOST_AT_ONCE - 1):
        hosts.began("one")
    assert hosts.busy() == []
    hosts.began("one")
    assert hosts.busy() == ["one"]
    hosts.ended("one", well=True)
    assert hosts.busy() == []
    assert hosts.under_way == MOST_AT_ONCE - 1


def test_a_receiver_that_keeps_failing_is_left_alone_longer_each_time() -> None:
    clock = Clock()
    hosts = Hosts(clock)
    fail(hosts, FAILURES - 1)
    assert hosts.busy() == []
    for doublings in range(8):
        fail(hosts, 1)
        clock.now_s += min(PAUSE_S * 2**doublings, LONGEST_PAUSE_S) - 0.1
        assert hosts.busy() == ["bad"]
        clock.now_s += 0.2
        assert hosts.busy() == []
        hosts.began("bad")
        assert hosts.busy() == ["bad"]  # one call finds out, the others wait for it
        hosts.ended("bad", well=True)
        fail(hosts, FAILURES + doublings)


def test_a_success_ends_the_pause_and_what_is_long_unused_is_forgotten() -> None:
    clock = Clock()
    hosts = Hosts(clock)
    fail(hosts, FAILURES + 3)
    hosts.began("bad")
    hosts.ended("bad", well=True)
    assert hosts.busy() == []
    fail(hosts, FAILURES)
    clock.now_s += 100_000
    assert hosts.busy() == []
    fail(hosts, FAILURES - 1)
    assert hosts.busy() == []


def test_an_event_is_tried_for_a_day_and_then_given_up() -> None:
    assert 23.5 * 3600 <= sum(RETRY_S) <= 24 * 3600
    for tries, pause_s in enumerate(RETRY_S, 1):
        told = next_s(tries)
        assert told is not None
        assert pause_s <= told <= pause_s * (1 + JITTER)
    assert next_s(len(RETRY_S) + 1) is None
