"""Stop texts, chat templates and the server's folder, without a server."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.triton.conftest import ROOT
from tests.engines.triton.driver import write_tokenizer
from workers.engine import RefusedInput
from workers.engines.triton.options import BadModel
from workers.engines.triton.stops import StopScanner
from workers.engines.triton.tokenizer import ChatTemplate, find_tokenizer

MESSAGES = [{"role": "user", "content": "{{ 7 * 7 }} hello"}]


@given(
    text=st.text("ab<|>", max_size=40),
    stops=st.lists(st.text("ab<|>", min_size=1, max_size=5), max_size=4),
    cuts=st.lists(st.integers(1, 6), max_size=40),
)
def test_a_text_ends_at_its_first_stop_text_however_it_is_cut(text: str, stops: list[str], cuts: list[int]) -> None:
    scanner, shown, left = StopScanner(stops), "", text
    for cut in [*cuts, len(text) or 1]:
        shown += scanner.feed(left[:cut])
        left = left[cut:]
        assert text.startswith(shown)
    shown += scanner.rest()
    places = [text.find(stop) for stop in stops if stop in text]
    assert scanner.found is bool(places)
    if not places:
        assert shown == text
    else:  # a stop text that ends earlier is found before a longer one that begins earlier
        assert not any(stop in shown for stop in stops)
        assert any(text[len(shown) :].startswith(stop) for stop in stops)


def test_a_template_sees_messages_as_text_and_the_tokenizers_marks() -> None:
    template = ChatTemplate("{{ bos_token }}{{ messages[0].content }}|{{ messages | tojson }}", {"bos_token": "<s>"})
    made = template.prompt(MESSAGES)
    assert made.startswith("<s>{{ 7 * 7 }} hello|[{")


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% for i in range(10**9) %}x{% endfor %}",
        "{{ raise_exception('no system message') }}",
        "{{ 1 / 0 }}",
        "{{ messages[0].content + 1 }}",
    ],
)
def test_a_template_that_goes_too_far_refuses_the_request(template: str) -> None:
    with pytest.raises(RefusedInput, match="conversation"):
        ChatTemplate(template, {}).prompt(MESSAGES)


def test_a_tokenizer_is_found_by_folder_and_by_name(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "words")
    for source in (str(folder), "words"):
        tokenizer = find_tokenizer(source, tmp_path)
        assert len(tokenizer.ids("hello there you")) == 3
        assert tokenizer.pad_id == 1
    (folder / "chat_template.jinja").write_text("other")
    assert find_tokenizer("words", tmp_path).template == "other"
    with pytest.raises(BadModel, match="repository"):
        find_tokenizer("../words/x/y", tmp_path)


def test_a_server_that_is_set_up_is_left_as_it_is(triton_program: Path) -> None:
    before = triton_program.stat().st_mtime_ns
    command = [sys.executable, str(ROOT / "deploy" / "triton.py"), str(triton_program.parent)]
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert triton_program.stat().st_mtime_ns == before
    shown = subprocess.run([triton_program, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert "--model-repository" in shown.stdout + shown.stderr
