"""`/openapi`: one description of all endpoints, and a page to read it that needs nothing from elsewhere."""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, get
from litestar.datastructures import State

from gateway.contract.inputs import INPUT_TYPES
from gateway.http.fal.described import fal_paths
from gateway.http.gmi.bodies import QueueBody, SessionBody, SignInBody, UploadBody
from gateway.http.gmi.queue import AccountQueue, KeyQueue, ShortQueue
from gateway.http.native.bodies import SubmitBody
from gateway.http.native.quotes import QuoteBody
from gateway.http.openai.bodies import ChatBody, CompletionBody, EmbeddingBody, SpeechBody
from gateway.http.openai.images import ImageEditFamily, ImageVariationFamily
from gateway.http.openai.media_bodies import (
    ImageBody,
    ImageEditBody,
    ImageVariationBody,
    RemixBody,
    RerankBody,
    TranscriptionBody,
    VideoBody,
)
from gateway.http.openai.responses.bodies import ResponseBody
from gateway.http.openai.speech import SpeechFamily
from gateway.http.openai.transcriptions import TranscriptionFamily, TranslationFamily
from gateway.http.openai.video_calls import VideoFamily
from gateway.http.replicate.bodies import ModelPredictionBody, PredictionBody
from gateway.version import VERSION

_REFS = "#/components/schemas/{name}"

GMI_PATHS = (KeyQueue.path, AccountQueue.path, ShortQueue.path)

_HOT: Sequence[tuple[str, str, type, str]] = (
    ("/v1/chat/completions", "Chat, streamed or whole", ChatBody, "OpenAI"),
    ("/v1/responses", "A chat in the form of responses, streamed or whole", ResponseBody, "OpenAI"),
    ("/v1/completions", "Completion, streamed or whole", CompletionBody, "OpenAI"),
    ("/v1/embeddings", "Embeddings", EmbeddingBody, "OpenAI"),
    ("/v1/rerank", "Documents in the order of how well they answer a query", RerankBody, "OpenAI"),
    ("/v1/audio/speech", "Speech, streamed or whole", SpeechBody, "OpenAI"),
    ("/v1/audio/transcriptions", "What was said, streamed or whole", TranscriptionBody, "OpenAI"),
    ("/v1/audio/translations", "What was said, in English", TranscriptionBody, "OpenAI"),
    ("/v1/images/generations", "Images from words, streamed or whole", ImageBody, "OpenAI"),
    ("/v1/images/edits", "Images from images, streamed or whole", ImageEditBody, "OpenAI"),
    ("/v1/images/variations", "An image once more, a little different", ImageVariationBody, "OpenAI"),
    ("/v1/videos", "Ask for a video, and read it by its id", VideoBody, "OpenAI"),
    ("/v1/videos/{video_id}/remix", "Ask for a video like this one, with other words", RemixBody, "OpenAI"),
    ("/v1/requests", "Submit a request of any task", SubmitBody, "Native"),
    ("/v1/quotes", "The most that a request would cost, and a price that is kept", QuoteBody, "Native"),
    *((f"{path}/requests", "Submit a request: a model and a payload", QueueBody, "GMI") for path in GMI_PATHS),
    *((f"{path}/upload-url", "An address to put a file at", UploadBody, "GMI") for path in GMI_PATHS),
    ("/api/v1/me/auth-tokens", "Sign in: any e-mail, and an API key as the password", SignInBody, "GMI"),
    ("/api/v1/me/sessions", "Begin a session", SessionBody, "GMI"),
    ("/replicate/v1/predictions", "Ask for a prediction of a version or a model", PredictionBody, "Replicate"),
    *(
        (
            f"/replicate/v1/{kind}/{{owner}}/{{name}}/predictions",
            "Ask for a prediction of this model",
            ModelPredictionBody,
            "Replicate",
        )
        for kind in ("models", "deployments")
    ),
)
"""The endpoints that read their bodies themselves, which Litestar cannot describe."""

_FORMS: dict[str, tuple[str, ...]] = {
    family.path: tuple(family.files)
    for family in (
        SpeechFamily,
        TranscriptionFamily,
        TranslationFamily,
        ImageEditFamily,
        ImageVariationFamily,
        VideoFamily,
    )
}
"""The file parts of those that take forms, too."""

_LATER = ("/v1/images/", "/v1/audio/")
"""Where a call that takes too long is answered 202."""

_REFUSALS = {
    "400": "The call itself is wrong; `param` names the field",
    "401": "No key, or none that is known and live",
    "402": "Balance, budget or max_price do not allow it",
    "404": "No such model",
    "409": "The same Idempotency-Key is in flight",
    "413": "The body is too large",
    "422": "The same Idempotency-Key came with another body",
    "429": "The queue is full; `Retry-After` says when to come back",
    "502": "The engine could not finish",
    "503": "A part is away, or the model has no price; nothing was charged",
    "504": "The deadline passed",
}


def describe(app: Litestar) -> dict[str, Any]:
    """Give the OpenAPI 3.1 document: what Litestar knows of the typed endpoints, and the hot ones beside it."""
    document = app.openapi_schema.to_schema()
    kinds = [*(kind for _, _, kind, _ in _HOT), *INPUT_TYPES.values()]
    bodies, schemas = msgspec.json.schema_components(kinds, ref_template=_REFS)
    for kind in (SubmitBody, QuoteBody):
        schemas[kind.__name__]["properties"]["input"] = {"anyOf": bodies[len(_HOT) :]}
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
    for (path, summary, _, tag), body in zip(_HOT, bodies, strict=False):
        operation = document["paths"].setdefault(path, {}).get("post", {})
        document["paths"][path]["post"] = operation | _operation(path, summary, tag, body)
    document["paths"] |= fal_paths()
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"key": []}]
    return document


def _operation(path: str, summary: str, tag: str, body: dict[str, Any]) -> dict[str, Any]:
    answers = {"200": {"description": "The answer; with `stream`, server-sent events"}}
    if path == "/v1/requests" or path.startswith(_LATER):
        answers["202"] = {"description": "Accepted; `urls` say where to look"}
    content: dict[str, Any] = {"application/json": {"schema": body}}
    if path in _FORMS:
        files = {name: {"type": "string", "format": "binary"} for name in _FORMS[path]}
        content["multipart/form-data"] = {"schema": {"allOf": [body], "properties": files}}
    path_names = re.findall(r"{(\w+)}", path)
    return {
        "tags": [tag],
        "summary": summary,
        "operationId": "post_" + re.sub(r"\W+", "_", path.strip("/").replace("{", "").replace("}", "")),
        "parameters": [_parameter("path", name) for name in path_names] + [_parameter("header", "Idempotency-Key")],
        "requestBody": {"required": True, "content": content},
        "responses": answers | {status: {"description": text} for status, text in _REFUSALS.items()},
    }


def _parameter(place: str, name: str) -> dict[str, Any]:
    told: dict[str, Any] = {"in": place, "name": name, "required": place == "path"}
    if place == "path":
        return told | {"schema": {"type": "string"}}
    about = "A repeat with the same key answers with the same request"
    return told | {"schema": {"type": "string", "maxLength": 255}, "description": about}


@get("/openapi/openapi.json", include_in_schema=False, sync_to_thread=False)
def openapi_json(request: Request[Any, Any, State]) -> Response[dict[str, Any]]:
    """Give the document."""
    return Response(describe(request.app), media_type=MediaType.JSON)


@get("/openapi", include_in_schema=False, sync_to_thread=False)
def openapi_page(request: Request[Any, Any, State]) -> Response[str]:
    """Give the document as a page."""
    document = describe(request.app)
    rows = "".join(
        _row(path, method, operation)
        for path, methods in sorted(document["paths"].items())
        for method, operation in methods.items()
        if isinstance(operation, dict) and "responses" in operation
    )
    page = _PAGE.format(version=escape(VERSION), rows=rows)
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    return Response(page, media_type=MediaType.HTML, headers={"content-security-policy": policy})


def _row(path: str, method: str, operation: dict[str, Any]) -> str:
    tag = escape(", ".join(operation.get("tags") or []))
    summary = escape(operation.get("summary") or "")
    detail = {key: operation[key] for key in ("parameters", "requestBody", "responses") if key in operation}
    shown = escape(msgspec.json.format(msgspec.json.encode(detail), indent=2).decode())
    return (
        f"<tr><td>{tag}</td><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{summary}<details><summary>fields</summary><pre>{shown}</pre></details></td></tr>"
    )


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Faregate API</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 72rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: left; vertical-align: top; padding: .5rem }}
tr {{ border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent) }}
pre {{ max-height: 24rem; overflow: auto; font-size: .8rem }}
summary {{ cursor: pointer; opacity: .7 }}
</style>
<h1>Faregate API <small>{version}</small></h1>
<p>Send your key as <code>Authorization: Bearer KEY</code>. The machine-readable description is
<a href="/openapi/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<table><tr><th>Family</th><th>Method</th><th>Path</th><th>What it does</th></tr>{rows}</table>
</html>"""
