"""`/admin/api/books`."""

from typing import Annotated

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from gateway.ledger.books.figures import BooksReport
from gateway.ledger.books.verify import Books

Repeats = Annotated[
    int | None, QueryParameter(ge=0, le=2**31, description="How many repeated executions faults explain; bounds I9.")
]


class BooksController(Controller):
    """Whether every cent adds up."""

    path = "/books"
    tags = ("Admin",)

    @post("/verify", status_code=200, summary="Check I1 to I13 now, in one consistent snapshot")
    async def verify(self, books: NamedDependency[Books], allowed_repeats: Repeats = None) -> BooksReport:
        """Check the books; this reads every usage row and every ledger entry."""
        return await books.verify(allowed_repeats=allowed_repeats)
