"""What a caller is told of a request that did not succeed."""

import pytest

from gateway.flow.respond import failure


@pytest.mark.parametrize(
    ("words", "param"),
    [
        ("sample: it is silent; send a voice.", "sample"),
        ("images[2]: it is no picture.", "images[2]"),
        ("nonsense: that is no field of any input.", None),
        ("The engine cannot take this input.", None),
    ],
)
def test_a_refusal_of_an_engine_names_the_field_that_it_begins_with(words: str, param: str | None) -> None:
    refusal = failure("req_1", "refused_by_engine", words)
    assert (refusal.status, refusal.param, refusal.message) == (400, param, words)
