"""The formats of sound: samples go in bit by bit, an encoded file comes out bit by bit."""

import struct
from fractions import Fraction
from typing import Literal, Protocol

import av
import msgspec
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.filter import Graph

Format = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]

PCM_RATE = 24_000
"""Raw samples carry no rate: OpenAI's clients take them for 24 kHz, 16 bits, mono, little-endian."""
UNKNOWN_SIZE = 0xFFFFFFFF
"""What stands for a length in the header of a wav file that is still being made: read to the end."""

MEDIA_TYPES: dict[Format, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


class Codec(msgspec.Struct, frozen=True):
    """How FFmpeg makes a format; a rate of 0 keeps that of the samples.

    The options trade a little quality, which a synthetic voice does not show, for two to four times the speed.
    """

    container: str
    codec: str
    rate: int = 0
    bit_rate: int = 0
    options: dict[str, str] = {}


CODECS: dict[Format, Codec] = {
    "mp3": Codec("mp3", "libmp3lame", bit_rate=64_000, options={"compression_level": "7"}),
    "opus": Codec("ogg", "libopus", 24_000, 32_000, {"application": "voip", "compression_level": "5"}),
    "aac": Codec("adts", "aac", bit_rate=64_000, options={"aac_coder": "fast"}),
    "flac": Codec("flac", "flac"),
}


MUSIC: dict[Format, Codec] = {
    "mp3": Codec("mp3", "libmp3lame", bit_rate=128_000, options={"compression_level": "5"}),
    "opus": Codec("ogg", "libopus", 48_000, 96_000, {"application": "audio"}),
    "aac": Codec("adts", "aac", bit_rate=128_000),
}
"""What music needs more: the bit rates, and the coders made for it."""

SLOWEST_STEP = 0.5
"""The slowest that one filter stretches to."""


class Encoder(Protocol):
    """Takes samples, gives the bytes of a file."""

    def write(self, samples: bytes) -> bytes:
        """Encode samples (16 bits, mono) and give the bytes that are ready."""
        ...

    def close(self) -> bytes:
        """Give the rest of the file."""
        ...


class WavEncoder:
    """A RIFF file whose header says that its length is unknown, as a stream's must."""

    def __init__(self, rate: int) -> None:
        self._head = wav_header(rate, UNKNOWN_SIZE)

    def write(self, samples: bytes) -> bytes:
        """Give the samples as they are, after the header."""
        head, self._head = self._head, b""
        return head + samples

    def close(self) -> bytes:
        """Give the header, if nothing was ever written."""
        return self._head


def wav_header(rate: int, data_bytes: int) -> bytes:
    """Make the 44 bytes before the samples of a wav file (RIFF, PCM, 16 bits, mono)."""
    whole = UNKNOWN_SIZE if data_bytes == UNKNOWN_SIZE else data_bytes + 36
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    return struct.pack("<4sI4s", b"RIFF", whole, b"WAVE") + form + struct.pack("<4sI", b"data", data_bytes)


def with_known_size(rate: int, wav: bytes) -> bytes:
    """Give a finished wav file the header that states its length."""
    return wav_header(rate, len(wav) - 44) + wav[44:]


class PcmEncoder:
    """Raw samples at 24 kHz."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._resampler = AudioResampler("s16", "mono", PCM_RATE)

    def write(self, samples: bytes) -> bytes:
        """Resample."""
        frames = self._resampler.resample(frame_of(samples, self._rate))
        return b"".join(samples_of(frame) for frame in frames)

    def close(self) -> bytes:
        """Give what the resampler held back."""
        return b"".join(samples_of(frame) for frame in self._resampler.resample(None))


class _Sink:
    """A file that can only be written: what was written since the last look is ready to go."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Take bytes of the file."""
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        """Give what has come since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


class MediaEncoder:
    """A format that FFmpeg makes."""

    def __init__(self, codec: Codec, rate: int) -> None:
        self._rate = rate
        self._sink = _Sink()
        self._container = av.open(self._sink, "w", format=codec.container)
        stream = self._container.add_stream(
            codec.codec, rate=codec.rate or rate, options=codec.options, layout="mono", bit_rate=codec.bit_rate
        )
        assert isinstance(stream, AudioStream)
        self._stream = stream
        self._samples = 0

    def write(self, samples: bytes) -> bytes:
        """Encode the samples."""
        frame = frame_of(samples, self._rate, self._samples)
        self._samples += len(samples) // 2
        self._container.mux(self._stream.encode(frame))
        return self._sink.taken()

    def close(self) -> bytes:
        """Flush the codec and close the file."""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.taken()


class Stretcher:
    """Slows or hastens speech without changing its pitch: FFmpeg's atempo, which takes 0.5 to 100 and is chained."""

    def __init__(self, rate: int, tempo: float) -> None:
        self._rate = rate
        self._samples = 0
        self._graph = Graph()
        source = self._graph.add_abuffer(sample_rate=rate, format="s16", layout="mono", time_base=Fraction(1, rate))
        shape = self._graph.add("aformat", "sample_fmts=s16:channel_layouts=mono")
        sink = self._graph.add("abuffersink")
        last = source
        while tempo:
            step = max(tempo, SLOWEST_STEP)
            tempo_filter = self._graph.add("atempo", f"{step:.6f}")
            last.link_to(tempo_filter)
            last, tempo = tempo_filter, (tempo / step if step != tempo else 0.0)
        last.link_to(shape)
        shape.link_to(sink)
        self._graph.configure()

    def write(self, samples: bytes) -> bytes:
        """Stretch samples and give those that are ready."""
        self._graph.push(frame_of(samples, self._rate, self._samples))
        self._samples += len(samples) // 2
        return self._pull()

    def close(self) -> bytes:
        """Give the rest."""
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> bytes:
        parts: list[bytes] = []
        while True:
            try:
                frame = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):
                return b"".join(parts)
            assert isinstance(frame, av.AudioFrame)
            parts.append(samples_of(frame))


def frame_of(samples: bytes, rate: int, at: int = 0) -> av.AudioFrame:
    """Make a frame of samples (16 bits, mono), the first of which is number `at`."""
    frame = av.AudioFrame(format="s16", layout="mono", samples=len(samples) // 2)
    frame.sample_rate = rate
    frame.time_base = Fraction(1, rate)
    frame.pts = at
    plane = frame.planes[0]
    plane.update(samples + bytes(plane.buffer_size - len(samples)))
    return frame


def samples_of(frame: av.AudioFrame) -> bytes:
    """Give the samples of a frame of 16 bits, mono; its plane may be longer."""
    return bytes(frame.planes[0])[: 2 * frame.samples]


def make_encoder(kind: Format, rate: int, *, music: bool = False) -> Encoder:
    """Make the encoder of a format for samples of a rate in Hz."""
    if kind == "wav":
        return WavEncoder(rate)
    if kind == "pcm":
        return PcmEncoder(rate)
    codec = MUSIC.get(kind, CODECS[kind]) if music else CODECS[kind]
    return MediaEncoder(codec, rate)
