"""The endpoints on bare ASGI, by their paths."""

from gateway.http.endpoint import AsgiHandler, Desk, Endpoint
from gateway.http.media import MediaEndpoint
from gateway.http.native.quotes import QuoteEndpoint
from gateway.http.native.submit import SubmitEndpoint
from gateway.http.openai.chat import ChatFamily
from gateway.http.openai.completions import CompletionFamily
from gateway.http.openai.embeddings import EmbeddingFamily
from gateway.http.openai.images import ImageEditFamily, ImageFamily, ImageVariationFamily
from gateway.http.openai.rerank import RerankFamily
from gateway.http.openai.responses.family import ResponseFamily
from gateway.http.openai.speech import SpeechFamily
from gateway.http.openai.transcriptions import TranscriptionFamily, TranslationFamily


def endpoints(desk: Desk) -> dict[str, AsgiHandler]:
    """Make the handler of each path."""
    text = (ChatFamily(), ResponseFamily(), CompletionFamily(), EmbeddingFamily(), RerankFamily())
    media = (
        SpeechFamily(),
        TranscriptionFamily(),
        TranslationFamily(),
        ImageFamily(desk.addresses),
        ImageEditFamily(desk.addresses),
        ImageVariationFamily(desk.addresses),
    )
    handlers: dict[str, AsgiHandler] = {family.path: Endpoint(family, desk).serve for family in text}
    handlers |= {family.path: MediaEndpoint(family, desk).serve for family in media}
    handlers[SubmitEndpoint.path] = SubmitEndpoint(desk).serve
    handlers[QuoteEndpoint.path] = QuoteEndpoint(desk).serve
    return handlers
