"""What a vendor's client writes is read in our names: by a model's routes, by its parameters, and by the tables."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.catalog.load import load_file
from gateway.catalog.model import Parameter, Snapshot
from gateway.contract.inputs import INPUT_TYPES
from gateway.http.vendor_input import native_input, raw_of
from gateway.http.vendor_names import NAMES


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """The catalog that is delivered, with its routes to upstreams."""
    catalog = load_file(Path(__file__).parents[3] / "catalog.yaml")
    return Snapshot(
        revision=1,
        models=catalog.models,
        pools=catalog.pools,
        prices={},
        model_names={},
        upstreams=catalog.upstreams,
    )


@pytest.mark.parametrize(
    ("model", "given", "read"),
    [
        (
            "Kling-Image2Video-V1.6-Pro",
            {"prompt": "a gate", "image": "https://x/a.png", "duration": "5", "cfg_scale": 0.5},
            {"prompt": "a gate", "image": "https://x/a.png", "seconds": 5, "cfg_scale": 0.5},
        ),
        (
            "Kling-Text2Video-V2.1-Master",
            {"prompt": "a gate", "duration": "10", "aspect_ratio": "9:16"},
            {"prompt": "a gate", "seconds": 10, "aspect_ratio": "9:16"},
        ),
        (
            "Veo3",
            {"prompt": "a gate", "durationSeconds": "8", "aspectRatio": "16:9", "negativePrompt": "fog", "seed": 1},
            {"prompt": "a gate", "seconds": 8, "aspectRatio": "16:9", "negative_prompt": "fog", "seed": 1},
        ),
        ("wan2.6-i2v", {"img_url": "https://x/a.png", "duration": 5}, {"image": "https://x/a.png", "seconds": 5}),
        ("wan2.6-t2v", {"prompt": "a", "size": "1280*720"}, {"prompt": "a", "frame_size": "1280*720"}),
        ("seedream-5.0-lite", {"prompt": "a", "image": ["https://x/a"]}, {"prompt": "a", "image": "https://x/a"}),
        (
            "seedream-5.0-lite",
            {"prompt": "a", "image": ["https://x/a", "https://x/b"], "max_images": 2},
            {"prompt": "a", "images": ["https://x/a", "https://x/b"], "max_images": 2},
        ),
        ("bria-fibo-edit", {"instruction": "blue", "images": ["data:,"]}, {"prompt": "blue", "image": "data:,"}),
        ("bria-fibo-restyle", {"image": "data:,", "style": "pencil"}, {"image": "data:,", "prompt": "pencil"}),
        (
            "minimax-tts-speech-2.6-hd",
            {"text": "Hello", "voice_id": "x", "speed": "1.1", "pitch": -3, "format": "mp3"},
            {"input": "Hello", "voice": "x", "speed": 1.1, "pitch_shift": -3, "response_format": "mp3"},
        ),
        (
            "elevenlabs-tts-v3",
            {"text": "Hello", "voice_id": "x", "output_format": "mp3_44100_128", "stability": 0.5},
            {"input": "Hello", "voice": "x", "response_format": "mp3", "stability": 0.5},
        ),
        (
            "minimax-audio-voice-clone-speech-2.6-hd",
            {"text": "Hello", "source_audio": "https://x/a.mp3", "prompt_text": "said"},
            {"input": "Hello", "sample": "https://x/a.mp3", "prompt_text": "said"},
        ),
    ],
)  # fmt: skip
def test_what_a_client_of_gmi_writes(snapshot: Snapshot, model: str, given: Any, read: Any) -> None:
    assert native_input(snapshot, "gmi", snapshot.models[model], given) == read


@pytest.mark.parametrize(
    ("model", "given", "read"),
    [
        (
            "tiny-sd",
            {"prompt": "a", "num_outputs": 2, "num_inference_steps": 4, "guidance_scale": 7.5, "output_format": "jpg"},
            {"prompt": "a", "n": 2, "steps": 4, "guidance": 7.5, "output_format": "jpeg"},
        ),
        ("tiny-sd", {"prompt": "a", "width": 64, "height": 32}, {"prompt": "a", "size": "64x32"}),
        ("tiny-sd", {"prompt": "a", "size": "64x32", "steps": 3}, {"prompt": "a", "size": "64x32", "steps": 3}),
        ("tiny-sd", {"prompt": "a", "n": 1, "num_outputs": 2}, {"prompt": "a", "n": 1, "num_outputs": 2}),
        ("tiny-wan", {"prompt": "a", "num_frames": 9, "fps": "8"}, {"prompt": "a", "frames": 9, "fps": 8}),
        (
            "fake-chat",
            {"prompt": "Hi", "system_prompt": "Be brief.", "max_new_tokens": 5, "stop_sequences": "a,b"},
            {
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
                "max_tokens": 5,
                "stop": ["a", "b"],
            },
        ),
        ("espeak-ng", {"text": "Hello", "voice_id": "en"}, {"input": "Hello", "voice": "en"}),
        ("espeak-ng", {"prompt": "Hello"}, {"input": "Hello"}),
        ("tiny-whisper", {"audio": "data:,"}, {"file": "data:,"}),
        ("tiny-sd", {"prompt": "a", "unheard_of": {"x": 1}}, {"prompt": "a", "unheard_of": {"x": 1}}),
    ],
)  # fmt: skip
def test_what_a_client_of_replicate_writes(snapshot: Snapshot, model: str, given: Any, read: Any) -> None:
    assert native_input(snapshot, "replicate", snapshot.models[model], given) == read


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({"resolution": "720p", "aspect_ratio": "9:16"}, "720x1280"),
        ({"aspect_ratio": "1:1", "resolution": "480p"}, "480x480"),
        ({"aspect_ratio": "16:9"}, "1280x720"),
        ({"aspect_ratio": "21:9"}, "1680x720"),
        ({"resolution": "1080P"}, "1920x1080"),
        ({"image_size": {"width": 640, "height": 360}}, "640x360"),
        ({"size": "640*360"}, "640x360"),
        ({"size": "9:0"}, "9:0"),
        ({"aspect_ratio": "square"}, "square"),
        ({"aspect_ratio": ["1:1"]}, ["1:1"]),
    ],
)
def test_a_size_is_read_in_pixels_as_a_ratio_or_by_its_name(snapshot: Snapshot, given: Any, size: Any) -> None:
    model = msgspec.structs.replace(snapshot.models["tiny-wan"], parameters={})
    assert native_input(snapshot, "replicate", model, {"prompt": "a"} | given) == {"prompt": "a", "size": size}


def test_a_ratio_is_the_size_that_the_model_names_for_it(snapshot: Snapshot) -> None:
    size = Parameter(type="string", default="64x64", choices=("64x64", "128x72", "256x144"))
    model = msgspec.structs.replace(snapshot.models["tiny-wan"], parameters={"size": size})
    read = native_input(snapshot, "replicate", model, {"aspect_ratio": "16:9"})
    assert read == {"size": "128x72"}


def test_nested_names_of_a_route_are_found(snapshot: Snapshot) -> None:
    plain = snapshot.models["Kling-Image2Video-V1.6-Pro"]
    route = msgspec.structs.replace(plain.routes[0], fields={"seconds": "parameters.duration as milliseconds"})
    model = msgspec.structs.replace(plain, routes=(route,))
    given = {"prompt": "a", "parameters": {"duration": 5000}}
    assert native_input(snapshot, "gmi", model, given) == {"prompt": "a", "seconds": 5}
    more = {"prompt": "a", "parameters": {"duration": 5000, "odd": 1}}
    assert native_input(snapshot, "gmi", model, more) == {"prompt": "a", "seconds": 5, "parameters": {"odd": 1}}
    assert more["parameters"] == {"duration": 5000, "odd": 1}


def test_every_entry_of_the_tables_names_a_field_of_its_task() -> None:
    wrong = [(task, name) for task, names in NAMES.items() for name, field in names.items()
             if field not in INPUT_TYPES[task].__struct_fields__]  # fmt: skip
    assert wrong == []
    assert NAMES.keys() == INPUT_TYPES.keys()


def test_an_input_is_written_as_it_is_read() -> None:
    value = {"prompt": "ü\x00\ud7ff", "seed": 2**70, "nested": {"a": [1, 2.5, None, True]}}
    assert msgspec.json.decode(msgspec.json.encode(raw_of(value))) == value
