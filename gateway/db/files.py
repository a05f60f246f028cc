"""Media files that callers upload, to be named in calls by their ids."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, Uuid, text

from gateway.db.metadata import METADATA, instant

file = Table(
    "file",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("account_id", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    instant("created_at", default_now=True),
    instant("expires_at"),
    Column("duration_ms", BigInteger, nullable=False, server_default=text("0")),
    Column("width", Integer, nullable=False, server_default=text("0")),
    Column("height", Integer, nullable=False, server_default=text("0")),
    Column("frames", Integer, nullable=False, server_default=text("0")),
    Column("media_type", Text, nullable=False),
    Column("blob", Text, nullable=False),
    Column("filename", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Index("file_account_id_id_idx", "account_id", "id"),
    Index("file_expires_at_idx", "expires_at"),
)
"""`blob` is where it lies in the store. The row goes first, then the blob: what a crash leaves in between the sweeper
finds, for no row names it."""
