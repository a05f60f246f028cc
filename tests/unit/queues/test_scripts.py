"""Each Lua script says what it takes and what it answers, and keeps to it."""

import re

import pytest

from gateway.queues.scripts import Script, all_scripts, script

SCRIPTS = {one.name: one.text.decode() for one in all_scripts()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_header_states_keys_arguments_and_answer(name: str) -> None:
    header = [line for line in SCRIPTS[name].splitlines() if line.startswith("--")]
    assert header
    assert SCRIPTS[name].startswith("\n".join(header))
    text = "\n".join(header)
    assert re.search(r"^-- KEYS ", text, re.MULTILINE)
    assert re.search(r"^-- ARGV ", text, re.MULTILINE)
    assert re.search(r"^-- Answers ", text, re.MULTILINE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_key_that_is_used_is_stated(name: str) -> None:
    header = "\n".join(line for line in SCRIPTS[name].splitlines() if line.startswith("--"))
    stated = header[header.index("-- KEYS") : header.index("-- ARGV")]
    for number in set(re.findall(r"KEYS\[(\d+)\]", SCRIPTS[name])):
        assert re.search(rf"\b{number} ", stated), f"KEYS[{number}] is not stated"


def test_a_script_is_known_by_the_sum_of_its_text() -> None:
    one = script("take")
    assert one == Script("take", one.text, one.sha)
    assert re.fullmatch(r"[0-9a-f]{40}", one.sha)
