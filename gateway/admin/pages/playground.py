"""Playground: what a model does, and for how much. A run is a real, charged request."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from litestar import Response
from litestar.datastructures import UploadFile
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import ServerSentEvent, ServerSentEventMessage
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.requests.detail import Looks, media
from gateway.admin.pages.requests.waterfall import draw
from gateway.admin.playground.desk import Chosen, PlayDesk, Trial
from gateway.admin.playground.runs import Run, Started
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.contract.events import RankingOutput, TextOutput, TranscriptOutput, VectorOutput
from gateway.errors import FaregateError
from gateway.ledger.audit import Action, write_audit
from gateway.ledger.transaction import transaction
from gateway.reports.request_story import read_story

MOST_BYTES = 40 * 1024 * 1024
HOME = "/admin/playground"


@page("/admin/playground", data=False)
async def show_playground(view: NamedDependency[View], play: NamedDependency[PlayDesk]) -> Response[Any]:
    """Show the form of a model."""
    chosen = play.chosen(view.query)
    return view.render("playground.html", **await _shown(play, chosen), trials=[], runs=[])


@action("/admin/playground/quote", needs="viewer", most_bytes=MOST_BYTES)
async def quote(view: NamedDependency[View], play: NamedDependency[PlayDesk]) -> Response[Any]:
    """Say the most that this form can cost: as a part of the page while one types, else as the page."""
    chosen, trials = await _asked(view, play)
    if view.is_htmx:
        return view.render("playground_quote.html", trials=trials, chosen=chosen)
    more = {**await _shown(play, chosen), "values": await view.form()}
    return view.render("playground.html", **more, trials=trials, runs=[])


@action("/admin/playground/run", needs="billing", most_bytes=MOST_BYTES)
async def run(
    view: NamedDependency[View], play: NamedDependency[PlayDesk], engine: NamedDependency[AsyncEngine]
) -> Response[Any]:
    """Run the form: a real request of the chosen key, charged to its account."""
    chosen, trials = await _asked(view, play)
    runs = [await _started(view, play, engine, trial) for trial in trials]
    if not view.is_htmx and all(isinstance(one, Run) for one in runs) and len(runs) == 1:
        return view.redirect(f"{HOME}/runs/{runs[0].id}")  # type: ignore[union-attr]  # the line above says so
    shown = [(one, None) if isinstance(one, Run) else (None, one) for one in runs]
    if view.is_htmx:
        return view.render("playground_runs.html", runs=shown, **_EMPTY)
    more = {**await _shown(play, chosen), "values": await view.form()}
    return view.render("playground.html", **more, trials=trials, runs=shown)


@page("/admin/playground/runs/{run_id:str}", data=False)
async def show_run(
    view: NamedDependency[View],
    play: NamedDependency[PlayDesk],
    engine: NamedDependency[AsyncEngine],
    looks: NamedDependency[Looks],
    run_id: FromPath[str],
) -> Response[Any]:
    """Show a run by itself."""
    found = await play.runs.find(run_id)
    return view.render("playground_page.html", run=found, **await _ended(found, engine, looks))


@page("/admin/playground/runs/{run_id:str}/live", data=False)
async def follow_run(
    view: NamedDependency[View],
    play: NamedDependency[PlayDesk],
    engine: NamedDependency[AsyncEngine],
    looks: NamedDependency[Looks],
    run_id: FromPath[str],
) -> ServerSentEvent:
    """Stream a run as it comes, to its end with charge and waterfall."""
    found = await play.runs.find(run_id)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return ServerSentEvent(_messages(view, found, engine, looks), headers=headers)


async def _messages(
    view: View, run: Run, engine: AsyncEngine, looks: Looks
) -> AsyncIterator[ServerSentEventMessage | str]:
    async for over in run.follow():
        more = await _ended(run, engine, looks) if over else _EMPTY
        yield str(view.render("playground_run.html", run=run, **more).content)
    yield ServerSentEventMessage(event="over", data="1")


_EMPTY: Mapping[str, Any] = {"story": None, "waterfall": None, "media": (), "words": ""}


async def _ended(run: Run, engine: AsyncEngine, looks: Looks) -> Mapping[str, Any]:
    """Read what is known of a run that is over; the story of one whose end is not settled is missing."""
    if not run.done:
        return _EMPTY
    try:
        story = await read_story(engine, run.id)
    except FaregateError:
        return _EMPTY
    waterfall = draw(story) if story.end else None
    return {"story": story, "waterfall": waterfall, "media": media(story, looks.addresses), "words": _words(run)}


def _words(run: Run) -> str:
    """Give what is to be read of an output that did not stream."""
    output = run.output
    if isinstance(output, TextOutput) and not run.text:
        return output.choices[0].text if output.choices else ""
    if isinstance(output, TranscriptOutput):
        return output.text
    if isinstance(output, VectorOutput):
        return f"{len(output.vectors)} vectors of {output.dimensions} dimensions."
    if isinstance(output, RankingOutput):
        return "\n".join(f"document {index + 1}: {relevance:.4f}" for index, relevance in output.results)
    return ""


async def _started(view: View, play: PlayDesk, engine: AsyncEngine, trial: Trial) -> Run | FaregateError:
    if trial.call is None or trial.quoted is None:
        return trial.failure or FaregateError("This cannot be run.")
    nanos = trial.quoted.quote.nanos
    wanted = Started(call=trial.call, quote_nanos=nanos, shown=trial.shown, snippets=trial.snippets)
    try:
        started = await play.runs.start(wanted)
    except FaregateError as failure:
        return failure
    changes = {"model": (None, trial.model), "key": (None, trial.call.key_id), "most_nanos": (None, nanos)}
    async with transaction(engine) as connection:
        made = Action(name="playground.run", object_kind="request", object_id=started.id, changes=changes)
        await write_audit(connection, view.actor, made)
    return started


async def _asked(view: View, play: PlayDesk) -> tuple[Chosen, list[Trial]]:
    form = await view.form()
    uploads: dict[str, list[UploadFile]] = {}
    for name, value in (await view.request.form()).multi_items():
        if isinstance(value, UploadFile) and value.filename:
            uploads.setdefault(name, []).append(value)
    chosen = play.chosen(form)
    return chosen, await play.trials(chosen, form, uploads)


async def _shown(play: PlayDesk, chosen: Chosen) -> dict[str, Any]:
    models = sorted(play.catalog.models.values(), key=lambda model: (model.price is None, model.tasks, model.name))
    rivals = [model for model in models if chosen.task in model.tasks and model.name != chosen.model.name]
    return {
        "chosen": chosen,
        "models": models,
        "task_choices": [(task, task) for task in chosen.model.tasks],
        "rivals": [model for model in rivals if model.price is not None],
        "keys": await play.keys(chosen.key_id),
        "values": {},
        **_EMPTY,
    }


PAGES = (show_playground, quote, run, show_run, follow_run)
