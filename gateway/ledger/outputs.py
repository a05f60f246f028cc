"""What is kept of finished requests for whoever asks again: outputs, words about failures, metadata."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.contract.events import Output, decode_output
from gateway.db.requests import request_output


class KeptOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished request with `keep` left behind."""

    output: Output | None = None
    detail: str = ""
    metadata: dict[str, str] | None = None
    expires_at: datetime | None = None


async def kept_output(connection: AsyncConnection, request_id: UUID) -> KeptOutput:
    """Read what is kept of a request: nothing, where it was not to be kept or has expired.

    Whose request it is must have been checked: nothing here says so.
    """
    kept = request_output.c
    query = select(kept.output, kept.detail, kept.metadata, kept.expires_at).where(
        kept.id == request_id, kept.expires_at > func.now()
    )
    row: Any = (await connection.execute(query)).one_or_none()
    if row is None:
        return KeptOutput()
    return KeptOutput(
        output=None if row.output is None else decode_output(row.output),
        detail=row.detail,
        metadata=row.metadata,
        expires_at=row.expires_at,
    )


async def prune_outputs(connection: AsyncConnection, *, limit: int) -> int:
    """Delete outputs that have expired, the oldest first. Answers how many."""
    kept = request_output.c
    expired = select(kept.id).where(kept.expires_at <= func.now()).order_by(kept.expires_at).limit(limit)
    done = await connection.execute(delete(request_output).where(kept.id.in_(expired)))
    return done.rowcount
