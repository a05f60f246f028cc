"""Transcripts as subtitles."""

from gateway.contract.events import Segment, TranscriptOutput
from gateway.http.subtitles import as_srt, as_vtt

SAID = TranscriptOutput(
    "Mind the gap. <b> --> me",
    duration_ms=3_725_500,
    segments=[Segment(0, 1_500, " Mind the\ngap. "), Segment(3_723_004, 3_725_500, "<b> --> me & you")],
)


def test_srt_counts_from_one_and_has_commas() -> None:
    assert as_srt(SAID) == (
        "1\n00:00:00,000 --> 00:00:01,500\nMind the gap.\n\n2\n01:02:03,004 --> 01:02:05,500\n<b> -> me & you\n\n"
    )


def test_vtt_has_points_and_nothing_that_looks_like_markup() -> None:
    assert as_vtt(SAID) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nMind the gap.\n\n"
        "01:02:03.004 --> 01:02:05.500\n&lt;b> -> me &amp; you\n\n"
    )


def test_an_engine_that_knows_no_segments_has_said_all_in_one() -> None:
    assert as_srt(TranscriptOutput("All of it.", duration_ms=900)) == "1\n00:00:00,000 --> 00:00:00,900\nAll of it.\n\n"
    assert as_vtt(TranscriptOutput("")) == "WEBVTT\n\n"
