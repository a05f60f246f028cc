"""Exports of requests: at most two at once, each in a session and a snapshot of its own."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

import asyncpg

from gateway.db.session import CONNECT_TIMEOUT_S, is_unavailable
from gateway.errors import InvalidRequest, TooManyRequests, Unavailable
from gateway.reports.exports.columns import Column, csv_cell, json_row
from gateway.reports.exports.copying import CSV, LINES, as_array, copied
from gateway.reports.exports.parquet import as_parquet, require_parquet
from gateway.reports.request_filter import Clauses, RequestFilter

ExportFormat = Literal["csv", "json", "jsonl", "parquet"]
MEDIA_TYPES: Mapping[ExportFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
AT_ONCE = 2
TIMEOUT_S = 1800
_SETTINGS = {
    "timezone": "UTC",
    "jit": "off",
    "application_name": "faregate export",
    "default_transaction_read_only": "on",
    "statement_timeout": f"{TIMEOUT_S}s",
}


class Exports:
    """Streams requests as files."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def open(
        self, wanted: RequestFilter, columns: tuple[Column, ...], kind: ExportFormat
    ) -> AsyncGenerator[bytes, None]:
        """Begin an export; answers its bytes. Raises TooManyRequests while others run, and Unavailable.

        The first bytes are there when this returns, so that what is wrong is told before anything is answered.
        """
        if kind == "parquet":
            require_parquet()
        if self._turns.locked():
            raise TooManyRequests("Other exports are under way; try again soon.", code="export_busy", retry_after_s=5)
        rest = self._stream(wanted, columns, kind)
        try:
            first = await anext(rest, b"")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if not is_unavailable(error):
                raise
            raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from error
        return _joined(first, rest)

    async def _stream(
        self, wanted: RequestFilter, columns: tuple[Column, ...], kind: ExportFormat
    ) -> AsyncGenerator[bytes, None]:
        async with self._turns:
            connection = await asyncpg.connect(self._url, timeout=CONNECT_TIMEOUT_S, server_settings=_SETTINGS)
            pieces = _pieces(connection, wanted, columns, kind)
            try:
                async for piece in pieces:
                    yield piece
            finally:
                try:
                    await pieces.aclose()
                finally:
                    connection.terminate()


async def _joined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for piece in rest:
            yield piece
    finally:
        await rest.aclose()


def _pieces(
    connection: "asyncpg.Connection[asyncpg.Record]",
    wanted: RequestFilter,
    columns: tuple[Column, ...],
    kind: ExportFormat,
) -> AsyncGenerator[bytes, None]:
    rows, arguments = _rows(wanted)
    if kind == "csv":
        shown = ", ".join(f"{csv_cell(column)} as {column.name}" for column in columns)
        return copied(connection, f"select {shown} from {rows}", arguments, **CSV)
    if kind == "parquet":
        shown = ", ".join(f"{column.plain} as {column.name}" for column in columns)
        return as_parquet(connection, f"select {shown} from {rows}", arguments, columns)
    lines = copied(connection, f"select {json_row(columns)} from {rows}", arguments, **LINES)
    return lines if kind == "jsonl" else as_array(lines)


def _rows(wanted: RequestFilter) -> tuple[str, list[Any]]:
    """Write the rows that a filter finds, newest first, as what a FROM takes. Those of an account are its keys'."""
    clauses = Clauses(wanted)
    if wanted.account_id is None or wanted.key_id is not None:
        return f"(select u.* from usage u where {clauses} order by u.id desc) u", clauses.arguments
    account = clauses.put(wanted.account_id, "bigint")
    found = f"""(select f.* from api_key k cross join lateral (select u.* from usage u where u.api_key_id = k.id
      and {clauses}) f where k.account_id = {account} order by f.id desc) u"""
    return found, clauses.arguments


def read_export_format(text: str) -> ExportFormat:
    """Read the format of an export. Raises InvalidRequest."""
    for kind in MEDIA_TYPES:
        if text == kind:
            return kind
    raise InvalidRequest(f"An export is one of {', '.join(MEDIA_TYPES)}.", param="format")
