"""What is measured of a request: the quantities that prices multiply."""

import msgspec


class Units(msgspec.Struct, array_like=True):
    """Measured quantities of one attempt, all of them whole numbers.

    Mutable, because an engine counts as it goes: whatever stands here when a request is cancelled is
    what was produced. `input_tokens` includes `cached_tokens`; `output_tokens` includes
    `reasoning_tokens`. The field order is the wire format: append, never reorder.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    characters: int = 0
    images: int = 0
    pixels: int = 0
    steps: int = 0
    audio_ms: int = 0
    video_ms: int = 0


UNIT_NAMES: tuple[str, ...] = Units.__struct_fields__
