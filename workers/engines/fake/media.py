"""Who makes which media in the fake engine. Imported only where a model does one: it needs Pillow and PyAV."""

from collections.abc import Awaitable, Callable

from gateway.contract.events import Output
from gateway.contract.inputs import (
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    ImageToVideoInput,
    ImageUpscaleInput,
    Input,
    MusicInput,
    SpeechInput,
    TalkingHeadInput,
    TranscriptionInput,
    VideoInput,
    VideoUpscaleInput,
    VoiceCloneInput,
)
from workers.engine import Run
from workers.engines.fake.films import shoot
from workers.engines.fake.hearing import hear
from workers.engines.fake.options import FakeOptions
from workers.engines.fake.pictures import draw
from workers.engines.fake.sounds import sound

Maker = Callable[[Run, FakeOptions], Awaitable[Output]]

MAKERS: dict[type[Input], Maker] = {
    **dict.fromkeys((ImageInput, ImageEditInput, ImageBlendInput, ImageRelightInput, ImageRestyleInput), draw),
    ImageUpscaleInput: draw,
    **dict.fromkeys((VideoInput, ImageToVideoInput, VideoUpscaleInput, TalkingHeadInput), shoot),
    **dict.fromkeys((SpeechInput, VoiceCloneInput, MusicInput), sound),
    TranscriptionInput: hear,
}
