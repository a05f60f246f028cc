"""A statement as PDF, set by typst from the texts that the page shows too."""

import asyncio
from importlib.resources import files
from importlib.util import find_spec
from typing import Literal

import msgspec

from gateway.errors import Unavailable
from gateway.reports.statements.records import Statement
from gateway.reports.statements.shown import shown

Paper = Literal["a4", "us-letter"]
_TEMPLATE = (files("gateway.reports.statements") / "statement.typ").read_bytes()
_ONE = asyncio.Semaphore(1)
"""Setting takes a core for some tenths of a second."""


async def statement_pdf(statement: Statement, paper: Paper = "a4") -> bytes:
    """Set a statement. Raises Unavailable where typst is not installed."""
    if find_spec("typst") is None:
        raise Unavailable("PDF needs the extra 'reports': pip install 'faregate[reports]'.", code="not_installed")
    data = msgspec.json.encode({**shown(statement), "paper": paper}).decode()
    async with _ONE:
        return await asyncio.to_thread(_set, data)


def _set(data: str) -> bytes:
    import typst  # here, because it takes 7 MB, and most gateways never set a page

    pdf: bytes = typst.compile(_TEMPLATE, format="pdf", sys_inputs={"data": data}, ignore_system_fonts=True)
    return pdf
