"""Step 2, its media: what the caller sends to be looked at lies in the blob store before anything is held."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.contract.inputs import MEDIA_FIELDS, ChatInput, Media
from gateway.contract.inputs.text import AudioPart, ContentPart, ImagePart, Message
from gateway.errors import InvalidRequest
from gateway.flow.resolve import Resolved
from gateway.media.inlet import Intake
from gateway.media.sources import Sources


class Staged(Resolved, frozen=True):
    """A resolved call whose media, if it has any, lie in the blob store, measured."""

    intake: Intake
    """What was taken in for it, and the id that its request will have."""


async def stage(sources: Sources, intake: Intake, resolved: Resolved) -> Staged:
    """Put the media of an input into the blob store, and judge where its caller wants to be told of it.

    Raises InvalidRequest, TooLarge or Unprocessable, each naming the field, NotFound for a file of somebody else,
    and Unavailable while the store is away. What was taken before stays in `intake`, to be discarded.
    """
    value = resolved.input
    if resolved.call.webhook:
        await sources.check_address(resolved.call.webhook, "webhook")
    for name in MEDIA_FIELDS[type(value)]:
        given = getattr(value, name)
        if isinstance(given, list):
            staged: Any = [
                await _staged(sources, intake, resolved, each, name, f"{name}[{at}]") for at, each in enumerate(given)
            ]
        elif given is not None:
            staged = await _staged(sources, intake, resolved, given, name, name)
        else:
            continue
        value = msgspec.structs.replace(value, **{name: staged})
    if isinstance(value, ChatInput) and any(type(message.content) is list for message in value.messages):
        value = msgspec.structs.replace(value, messages=await _messages(sources, intake, resolved, value.messages))
    return Staged(resolved.call, resolved.caller, resolved.model, resolved.price, resolved.task, value, intake)


async def _messages(sources: Sources, intake: Intake, resolved: Resolved, messages: Sequence[Message]) -> list[Message]:
    """Stage the images and sounds inside messages."""
    staged = []
    for at, message in enumerate(messages):
        if isinstance(message.content, list):
            parts = [
                await _part(sources, intake, resolved, part, f"messages[{at}].content[{index}]")
                for index, part in enumerate(message.content)
            ]
            message = msgspec.structs.replace(message, content=parts)
        staged.append(message)
    return staged


async def _part(sources: Sources, intake: Intake, resolved: Resolved, part: ContentPart, param: str) -> ContentPart:
    if isinstance(part, ImagePart):
        if not resolved.model.image_tokens:
            raise InvalidRequest("This model takes no images in messages.", code="not_supported", param=param)
        param = f"{param}.image_url.url"
        url = await _staged(sources, intake, resolved, part.image_url.url, "image", param)
        return ImagePart(image_url=msgspec.structs.replace(part.image_url, url=url))
    if isinstance(part, AudioPart):
        if not resolved.model.audio_tokens_per_s:
            raise InvalidRequest("This model takes no sound in messages.", code="not_supported", param=param)
        data = part.input_audio.data
        if isinstance(data, str) and not data.startswith("data:"):
            data = f"data:audio/{part.input_audio.format};base64,{data}"
        media = await _staged(sources, intake, resolved, data, "audio", f"{param}.input_audio.data")
        return AudioPart(input_audio=msgspec.structs.replace(part.input_audio, data=media))
    return part


async def _staged(
    sources: Sources, intake: Intake, resolved: Resolved, given: str | Media, field: str, param: str
) -> Media:
    if isinstance(given, str):
        return await sources.media(intake, resolved.caller.account_id, given, field, param)
    if given not in intake.taken:
        raise InvalidRequest("A stored file cannot be named directly; upload it, or give its URL or id.", param=param)
    return given
