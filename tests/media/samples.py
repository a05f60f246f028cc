"""Small real media files, made on the spot: pictures by Pillow, sound and video by PyAV."""

import base64
import io
from functools import cache

import av
import numpy as np
from PIL import Image


@cache
def picture(width: int = 64, height: int = 48, form: str = "PNG") -> bytes:
    """Draw a picture."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(file, form)
    return file.getvalue()


@cache
def film(frames: int = 20, form: str = "mp4", codec: str = "libx264", side: int = 64) -> bytes:
    """Shoot a film of 16 frames a second."""
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=16)
        stream.width = stream.height = side
        stream.pix_fmt = "yuv420p"
        for number in range(frames):
            pixels = np.full((side, side, 3), number % 200, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


@cache
def sound(form: str = "wav", codec: str = "pcm_s16le", seconds: int = 2, rate: int = 24_000) -> bytes:
    """Play a tone."""
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout = "mono"
        samples = (np.sin(np.arange(rate * seconds) / 10) * 9000).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = rate
        context = stream.codec_context
        shaper = av.AudioResampler(context.format, "mono", rate, context.frame_size or None)
        for each in [*shaper.resample(frame), *shaper.resample(None)]:
            container.mux(stream.encode(each))
        container.mux(stream.encode(None))
    return file.getvalue()


def data_url(data: bytes, media_type: str = "application/octet-stream") -> str:
    """Write a file as a data URL."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
