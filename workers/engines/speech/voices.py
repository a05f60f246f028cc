"""Which voice speaks: espeak-ng's own by name or language, its variants, and OpenAI's names for them."""

from collections.abc import Sequence

from workers.engine import RefusedInput
from workers.engines.speech.library import Speaker

OPENAI_VOICES = {
    "alloy": "f1",
    "ash": "m1",
    "ballad": "m2",
    "cedar": "m8",
    "coral": "f2",
    "echo": "m3",
    "fable": "m4",
    "marin": "f3",
    "nova": "f4",
    "onyx": "m7",
    "sage": "f5",
    "shimmer": "steph",
    "verse": "m5",
}
"""The names that OpenAI's clients send, each a variant of its own; none imitates the voice it is named for."""

DEFAULT_LANGUAGE = "en-us"


class Voices:
    """The voices of the library, by every name under which they may be asked for."""

    def __init__(self, speakers: Sequence[Speaker], variants: Sequence[str]) -> None:
        self._variants = {name.lower(): name for name in variants}
        self._variants.update(OPENAI_VOICES)
        self._by_name: dict[str, Speaker] = {}
        self._by_language: dict[str, Speaker] = {}
        for speaker in speakers:
            self._by_name.setdefault(speaker.name.lower(), speaker)
            self._by_name.setdefault(speaker.identifier.lower(), speaker)
            self._by_language.setdefault(speaker.languages[0].lower(), speaker)
        for speaker in speakers:
            for language in speaker.languages[1:]:
                self._by_language.setdefault(language.lower(), speaker)

    def resolve(self, voice: str | None, language: str | None) -> str:
        """Give the library's name for a voice and a language. Raises RefusedInput, which names what exists."""
        spoken = None if language is None else self._speaker_of(language)
        if voice is None:
            return (spoken or self._by_language[DEFAULT_LANGUAGE]).identifier
        if voice.lower() in self._variants:
            speaker = spoken or self._by_language[DEFAULT_LANGUAGE]
            return f"{speaker.identifier}+{self._variants[voice.lower()]}"
        name, plus, variant = voice.partition("+")
        found = self._by_name.get(name.lower()) or self._by_language.get(name.lower())
        if found is None or (plus and variant.lower() not in self._variants):
            raise RefusedInput(self._no_voice(voice))
        if spoken is not None and language is not None and language.lower() not in _lowered(found):
            raise RefusedInput(f"The voice {voice[:64]!r} does not speak {language[:64]!r}: leave one of them out.")
        return f"{found.identifier}+{self._variants[variant.lower()]}" if plus else found.identifier

    def _speaker_of(self, language: str) -> Speaker:
        speaker = self._by_language.get(language.lower())
        if speaker is None:
            known = ", ".join(sorted(self._by_language))
            raise RefusedInput(f"There is no language {language[:64]!r}. There are: {known}.")
        return speaker

    def _no_voice(self, voice: str) -> str:
        variants = sorted(set(self._variants) - set(OPENAI_VOICES))
        return (
            f"There is no voice {voice[:64]!r}. There are {', '.join(OPENAI_VOICES)}; one for each language: "
            f"{', '.join(sorted(self._by_language))}; and, alone or as in 'de+f3', the variants {', '.join(variants)}."
        )


def _lowered(speaker: Speaker) -> set[str]:
    return {language.lower() for language in speaker.languages}
