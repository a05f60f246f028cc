"""The most units that the input of a media task can come to: what it asks for, or what its model gives without a word.

Where a caller leaves size, steps or length out, the model's defaults stand in the input by now, and where the model
has none the defaults of `gateway.contract.inputs` count, by which engines go too. Sizes that follow an input picture
or video are known, since it was looked at before (step `stage`).
"""

from gateway.contract.inputs import Media, MediaSource, size_of
from gateway.contract.inputs.image import (
    DEFAULT_SCALE,
    DEFAULT_STEPS,
    AnyImageInput,
    ImageUpscaleInput,
    source_image,
)
from gateway.contract.inputs.speech import (
    MusicInput,
    TranscriptionInput,
    VoiceCloneInput,
    longest_speech_ms,
    music_seconds,
)
from gateway.contract.inputs.video import (
    Filming,
    ImageToVideoInput,
    TalkingHeadInput,
    VideoUpscaleInput,
    fps_of,
    frames_of,
)
from gateway.contract.units import Units


def image_units(value: AnyImageInput) -> Units:
    """Bound images, their pixels and the denoising steps of all of them."""
    width, height = image_size(value)
    count = value.n or 1
    return Units(images=count, pixels=count * width * height, steps=count * (value.steps or DEFAULT_STEPS))


def image_size(value: AnyImageInput) -> tuple[int, int]:
    """Give width and height of each image: as asked, else those of the picture it is made from."""
    source = source_image(value)
    if isinstance(value, ImageUpscaleInput):
        scale = value.scale or DEFAULT_SCALE
        width, height = _size_of_media(value.image)
        return width * scale, height * scale
    if value.size in (None, "auto") and source is not None:
        return _size_of_media(source)
    return size_of(value.size)


def video_units(value: Filming) -> Units:
    """Bound frames as their pixels, the steps, and the length in milliseconds."""
    width, height = film_size(value)
    frames = frames_of(value)
    return Units(
        pixels=frames * width * height,
        steps=value.steps or DEFAULT_STEPS,
        video_ms=_ms_of_frames(frames, fps_of(value)),
    )


def film_size(value: Filming) -> tuple[int, int]:
    """Give width and height of a video: as asked, else those of its first picture."""
    if value.size in (None, "auto") and isinstance(value, ImageToVideoInput):
        return _size_of_media(value.image)
    return size_of(value.size)


def video_upscale_units(value: VideoUpscaleInput) -> Units:
    """Bound a video that keeps its length and gains size."""
    scale, source = value.scale or DEFAULT_SCALE, value.video
    if not isinstance(source, Media):
        return Units()
    pixels = source.width * source.height * scale * scale * source.frames
    return Units(pixels=pixels, steps=value.steps or DEFAULT_STEPS, video_ms=source.duration_ms)


def talking_units(value: TalkingHeadInput) -> Units:
    """Bound a video as long as what is said."""
    width, height = talking_size(value)
    length_ms = value.audio.duration_ms if isinstance(value.audio, Media) else longest_speech_ms(value.text or "", None)
    frames = length_ms * fps_of(value) // 1000 + 1
    return Units(
        characters=len(value.text or ""),
        pixels=frames * width * height,
        steps=value.steps or DEFAULT_STEPS,
        audio_ms=length_ms,
        video_ms=_ms_of_frames(frames, fps_of(value)),
    )


def talking_size(value: TalkingHeadInput) -> tuple[int, int]:
    """Give width and height of a talking head: as asked, else those of the face."""
    return _size_of_media(value.image) if value.size in (None, "auto") else size_of(value.size)


def clone_units(value: VoiceCloneInput) -> Units:
    """Bound the speech of a cloned voice."""
    return Units(characters=len(value.input), audio_ms=longest_speech_ms(value.input, value.speed))


def music_units(value: MusicInput) -> Units:
    """Bound a piece of music."""
    return Units(audio_ms=int(music_seconds(value) * 1000) + 1)


def transcription_units(value: TranscriptionInput) -> Units:
    """Count the sound that is heard."""
    return Units(audio_ms=value.file.duration_ms if isinstance(value.file, Media) else 0)


def _size_of_media(source: MediaSource) -> tuple[int, int]:
    return (source.width, source.height) if isinstance(source, Media) else size_of(None)


def _ms_of_frames(frames: int, fps: int) -> int:
    return -(-frames * 1000 // fps)
