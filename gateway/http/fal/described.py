"""What the OpenAPI document says of this family, which no typed handler describes."""

import re
from typing import Any

_APP = "/fal/{owner}/{app}"
_REQUEST = f"{_APP}/requests/{{request_id}}"

_QUEUED = {
    "200": "Accepted; the addresses say where to look",
    "404": "No such model",
    "422": "`detail` names the field",
}
_RUN = {"200": "The output, in the shape of fal's models", "404": "No such model", "422": "`detail` names the field"}
_STATUS = {"200": "It has ended", "202": "It waits or runs", "404": "No such request"}
_OPERATIONS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    (_APP, "post", "Submit to the queue", _QUEUED),
    (f"{_APP}/{{path}}", "post", "Submit to the queue, by a model's full path", _QUEUED),
    (f"{_REQUEST}/status", "get", "How a request stands; `?logs=1` tells what is known of its run", _STATUS),
    (f"{_REQUEST}/status/stream", "get", "Its status as server-sent events, to its end", {"200": "Events"}),
    (
        _REQUEST,
        "get",
        "Its output, or the error that it ended with",
        {"200": "The output", "400": "It has not ended", "404": "No such request"},
    ),
    (
        f"{_REQUEST}/cancel",
        "put",
        "Stop it",
        {"202": "It is being stopped", "400": "It has ended already", "404": "No such request"},
    ),
    ("/fal/run/{owner}/{app}", "post", "Call and wait for the output", _RUN),
    ("/fal/run/{owner}/{app}/{path}", "post", "Call by a model's full path and wait for the output", _RUN),
    ("/fal/run/{owner}/{app}/stream", "post", "Call, and read the output as it comes", {"200": "Server-sent events"}),
    ("/fal/storage/auth/token", "post", "A token that uploads for ten minutes", {"200": "The token"}),
    ("/fal/files/upload", "post", "Upload the body as a file", {"200": "`access_url`", "413": "It is too large"}),
    ("/fal/files/upload/multipart", "post", "Begin an upload in parts", {"200": "`access_url` and `uploadId`"}),
    ("/fal/{ticket}/files/{file_id}/multipart/{upload_id}/{number}", "put", "Upload a part", {"200": "Its tag"}),
    ("/fal/{ticket}/files/{file_id}/multipart/{upload_id}/complete", "post", "Join the parts", {"200": "It is kept"}),
    ("/fal/storage/upload/initiate", "post", "An address that takes a file", {"200": "`upload_url` and `file_url`"}),
    ("/fal/storage/upload/{file_id}", "put", "Upload the body to such an address", {"200": "It is kept"}),
    ("/fal/{ticket}/files/{file_id}", "get", "An uploaded file, at an address that was given", {"307": "Its bytes"}),
    ("/fal/.well-known/jwks.json", "get", "What verifies webhooks in fal's shape", {"200": "A JSON Web Key Set"}),
)
_WITH_PAYLOAD = ("/fal/{owner}", "/fal/run/")
_QUERY = {f"{_REQUEST}/status": ("logs",), f"{_REQUEST}/status/stream": ("logs",), _APP: ("fal_webhook",)}


def fal_paths() -> dict[str, dict[str, Any]]:
    """Describe every path of the family."""
    paths: dict[str, dict[str, Any]] = {}
    for path, method, summary, answers in _OPERATIONS:
        operation: dict[str, Any] = {
            "tags": ["fal"],
            "summary": summary,
            "operationId": f"{method}_" + re.sub(r"\W+", "_", path).strip("_"),
            "parameters": _parameters(path),
            "responses": {status: {"description": told} for status, told in answers.items()},
        }
        if method == "post" and path.startswith(_WITH_PAYLOAD):
            payload = {"application/json": {"schema": {"type": "object"}}}
            operation["requestBody"] = {"required": True, "content": payload}
        paths.setdefault(path, {})[method] = operation
    return paths


def _parameters(path: str) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] = [
        {"in": "path", "name": name, "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    return named + [
        {"in": "query", "name": name, "required": False, "schema": {"type": "string"}} for name in _QUERY.get(path, ())
    ]
