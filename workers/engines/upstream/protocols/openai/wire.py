"""Which task is done how, and what answers mean."""

from gateway.contract.tasks import Task
from workers.engine import EngineError
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.failures import UpstreamFailed, clean, words_of
from workers.engines.upstream.protocol import Call, Direct, Jobs, Wire
from workers.engines.upstream.protocols.openai.films import Filming
from workers.engines.upstream.protocols.openai.pictures import Drawing
from workers.engines.upstream.protocols.openai.sounds import Hearing, Speaking
from workers.engines.upstream.protocols.openai.text import Text
from workers.engines.upstream.protocols.openai.vectors import Embeddings, Rankings

_DRAWING, _FILMING = Drawing(), Filming()

WAYS: dict[Task, Direct | Jobs] = {
    "chat": Text("/chat/completions"),
    "completion": Text("/completions"),
    "embedding": Embeddings(),
    "rerank": Rankings(),
    "text-to-image": _DRAWING,
    "image-edit": _DRAWING,
    "image-blend": _DRAWING,
    "image-relight": _DRAWING,
    "image-restyle": _DRAWING,
    "text-to-speech": Speaking(),
    "speech-to-text": Hearing(),
    "text-to-video": _FILMING,
    "image-to-video": _FILMING,
}


class OpenAI(Wire):
    """OpenAI's API and those that speak it."""

    def judge(self, answer: Answer) -> Exception | None:
        """Read two statuses by their codes: a model that is not there, and a balance that is used up."""
        if answer.status == 404 and "model" in (words := words_of(answer.body)):
            text = "The provider does not have this model."
            return UpstreamFailed(text, detail=f"HTTP 404: {clean(words)}")
        if answer.status == 429 and "insufficient_quota" in (words := words_of(answer.body)):
            text = "The provider does not serve this account now."
            return UpstreamFailed(text, reason="upstream_limited", detail=f"HTTP 429: {clean(words)}", wide=True)
        return None

    def way(self, call: Call) -> Direct | Jobs:
        """Choose by task. Raises EngineError for one that the API does not have."""
        found = WAYS.get(call.run.request.task)
        if found is None:
            raise EngineError(f"The upstream {call.upstream.name} does not do {call.run.request.task}.")
        return found
