"""Verify now: a settler goes through all books, and the page shows how far it is."""

from typing import Any
from uuid import UUID

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.receipts import receipt
from gateway.admin.site.figures import count, ms
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.ledger.books.runs import BooksRuns

HOME = "/admin/books"


@page("/admin/books/verify", needs="billing", data=False)
async def ask_verify(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Ask before everything is gone through."""
    last = await BooksRuns(engine).latest()
    effects = ["A settler goes through every row, a day at a time, beside the traffic. Nothing is changed."]
    if last is not None:
        effects.append(f"{count(last.report.usage_rows)} finished requests; the last time took {ms(last.took_ms)}.")
    return view.confirm(title="Verify the books", act=f"{HOME}/verify", button="Verify now", effects=effects, back=HOME)


@action("/admin/books/verify", needs="billing")
async def verify(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Ask a settler to verify."""
    job = await BooksRuns(engine).ask("dashboard", view.actor)
    audit_id = await receipt(view, engine, "books", job.id)
    return view.redirect(f"{HOME}/jobs/{job.id}", toast="The books are being verified.", audit_id=audit_id)


@page("/admin/books/jobs/{job_id:uuid}", data=False)
async def show_job(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], job_id: FromPath[UUID]
) -> Response[Any]:
    """Show how far a verification is; then lead to what it found."""
    return await _job(view, engine, job_id, "books_job.html")


@page("/admin/books/jobs/{job_id:uuid}/progress", data=False)
async def show_progress(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], job_id: FromPath[UUID]
) -> Response[Any]:
    """Show the moving part alone, for the page that asks every second."""
    return await _job(view, engine, job_id, "books_progress.html")


async def _job(view: View, engine: AsyncEngine, job_id: UUID, template: str) -> Response[Any]:
    job = await BooksRuns(engine).job(job_id)
    if view.format == "json":
        return view.json(job)
    if job.run_id is not None:
        run = await BooksRuns(engine).show(job.run_id)
        said = "The books hold." if run.green else "The books are broken."
        return view.redirect(f"{HOME}/runs/{run.id}", toast=f"{said} It took {ms(run.took_ms)}.", failed=not run.green)
    return view.render(template, job=job)


VERIFY_PAGES = (ask_verify, verify, show_job, show_progress)
