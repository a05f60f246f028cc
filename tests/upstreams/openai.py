"""A stand-in for OpenAI's API: words and vectors from what it is asked, pictures, sounds, and videos as jobs.

`ways` says how a model goes wrong, for as long as it stands there: see `Way`.
"""

import asyncio
import base64
import itertools
import json
import struct
import time
from typing import Any

import msgspec

from tests.media.samples import film, picture, sound
from tests.upstreams.serving import Asked, Reply, StandIn, said

WORDS = "one two three four five six"


class Way(msgspec.Struct, kw_only=True):
    """How the calls of a model go."""

    status: int = 200
    headers: dict[str, str] = {}
    words: str = WORDS
    message: str = "it failed"
    code: str | None = None
    hang: bool = False
    """Takes the call and never answers."""
    wait_s: float = 0.0
    garbled: bool = False
    pieces: int = -1
    """After how many pieces a stream breaks off."""
    stop: bool = True
    """Whether a stream says why it ended."""
    done: bool = True
    """Whether it ends with `[DONE]`."""
    usage: Any = True
    """True for the right one; None for none; else what stands there."""
    extra: dict[str, Any] = {}
    """Beside the rest of an answer."""
    looks: int = 2
    """How often a video is looked at before it has ended."""
    end: str = "completed"
    error: dict[str, Any] | None = None
    pause_s: float = 0.0


def tokens(text: str) -> int:
    """Count tokens as this stand-in does: by words."""
    return len(text.split())


class OpenAi(StandIn):
    """The API, below `/v1`."""

    def __init__(self) -> None:
        super().__init__()
        self.ways: dict[str, Way] = {}
        self.usual = Way()
        self.videos: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count(1)

    @property
    def base(self) -> str:
        """Where its API begins."""
        return f"{self.url}/v1"

    def way(self, asked: Asked) -> Way:
        """Give how a call goes, by the model it names."""
        if "multipart" in asked.headers.get("content-type", ""):
            return self.ways.get(asked.form()["model"][1].decode(), self.usual)
        model = asked.json()["model"] if asked.body else self.videos.get(asked.path.split("/")[3], {}).get("model")
        return self.ways.get(model, self.usual)

    def bought(self) -> list[Asked]:
        """Give the calls that bought something."""
        return [each for each in self.seen if each.method == "POST"]

    async def answer(self, asked: Asked) -> Reply:
        """Answer, or fail as the model is to."""
        way = self.way(asked)
        if way.hang:
            await asyncio.sleep(3600)
        if way.wait_s:
            await asyncio.sleep(way.wait_s)
        if way.status != 200:
            error = {"message": way.message, "type": "failure", "code": way.code}
            return said({"error": error}, way.status, **{k.replace("-", "_"): v for k, v in way.headers.items()})
        if way.garbled:
            return Reply(body=b'{"choices": [{"mess')
        path = asked.path.removeprefix("/v1")
        if path.startswith("/videos"):
            return self._video(asked, way, path)
        return getattr(self, "_" + path.strip("/").replace("/", "_"))(asked, way)

    def _chat_completions(self, asked: Asked, way: Way) -> Reply:
        given = asked.json()
        prompt = " ".join(str(message.get("content")) for message in given["messages"])
        usage = self._usage(way, tokens(prompt), tokens(way.words) * given.get("n", 1))
        if given.get("stream"):
            return self._stream(way, "delta", usage if given["stream_options"]["include_usage"] else None)
        choices = [
            {"index": n, "message": {"role": "assistant", "content": way.words}, "finish_reason": "stop"}
            for n in range(given.get("n", 1))
        ]
        return self._whole(way, {"id": "c1", "object": "chat.completion", "choices": choices}, usage)

    def _completions(self, asked: Asked, way: Way) -> Reply:
        given = asked.json()
        usage = self._usage(way, tokens(given["prompt"]), tokens(way.words))
        if given.get("stream"):
            return self._stream(way, "text", usage)
        return self._whole(way, {"choices": [{"index": 0, "text": way.words, "finish_reason": "stop"}]}, usage)

    def _embeddings(self, asked: Asked, way: Way) -> Reply:
        texts = asked.json()["input"]
        rows = [
            {"index": n, "embedding": base64.b64encode(struct.pack("<3f", len(text), n, 0.5)).decode()}
            for n, text in enumerate(texts)
        ]
        return self._whole(way, {"data": rows[::-1]}, self._usage(way, sum(map(tokens, texts)), None))

    def _rerank(self, asked: Asked, way: Way) -> Reply:
        documents = asked.json()["documents"]
        rows = [{"index": n, "relevance_score": 1 / (1 + len(text))} for n, text in enumerate(documents)]
        return self._whole(way, {"results": rows}, self._usage(way, 7, None))

    def _images_generations(self, asked: Asked, way: Way) -> Reply:
        count = asked.json().get("n", 1)
        rows = [{"b64_json": base64.b64encode(picture(64, 48)).decode()} for _ in range(count)]
        return self._whole(way, {"data": rows}, None)

    def _images_edits(self, asked: Asked, way: Way) -> Reply:
        assert asked.form()["image"][1]
        return self._whole(way, {"data": [{"url": self.file("picture.png")}]}, None)

    def _audio_speech(self, asked: Asked, way: Way) -> Reply:
        data = sound("wav", "pcm_s16le", 2)
        pieces = [data[at : at + 8000] for at in range(0, len(data), 8000)]
        if way.pieces >= 0:
            pieces = [*pieces[: way.pieces], b"!"]
        return Reply(body=pieces, media_type="audio/wav", headers=way.headers)

    def _audio_transcriptions(self, asked: Asked, way: Way) -> Reply:
        assert asked.form()["file"][1]
        piece = {"start": 0.0, "end": 1.5, "text": " hello there"}
        words = [{"word": "hello", "start": 0.0, "end": 0.5}, {"word": "there", "start": 0.5, "end": 1.5}]
        told = {"text": "hello there", "language": "english", "duration": 99.0, "segments": [piece], "words": words}
        return self._whole(way, told, None)

    def _video(self, asked: Asked, way: Way, path: str) -> Reply:
        if asked.method == "POST":
            model = asked.form()["model"][1].decode() if b"form-data" in asked.body[:200] else asked.json()["model"]
            video = {"id": f"video_{next(self._numbers)}", "model": model, "looks": 0, "object": "video"}
            self.videos[video["id"]] = video
            return said(video | {"status": "queued", "progress": 0})
        name, _, rest = path.removeprefix("/videos/").partition("/")
        found = self.videos.get(name)
        if found is None:
            return said({"error": {"message": "no such video"}}, 404)
        if asked.method == "DELETE":
            found["deleted"] = True
            return said({"id": name, "deleted": True})
        if rest == "content":
            return Reply(body=film(16), media_type="video/mp4")
        found["looks"] += 1
        over = found["looks"] >= way.looks
        state = {"status": way.end if over else "in_progress", "progress": 100 if over else 50}
        return said(found | state | {"error": way.error}, openai_poll_after_ms="50")

    def _usage(self, way: Way, prompt: int, made: int | None) -> Any:
        if way.usage is not True:
            return way.usage
        counted = {"prompt_tokens": prompt, "total_tokens": prompt + (made or 0)}
        return counted if made is None else counted | {"completion_tokens": made}

    def _whole(self, way: Way, value: dict[str, Any], usage: Any) -> Reply:
        body = value | way.extra | ({} if usage is None else {"usage": usage})
        return Reply(body=json.dumps(body).encode(), headers=way.headers)

    def _stream(self, way: Way, kind: str, usage: Any) -> Reply:
        pieces = [self._piece(kind, word + " ", None) for word in way.words.split()]
        if way.pieces >= 0:
            return self._events(way, [*pieces[: way.pieces], "!"])
        if way.stop:
            pieces.append(self._piece(kind, "", "stop"))
        if usage is not None:
            pieces.append(json.dumps({"choices": [], "usage": usage} | way.extra))
        return self._events(way, [*pieces, "[DONE]"] if way.done else pieces)

    def _piece(self, kind: str, text: str, finish: str | None) -> str:
        said_now: Any = {"content": text} if kind == "delta" else text
        return json.dumps({"id": "c1", "choices": [{"index": 0, kind: said_now, "finish_reason": finish}]})

    def _events(self, way: Way, pieces: list[str]) -> Reply:
        body = [b"!" if piece == "!" else f"data: {piece}\n\n".encode() for piece in pieces]
        return Reply(body=body, media_type="text/event-stream", headers=way.headers)


def until(holds: Any, within_s: float = 60.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)
