"""A full queue refuses before any hold, and says when to come back."""

import pytest

from gateway.catalog.model import Pool
from gateway.errors import TooManyRequests
from gateway.routing.backlog import RETRY_AFTER_MOST_S, Backlog

POOL = Pool(name="p", engine="fake", backlog=10)


def test_a_full_queue_is_refused_with_a_time_to_come_back() -> None:
    backlog = Backlog()
    backlog.enqueued("p", 9)
    backlog.admit(POOL)
    backlog.enqueued("p", 10)
    with pytest.raises(TooManyRequests) as caught:
        backlog.admit(POOL)
    assert caught.value.code == "queue_full"
    assert caught.value.retry_after_s is not None
    assert 0 < caught.value.retry_after_s <= RETRY_AFTER_MOST_S


def test_a_sample_that_shows_room_opens_the_queue_again() -> None:
    backlog = Backlog()
    backlog.enqueued("p", 10)
    backlog.sampled("p", 3)
    backlog.admit(POOL)
