"""Transcripts as subtitles: SubRip, and WebVTT (W3C)."""

from gateway.contract.events import Segment, TranscriptOutput


def as_srt(output: TranscriptOutput) -> str:
    """Write a transcript as a SubRip file."""
    return "".join(
        f"{number}\n{_span(piece, ',')}\n{_line(piece)}\n\n" for number, piece in enumerate(_pieces(output), 1)
    )


def as_vtt(output: TranscriptOutput) -> str:
    """Write a transcript as a WebVTT file."""
    return "WEBVTT\n\n" + "".join(
        f"{_span(piece, '.')}\n{_line(piece).replace('&', '&amp;').replace('<', '&lt;')}\n\n"
        for piece in _pieces(output)
    )


def _pieces(output: TranscriptOutput) -> list[Segment]:
    """Give the segments; an engine that knows none has said all in one."""
    return output.segments or ([Segment(0, output.duration_ms, output.text)] if output.text else [])


def _line(piece: Segment) -> str:
    """Give a piece's text in one line: an empty one would end it, and `-->` would begin another."""
    return " ".join(piece.text.split()).replace("-->", "->")


def _span(piece: Segment, point: str) -> str:
    return f"{_clock(piece.start_ms, point)} --> {_clock(piece.end_ms, point)}"


def _clock(ms: int, point: str) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{point}{rest:03}"
