"""How the clouds call the fields of a task's input, one table a task: the name there, and the field that it means.

Names as the request queue of GMI, Replicate and the vendors behind them document them. A name that a model's task has
itself, or that its catalog entry declares, is never read by these tables.
"""

from collections.abc import Mapping

from gateway.contract.tasks import Task

_SIZE = {"image_size": "size", "aspect_ratio": "size", "aspectRatio": "size", "ratio": "size", "resolution": "size"}
_STEPS = {"num_inference_steps": "steps", "inference_steps": "steps"}
_WORDS = {"prompt_text": "prompt", "instruction": "prompt"}
_GUIDANCE = {"guidance_scale": "guidance", "cfg_scale": "guidance", "cfg": "guidance"}
_DRAWING = _STEPS | _GUIDANCE | _WORDS | {"negativePrompt": "negative_prompt"}
_IMAGE = _SIZE | _DRAWING | {
    "num_outputs": "n",
    "num_images": "n",
    "number_of_images": "n",
    "max_images": "n",
    "output_quality": "output_compression",
    "format": "output_format",
}  # fmt: skip
_PICTURE = dict.fromkeys(
    (
        "image_url",
        "img_url",
        "input_image",
        "image_input",
        "init_image",
        "start_image",
        "reference_image",
        "first_frame",
        "first_frame_image",
        "input_reference",
        "images",
    ),
    "image",
)
_PICTURES = dict.fromkeys(("image", "image_urls", "input_images", "image_input", "reference_images"), "images")
_STRENGTH = {"prompt_strength": "strength", "image_strength": "strength", "denoise": "strength"}
_FILM = _SIZE | _DRAWING | {
    "duration": "seconds",
    "durationSeconds": "seconds",
    "duration_seconds": "seconds",
    "num_frames": "frames",
    "video_length": "frames",
    "frames_per_second": "fps",
    "frame_rate": "fps",
}  # fmt: skip
_SPOKEN = {
    "text": "input",
    "prompt": "input",
    "language_code": "language",
    "speaking_rate": "speed",
    "output_format": "response_format",
    "format": "response_format",
    "audio_format": "response_format",
    "audio_encoding": "response_format",
}
_VIDEO = dict.fromkeys(("video_url", "input_video", "video_path"), "video")
_TEXT = {
    "max_new_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "num_outputs": "n",
}

NAMES: Mapping[Task, Mapping[str, str]] = {
    "chat": _TEXT,
    "completion": _TEXT,
    "embedding": {"text": "input", "texts": "input", "prompt": "input"},
    "rerank": {"passages": "documents", "texts": "documents", "top_k": "top_n"},
    "text-to-image": _IMAGE,
    "image-edit": _IMAGE | _STRENGTH | _PICTURE | {"mask_url": "mask", "mask_image": "mask"},
    "image-blend": _IMAGE | _STRENGTH | _PICTURES,
    "image-relight": _IMAGE | _STRENGTH | _PICTURE,
    "image-restyle": _IMAGE | _STRENGTH | _PICTURE | {"style": "prompt"},
    "image-upscale": _IMAGE | _PICTURE | {"scale_factor": "scale", "upscale_factor": "scale"},
    "text-to-video": _FILM,
    "image-to-video": _FILM | _PICTURE,
    "video-upscale": _STEPS
    | _GUIDANCE
    | _WORDS
    | _STRENGTH
    | _VIDEO
    | {"scale_factor": "scale", "upscale_factor": "scale"},
    "talking-head": _SIZE
    | _STEPS
    | _WORDS
    | _PICTURE
    | {"audio_url": "audio", "input_audio": "audio", "source_audio": "audio", "script": "text", "voice_id": "voice"},
    "text-to-speech": _SPOKEN | {"voice_id": "voice", "speaker": "voice"},
    "voice-clone": _SPOKEN
    | {
        "source_audio": "sample",
        "audio_url": "sample",
        "reference_audio": "sample",
        "speaker": "sample",
        "speaker_wav": "sample",
        "prompt_text": "sample_text",
        "reference_text": "sample_text",
    },
    "music": {
        "duration": "seconds",
        "duration_seconds": "seconds",
        "guidance_scale": "guidance",
        "classifier_free_guidance": "guidance",
        "output_format": "response_format",
        "format": "response_format",
    },
    "speech-to-text": {
        "audio": "file",
        "audio_file": "file",
        "audio_url": "file",
        "file_url": "file",
        "language_code": "language",
    },
}
