"""`/admin/api/books`: whether every cent adds up, and what is done where one does not."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter

from gateway.admin.api.bodies import Correct, CorrectionList
from gateway.errors import NotFound
from gateway.ledger.audit import Actor
from gateway.ledger.books.runs import BooksJob, BooksRun, BooksRuns
from gateway.ledger.corrections import Corrections, NewCorrection
from gateway.ledger.records import Correction, Line

RunId = Annotated[UUID, PathParameter(description="The id of a verification.")]
JobId = Annotated[UUID, PathParameter(description="The id of a verification that was asked for.")]


class BooksController(Controller):
    """Whether every cent adds up."""

    path = "/books"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @get(summary="The last verification, as it was kept")
    async def latest(self, runs: NamedDependency[BooksRuns]) -> BooksRun:
        """Show the last verification; nothing is computed."""
        found = await runs.latest()
        if found is None:
            raise NotFound("The books have not been verified yet.")
        return found

    @get("/runs/{run_id:uuid}", summary="One verification")
    async def show_run(self, run_id: RunId, runs: NamedDependency[BooksRuns]) -> BooksRun:
        """Show a verification, while it is kept."""
        return await runs.show(run_id)

    @post(["/verify", "/jobs"], status_code=202, summary="Ask a settler to go through all books, day by day")
    async def ask(self, runs: NamedDependency[BooksRuns], by: NamedDependency[Actor]) -> Response[BooksJob]:
        """Ask for a verification; the one that is waited for already, where there is one."""
        job = await runs.ask("api", by)
        return Response(job, headers={"location": f"/admin/api/books/jobs/{job.id}"})

    @get("/jobs/{job_id:uuid}", summary="How far a verification is")
    async def show_job(self, job_id: JobId, runs: NamedDependency[BooksRuns]) -> BooksJob:
        """Show how far a verification is; `run_id` is where its result lies."""
        return await runs.job(job_id)

    @post("/corrections", summary="Book a correction: two lines that sum to zero")
    async def correct(
        self, data: JSONBody[Correct], corrections: NamedDependency[Corrections], by: NamedDependency[Actor]
    ) -> Correction:
        """Book a correction, once for each transaction id; nothing is ever edited."""
        one, other = (Line(side=line.side, amount_nanos=line.amount_nanos) for line in data.lines)
        new = NewCorrection(lines=(one, other), reason=data.reason, transaction_id=data.transaction_id)
        return await corrections.post(new, by)

    @get("/corrections", summary="Corrections and adjustments, the latest first")
    async def list_corrections(
        self,
        corrections: NamedDependency[Corrections],
        before: Annotated[datetime | None, QueryParameter(description="Only up to this instant.")] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=500)] = 100,
    ) -> CorrectionList:
        """List what was corrected."""
        return CorrectionList(corrections=list(await corrections.list(before=before, limit=limit)))
