"""The one MetaData that every table belongs to, and the column shapes that recur."""

from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, MetaData, func, text

METADATA = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s",
    }
)


def nanos(name: str) -> Column[int]:
    """Give a column of money that begins at zero."""
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def count(name: str) -> Column[int]:
    """Give a column of a measured quantity."""
    return Column(name, BigInteger, nullable=False)


def instant(name: str, *, default_now: bool = False) -> Column[Any]:
    """Give a column of an instant that is always known; `default_now` takes the server's clock."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now() if default_now else None)


def instant_or_null(name: str) -> Column[Any]:
    """Give a column of an instant that may not have come."""
    return Column(name, DateTime(timezone=True))
