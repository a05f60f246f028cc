"""The input of each task: what its OpenAI call holds beside the model.

One set of types serves every API family and every engine. Unknown fields are refused by name; the limits here are the
absolute ones, a model's catalog entry may set lower ones.
"""

from gateway.contract.inputs.fields import Media, MediaSource, size_of
from gateway.contract.inputs.image import (
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    ImageUpscaleInput,
)
from gateway.contract.inputs.speech import MusicInput, SpeechInput, TranscriptionInput, VoiceCloneInput
from gateway.contract.inputs.text import ChatInput, CompletionInput, EmbeddingInput, RerankInput
from gateway.contract.inputs.video import ImageToVideoInput, TalkingHeadInput, VideoInput, VideoUpscaleInput
from gateway.contract.tasks import Task

__all__ = [
    "INPUT_TYPES",
    "MEDIA_FIELDS",
    "ChatInput",
    "CompletionInput",
    "EmbeddingInput",
    "ImageBlendInput",
    "ImageEditInput",
    "ImageInput",
    "ImageRelightInput",
    "ImageRestyleInput",
    "ImageToVideoInput",
    "ImageUpscaleInput",
    "Input",
    "Media",
    "MediaSource",
    "MusicInput",
    "RerankInput",
    "SpeechInput",
    "TalkingHeadInput",
    "TranscriptionInput",
    "VideoInput",
    "VideoUpscaleInput",
    "VoiceCloneInput",
    "size_of",
]

Input = (
    ChatInput
    | CompletionInput
    | EmbeddingInput
    | SpeechInput
    | ImageInput
    | ImageEditInput
    | ImageBlendInput
    | ImageRelightInput
    | ImageRestyleInput
    | ImageUpscaleInput
    | VideoInput
    | ImageToVideoInput
    | VideoUpscaleInput
    | TalkingHeadInput
    | VoiceCloneInput
    | MusicInput
    | TranscriptionInput
    | RerankInput
)

INPUT_TYPES: dict[Task, type[Input]] = {
    "chat": ChatInput,
    "completion": CompletionInput,
    "embedding": EmbeddingInput,
    "text-to-speech": SpeechInput,
    "text-to-image": ImageInput,
    "image-edit": ImageEditInput,
    "image-blend": ImageBlendInput,
    "image-relight": ImageRelightInput,
    "image-restyle": ImageRestyleInput,
    "image-upscale": ImageUpscaleInput,
    "text-to-video": VideoInput,
    "image-to-video": ImageToVideoInput,
    "video-upscale": VideoUpscaleInput,
    "talking-head": TalkingHeadInput,
    "voice-clone": VoiceCloneInput,
    "music": MusicInput,
    "speech-to-text": TranscriptionInput,
    "rerank": RerankInput,
}

MEDIA_FIELDS: dict[type[Input], tuple[str, ...]] = {
    kind: tuple(name for name in ("image", "images", "mask", "video", "audio", "sample", "file") if name in fields)
    for kind in INPUT_TYPES.values()
    if (fields := kind.__struct_fields__)
}
"""The fields of each input that hold a MediaSource or a list of them."""
