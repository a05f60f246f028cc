"""Raw sound made into a WAV file, for upstreams that give samples alone."""

import struct

RATE = 24_000
"""Samples a second: what OpenAI's speech call gives as `pcm`."""
CHANNELS = 1
BYTES = 2
UNKNOWN = 0xFFFFFFFF


def with_header(samples: bytes, rate: int = RATE) -> bytes:
    """Put the head of a WAV file (RIFF, 16 bits, one channel) before samples; without any, the head of a stream."""
    length = len(samples) or UNKNOWN - 36
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + length, b"WAVE", b"fmt ", 16, 1, CHANNELS, rate,
                       rate * CHANNELS * BYTES, CHANNELS * BYTES, 8 * BYTES)  # fmt: skip
    return head + struct.pack("<4sI", b"data", length) + samples
