"""espeak-ng through ctypes: one synthesiser for the whole process.

The library keeps its state in globals, so one lock guards it, and no two requests speak at once.
Types and constants: `speak_lib.h` of espeak-ng 1.52.
"""

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path

import espeakng_loader
import msgspec

_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_CHARACTERS = 1
_UTF8 = 1
_RATE = 1
_PITCH = 3
_WORD = 1
_BUFFER_MS = 60


_LOCK = threading.Lock()


class _Voice(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("xx1", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_uint64),
    )


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Event))


class EspeakError(Exception):
    """espeak-ng did not start, or refused a call."""


class Speaker(msgspec.Struct, frozen=True):
    """A voice that espeak-ng has."""

    name: str
    languages: tuple[str, ...]
    identifier: str


Heard = Callable[[bytes, int], bool]
"""Takes the next samples (16 bits, mono) and how many characters have been spoken; answers whether to go on."""


class Espeak:
    """The library, started."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self._library.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self._data = Path(espeakng_loader.get_data_path())
        self.sample_rate: int = self._library.espeak_Initialize(
            _SYNCHRONOUS, _BUFFER_MS, str(self._data).encode(), _DO_NOT_EXIT
        )
        if self.sample_rate <= 0:
            raise EspeakError("espeak-ng did not start: its data is missing")
        self._heard: Heard | None = None
        self._spoken = 0
        self._callback = _CALLBACK(self._on_samples)

    def speakers(self) -> list[Speaker]:
        """List the voices, in the library's order."""
        found: list[Speaker] = []
        listed = self._library.espeak_ListVoices(None)
        at = 0
        while listed[at]:
            voice = listed[at].contents
            found.append(Speaker(voice.name.decode().strip(), _languages(voice.languages), voice.identifier.decode()))
            at += 1
        return found

    def variants(self) -> list[str]:
        """List what a voice may be varied by, as in `en-us+f3`."""
        return sorted(path.name for path in (self._data / "voices" / "!v").iterdir())

    def speak(self, text: str, *, voice: str, rate: int, pitch: int, heard: Heard) -> bool:
        """Synthesise a text; blocks, and calls `heard` every 60 ms of sound. Answers False when that said stop.

        `rate` is in words a minute, from 80 to 700; `pitch` from 0 to 100. Raises EspeakError.
        """
        encoded = text.encode()
        library = self._library
        with _LOCK:
            library.espeak_SetSynthCallback(self._callback)
            if library.espeak_SetVoiceByName(voice.encode()) != 0:
                raise EspeakError(f"espeak-ng cannot load the voice {voice}")
            library.espeak_SetParameter(_RATE, rate, 0)
            library.espeak_SetParameter(_PITCH, pitch, 0)
            self._heard, self._spoken = heard, 0
            failed = library.espeak_Synth(encoded, len(encoded) + 1, 0, _CHARACTERS, 0, _UTF8, None, None)
            ended, self._heard = self._heard is not None, None
        if failed:
            raise EspeakError("espeak-ng could not synthesise this text")
        return ended

    def _on_samples(self, samples: int | None, count: int, events: "ctypes._Pointer[_Event]") -> int:
        """Take what was synthesised; 1 stops. An error raised in here is lost, and stops at the next call."""
        heard, self._heard = self._heard, None
        if heard is None:
            return 1
        at = 0
        while events[at].type:
            if events[at].type == _WORD:
                self._spoken = max(self._spoken, events[at].text_position - 1 + events[at].length)
            at += 1
        if samples and count and not heard(ctypes.string_at(samples, 2 * count), self._spoken):
            return 1
        self._heard = heard
        return 0


def _languages(address: int) -> tuple[str, ...]:
    """Read pairs of a priority byte and a string, ended by a zero byte."""
    languages: list[str] = []
    while ctypes.c_ubyte.from_address(address).value:
        language = ctypes.string_at(address + 1)
        languages.append(language.decode())
        address += len(language) + 2
    return tuple(languages)
