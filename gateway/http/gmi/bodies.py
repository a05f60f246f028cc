"""What the request queue takes."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.flow.call import Priority
from gateway.http.openai.bodies import MaxPrice, Metadata, ModelName

FileType = Literal["jpeg", "jpg", "png", "mp4", "mp3", "wav"]


class QueueBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST .../requests`: a model, and what it is to do in its vendor's names for the fields, or in ours."""

    model: ModelName
    payload: dict[str, Any]
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    metadata: Metadata | None = None


class UploadBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST .../upload-url`: what kind of file is coming."""

    file_type: FileType


class SignInBody(msgspec.Struct, frozen=True, kw_only=True):
    """`POST /me/auth-tokens`: the password is an API key; whose e-mail it is does not matter."""

    email: Annotated[str, Meta(max_length=320)] = ""
    password: Annotated[str, Meta(max_length=1024)]


class SessionBody(msgspec.Struct, frozen=True, kw_only=True):
    """`POST /me/sessions`."""

    authToken: Annotated[str, Meta(max_length=1024)]
    type: str = "native"
    otpCode: str | None = None


class RefreshBody(msgspec.Struct, frozen=True, kw_only=True):
    """`PATCH /me/sessions`."""

    refreshToken: Annotated[str, Meta(max_length=1024)]
