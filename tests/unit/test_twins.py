"""A name that stands twice in one object is found, however it is written, and nothing else is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidRequest
from gateway.twins import refuse_twins

TWINS = [
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061":2}',
    b'{"x":{"b":[{"c":1, "c" :2}]}}',
    b'{"a/":1,"a\\/":2}',
    b'{"a":"\\u0022:","b":1,"b":2}',
    b'{"a" :1,"a":"\\":"}',
    b'{"a":":","a":1}',
    b'{"a\\\\":1,"b":"\\"","a\\\\":2}',
    b'{"m":[{"role":"x"},{"role":"y","role":"z"}]}',
    b'{"":1,"":2}',
    '{"é":1,"\\u00e9":2}'.encode(),
    b'{"\\ud83d\\ude00":1,"\xf0\x9f\x98\x80":2}',
]


@pytest.mark.parametrize("body", TWINS)
def test_twins_are_refused_by_name(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        refuse_twins(body)
    assert refused.value.code == "duplicate_key"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"5",
        b'"a:"',
        b'{"a" : 1}',
        b'{"a":":","b":[{"a":1},{"a":"\\":"}]}',
        b'{"a":"\\\\","b":"\\\\\\"","c":{"a":"\\":\\"a\\":"}}',
        b'{"a b":1,"a\\\\b":2,"a\\"b":3}',
        b'[{"n":123456789012345678901234567890},{"n":0.5e-9}]',
    ],
)
def test_what_has_no_twins_passes(body: bytes) -> None:
    refuse_twins(body)


Tree = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(alphabet='a:"\\/ {},é\n', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='ab:"\\/é', max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(Tree, st.booleans(), st.booleans())
def test_whatever_is_written_by_a_writer_passes_and_is_refused_with_a_twin(
    tree: object, ascii_only: bool, spaced: bool
) -> None:
    separators = None if spaced else (",", ":")
    text = json.dumps(tree, ensure_ascii=ascii_only, separators=separators)
    refuse_twins(text.encode())
    with pytest.raises(InvalidRequest):
        refuse_twins(f'{{"deep":[{text},{{"twin":{text},"x":1,"\\u0074win":2}}]}}'.encode())


def test_what_a_decoder_only_skipped_is_still_no_fault_of_ours() -> None:
    with pytest.raises(InvalidRequest) as refused:
        refuse_twins(b'{"a":"b","c":"b","d":nul}')
    assert refused.value.code == "invalid_json"
