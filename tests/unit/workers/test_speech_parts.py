"""The parts of the speech engine that need no model: cutting texts, words and times, options, formats, limits."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.contract.events import Segment
from gateway.contract.inputs import SpeechInput
from gateway.contract.inputs.speech import longest_speech_ms
from gateway.contract.pools import ServedModel
from workers.engine import RefusedInput
from workers.engines.speech.encoders import Stretcher
from workers.engines.speech.families import FAMILIES, family_of, load_model
from workers.engines.speech.options import BadModel, Source, options_of, part_of, source_of
from workers.engines.speech.speaking import check_manner, pieces_of, speaker_of
from workers.engines.speech.track import pcm_of
from workers.engines.speech.transcript import segment_of, words_of

ROOT = Path(__file__).parents[3]


@given(st.text(min_size=1, max_size=600), st.integers(5, 300))
def test_the_pieces_of_a_text_are_the_text(text: str, most: int) -> None:
    pieces = list(pieces_of(text, most))
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.end for piece in pieces][-1] == len(text)
    assert all(0 < len(piece.text) <= most for piece in pieces)


def test_a_text_is_cut_behind_its_sentences() -> None:
    text = 'He said "no." It was 3.5 km! \u4f60\u597d\u3002\u518d\u89c1\u3002'
    assert [piece.text for piece in pieces_of(text)] == [
        'He said "no." ',
        "It was 3.5 km! ",
        "\u4f60\u597d\u3002",
        "\u518d\u89c1\u3002",
    ]


def test_a_long_sentence_is_cut_between_its_words() -> None:
    pieces = [piece.text for piece in pieces_of("one two three four five", 10)]
    assert pieces == ["one two ", "three ", "four five"]


def test_words_are_grouped_from_tokens() -> None:
    texts = {1: " The", 2: " ga", 3: "te", 4: ".", 5: " Open", 6: "\ufffd", 7: "\ufffd"}

    def decode(tokens: Any) -> str:
        return " \u00e9t\u00e9" if list(tokens) == [6, 7] else "".join(texts[token] for token in tokens)

    words = words_of([1, 2, 3, 4, 5, 6, 7], [0.2, 0.4, 0.6, 0.7, 1.0, 1.1, 1.2], decode, "fr", 1150)
    assert words == [
        Segment(200, 200, "The"),
        Segment(200, 700, "gate."),
        Segment(700, 1000, "Open"),
        Segment(1000, 1150, "\u00e9t\u00e9"),
    ]


def test_where_no_spaces_are_written_each_token_is_a_word_and_marks_belong_to_the_one_before() -> None:
    texts = {1: "\u4f60", 2: "\u597d", 3: "\u3002"}
    words = words_of([1, 2, 3], [0.1, 0.2, 0.3], lambda tokens: "".join(texts[each] for each in tokens), "zh", 300)
    assert [word.text for word in words] == ["\u4f60", "\u597d\u3002"]


def test_a_segment_lies_within_the_sound() -> None:
    assert segment_of(" so ", 1.0, 31.0, 2000) == Segment(1000, 2000, "so")
    assert segment_of("so", 2.5, 3.0, 2000) is None
    assert segment_of("  ", 0.0, 1.0, 2000) is None


def test_samples_that_are_no_numbers_or_too_loud_do_no_harm() -> None:
    samples = np.array([0.5, 2.0, -3.0, np.nan, np.inf], np.float32)
    assert np.frombuffer(pcm_of(samples), "<i2").tolist() == [16383, 32767, -32767, 0, 32767]


@pytest.mark.parametrize("tempo", [0.25, 0.5, 0.7, 2.0, 4.0])
def test_a_sound_is_stretched_beyond_what_one_filter_can(tempo: float) -> None:
    stretcher = Stretcher(16_000, tempo)
    tone = (np.sin(np.arange(32_000) / 10) * 8000).astype("<i2").tobytes()
    made = stretcher.write(tone) + stretcher.close()
    assert len(made) / 2 == pytest.approx(32_000 / tempo, rel=0.05)


def test_speech_is_bounded_by_its_bytes_and_its_speed() -> None:
    assert longest_speech_ms("ab", None) == 2000 + 2400
    assert longest_speech_ms("\u00e9", 4.0) == 2000 + 2400
    assert longest_speech_ms("ab", 0.5) == 8801


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nothing": 1}, "nothing"),
        ({"family": "tacotron"}, "family"),
        ({"sample_min_s": 5, "sample_max_s": 4}, "sample_min_s"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_options_that_do_not_fit_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadModel, match=words):
        options_of(ServedModel(name="m", tasks=["music"], options=options))


def test_a_source_is_a_folder_a_repository_or_a_tiny_model(tmp_path: Path) -> None:
    (tmp_path / "mine" / "vocoder").mkdir(parents=True)
    (tmp_path / "mine" / "config.json").write_text('{"model_type": "whisper"}')
    (tmp_path / "mine" / "vocoder" / "config.json").write_text("{}")
    mine = source_of("mine", tmp_path)
    assert (mine.local, family_of(mine, None)) == (True, "whisper")
    assert part_of(mine, "vocoder", tmp_path).where == str(tmp_path / "mine" / "vocoder")
    assert part_of(mine, "owner/other", tmp_path) == Source(where="owner/other", local=False)
    assert source_of("tiny:tiny-vits", tmp_path).tiny == "tiny-vits"
    with pytest.raises(BadModel, match="neither a folder"):
        source_of("../up/../there", tmp_path)


def test_a_model_of_an_unknown_type_is_tried_as_waveform_and_none_is_espeak(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bark"}')
    assert family_of(source_of(str(tmp_path), tmp_path), None) == "waveform"
    assert family_of(None, None) == "espeak"
    assert set(FAMILIES) == {"espeak", "vits", "speecht5", "waveform", "musicgen", "whisper"}


def test_a_task_that_the_family_does_not_do_is_told_when_it_loads(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="does no music"):
        load_model(ServedModel(name="m", tasks=["text-to-speech", "music"]), tmp_path)
    with pytest.raises(BadModel, match="family vits needs a source"):
        load_model(ServedModel(name="m", tasks=["text-to-speech"], options={"family": "vits"}), tmp_path)


def test_voices_go_by_number_or_by_openais_names() -> None:
    assert speaker_of(None, 3) == 0
    assert speaker_of("2", 3) == 2
    assert {speaker_of(name, 3) for name in ("alloy", "ash", "ballad")} == {0, 1, 2}
    with pytest.raises(RefusedInput, match="say 0 to 2"):
        speaker_of("3", 3)


def test_a_language_is_taken_where_it_is_the_models_own() -> None:
    check_manner(SpeechInput(input="x", language="EN"), "en")
    with pytest.raises(RefusedInput, match="language: this model speaks en"):
        check_manner(SpeechInput(input="x", language="de"), "en")


WITHOUT_TORCH = """
import asyncio, sys
import subprocess
import sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from gateway.contract.pools import ServedModel
from workers.engines.speech.engine import SpeechEngine

async def main():
    folder = Path(sys.argv[1])
    (folder / "config.json").write_text('{"model_type": "whisper"}')
    states = {}
    models = [
        ServedModel(name="whisper", tasks=["speech-to-text"], source=str(folder)),
        ServedModel(name="espeak-ng", tasks=["text-to-speech"]),
    ]
    await SpeechEngine(folder).load(models, states.__setitem__)
    print(states["whisper"].state, states["whisper"].detail)
    print(states["espeak-ng"].state)

asyncio.run(main())
"""


def test_without_torch_espeak_goes_on_and_the_others_say_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    failed, ready = done.stdout.splitlines()
    assert failed == "failed this model needs torch, which is not installed: install the extra diffusers"
    assert ready == "ready"
