"""What a file is: told by its first bytes, then by the one reader for that form, under the limits of its kind.

Runs in a probe's process only. A form that is known and not taken (archives, JPEG 2000, documents) is refused unread.
"""

from typing import Any, BinaryIO

from gateway.media.probe.refusal import Refused
from gateway.media.probe.signatures import BY_FORM, form_of
from gateway.media.probe.sound_video import look_at_stream
from gateway.media.probe.still import look_at_image


def examine(file: BinaryIO, question: dict[str, Any]) -> dict[str, Any]:
    """Answer what a file is: `{"facts": {...}}`, or `{"refused": why, "said": words}`.

    The question names the `kind` that is wanted (null for any) and the `limits` of all kinds.
    """
    try:
        form = form_of(file.read(64))
        file.seek(0)
        wanted = question["kind"]
        if form is None:
            raise Refused("unreadable", "is no image, video or sound that is known here")
        if form not in BY_FORM:
            raise Refused("not_supported", f"is {form}, which is not taken")
        reader = BY_FORM[form]
        if reader.kind == "image" and wanted in (None, "image"):
            facts = look_at_image(file, reader, question["limits"])
        elif reader.kind != "image" and wanted != "image":
            facts = look_at_stream(file, reader, wanted, question["limits"])
        else:
            raise Refused("wrong_kind", f"is {reader.media_type}, where {wanted} is wanted")
    except Refused as refused:
        return {"refused": refused.why, "said": refused.said}
    return {"facts": facts}
