"""Workflows in a catalog: every mistake is found before anything runs, and the worker learns what it needs."""

# ruff: noqa: E501 -- whole error lines are easier to compare

from textwrap import dedent, indent
from typing import Any

import msgspec
import pytest

from gateway.catalog.export import export
from gateway.catalog.load import load
from gateway.catalog.model import Catalog, Snapshot
from gateway.catalog.problems import CatalogError
from gateway.contract.workflow import WorkflowOptions
from gateway.flow.floor import spec_of

HEAD = """\
pools:
  fake: {engine: fake}
  spare: {engine: fake}
  flows: {engine: workflow}
models:
  voice:
    tasks: [text-to-speech]
    description: A voice.
    routes: [{pool: fake, weight: 3}, {pool: spare}, {pool: flows-later, order: 1}]
    parameters:
      speed: {type: number, default: 1.5, maximum: 2}
  film:
    tasks: [text-to-video, image-to-video]
    description: A film.
    routes: [{pool: fake}]
  writer:
    tasks: [chat]
    description: A writer.
    context_tokens: 100
    max_output_tokens: 50
    routes: [{pool: fake}]
  head:
    tasks: [talking-head]
    description: A head that talks.
    routes: [{pool: flows}]
    options:
""".replace(", {pool: flows-later, order: 1}", "")
TALKING = """\
output: join
steps:
  speech:
    model: voice
    input: {input: $input.text, voice: $input.voice, response_format: wav}
  film:
    model: film
    task: image-to-video
    weight: 5
    input:
      image: $input.image
      prompt: "A portrait, ${input.prompt}"
      seconds: $input.audio.duration_s | $speech.duration_s
      size: $input.size
  join:
    do: join
    input: {video: $film.media, audio: $input.audio | $speech.media}
"""


def read(options: str, head: str = HEAD) -> Catalog:
    return load((head + indent(dedent(options), " " * 6)).encode(), "catalog.yaml")


def problems(options: str, head: str = HEAD) -> list[str]:
    """Give the problems found, each without the part of its path that all share."""
    with pytest.raises(CatalogError) as caught:
        read(options, head)
    return [str(one.text("")).partition("models.head.options.")[2] for one in caught.value.problems]


def changed(old: str, new: str) -> list[str]:
    assert old in TALKING
    return problems(TALKING.replace(old, new))


def test_a_whole_workflow_is_right_and_survives_its_export() -> None:
    catalog = read(TALKING)
    assert load(export(catalog).encode(), "again").models["head"].options == catalog.models["head"].options


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("model: voice", "model: nobody", ['steps.speech.model: expected a model of this catalog, found "nobody"']),
        ("model: voice", "model: head", ['steps.speech.model: expected a model that is no workflow itself, found "head"']),
        ("    task: image-to-video\n", "", ["steps.film.task: expected one of the tasks of film (text-to-video, image-to-video), found nothing"]),
        ("task: image-to-video", "task: music", ["steps.film.task: expected one of the tasks of film (text-to-video, image-to-video), found music"]),
        ("do: join", "do: glue", ['steps.join.do: expected one of join, trim, frames-to-video, found "glue"']),
        ("do: join", "weight: 1", ["steps.join: expected either `model` or `do`, found neither"]),
        ("weight: 5", "weight: -5", ['steps.film.weight: expected a number from 0 to 1000, found "-5"']),
        ("weight: 5", "wait: 5", ["steps.film.wait: expected `weight`, found an unknown field"]),
        ("output: join", "output: end", ['output: expected one of the steps speech, film, join, found "end"']),
        ("output: join", "output: speech", ["output: expected a step that gives video, as talking-head does, found speech, which gives audio"]),
        ("$input.voice", "$input.singer", ["steps.speech.input.voice: expected a field of the workflow's own input (talking-head), found $input.singer"]),
        ("$input.text", "$text", ["steps.speech.input.input: expected a reference such as $input.prompt or ${input.prompt}; a plain dollar is written $$, found \"$text\""]),
        ("$film.media, ", "$picture.media, ", ["steps.join.input.video: expected a reference to input or to one of the steps speech, film, join, found $picture.media"]),
        ("$film.media, ", "$film.frames, ", ["steps.join.input.video: expected video, found $film.frames, which is whole"]),
        ("$film.media, ", "$speech.media, ", ["steps.join.input.video: expected video, found $speech.media, which is audio"]),
        ("| $speech.duration_s", "| $speech.width", ["steps.film.input.seconds: expected something that speech gives (media, duration_ms, duration_s), found $speech.width"]),
        ("image: $input.image", "image: a.png", ['steps.film.input.image: expected a reference to image, such as $input.image, found "a.png"']),
        ("image: $input.image", "prompts: $input.image", ["steps.film.input: expected the field image, which image-to-video needs", "steps.film.input.prompts: expected one of the fields of image-to-video"]),
        ("response_format: wav", "response_format: mid", ["steps.speech.input.response_format: expected what text-to-speech takes as response_format, found \"mid\": Invalid enum value 'mid'"]),
        ("response_format: wav", "speed: 3", ['steps.speech.input.speed: expected what the step\'s model takes, found "3": speed must be at most 2 for this model.']),
        ("size: $input.size", "steps: $input.text", ["steps.film.input.steps: expected whole, found $input.text, which is text"]),
        ("size: $input.size", 'steps: "${input.steps}"', ["steps.film.input.steps: expected whole, and no text, found a text"]),
    ],
)  # fmt: skip
def test_each_mistake_is_found_with_its_field(old: str, new: str, found: list[str]) -> None:
    told = changed(old, new)
    assert len(told) >= len(found)
    for one in found:
        assert any(line.startswith(one) for line in told), told


def test_steps_in_a_circle_are_found() -> None:
    said = """\
      said:
        model: writer
        input: {messages: [{role: user, content: "As large as ${film.size}"}]}
    """
    told = problems(TALKING.replace("$input.voice", "$said.text") + indent(dedent(said), "  "))
    assert told == [
        "steps: expected steps that do not need each other in a circle, found speech -> said -> film -> speech"
    ]


def test_a_step_that_nothing_needs_is_found() -> None:
    spare = TALKING + "  spare:\n    model: voice\n    input: {input: Hello.}\n"
    assert problems(spare) == ["steps.spare: expected a step that the output needs, found spare, which nothing needs"]


def test_a_workflow_needs_its_options_and_no_other_engine() -> None:
    with pytest.raises(CatalogError, match="options: expected `steps` and `output`"):
        read("")
    head = HEAD.replace("[{pool: flows}]", "[{pool: flows}, {pool: fake}]")
    with pytest.raises(CatalogError, match="routes: expected pools of the engine workflow only"):
        read(TALKING, head)


def test_a_workflow_ends_within_a_day() -> None:
    head = HEAD.replace("[{pool: flows}]", "[{pool: flows}]\n    deadline_s: 90000")
    with pytest.raises(CatalogError, match="deadline_s: expected at most 86400 seconds for a workflow, found 90000"):
        read(TALKING, head)


def snapshot_of(catalog: Catalog) -> Snapshot:
    return Snapshot(revision=1, models=catalog.models, pools=catalog.pools, prices={}, model_names={})


def served(catalog: Catalog) -> dict[str, Any]:
    [model] = spec_of(snapshot_of(catalog), "flows").models
    return model.options


def test_the_worker_is_told_where_steps_run_and_what_callers_would_be_given_by_default() -> None:
    options = msgspec.convert(served(read(TALKING)), WorkflowOptions)
    speech, film, join = (options.steps[name] for name in ("speech", "film", "join"))
    assert speech.pools == {"fake": 3, "spare": 1}
    assert speech.task == "text-to-speech"
    assert speech.input == {"speed": 1.5, "input": "$input.text", "voice": "$input.voice", "response_format": "wav"}
    assert (film.pools, film.task, film.weight) == ({"fake": 1}, "image-to-video", 5)
    assert (join.pools, join.do) == ({}, "join")


def test_a_model_that_is_not_served_here_has_no_pools() -> None:
    catalog = read(TALKING)
    del catalog.models["voice"]
    assert msgspec.convert(served(catalog), WorkflowOptions).steps["speech"].pools == {}


def test_options_of_a_later_release_go_to_the_worker_as_they_are() -> None:
    catalog = read(TALKING)
    later = {**catalog.models["head"].options, "budget": 1}
    catalog.models["head"] = msgspec.structs.replace(catalog.models["head"], options=later)
    assert served(catalog) == later


ELSEWHERE = """\
pools: {flows: {engine: workflow}, cloud: {engine: upstream}}
upstreams:
  acme: {protocol: fal, url: https://acme.example, pool: cloud}
models:
  painter:
    tasks: [text-to-image]
    description: Paints elsewhere.
    parameters:
      mood: {type: string, choices: [calm, wild]}
      detail: {type: integer, default: 3}
      subject: {type: string, required: true}
    routes:
      - {upstream: acme, model: a, weight: 2}
      - {upstream: acme, model: b}
      - {upstream: acme, model: c, order: 1}
  poster:
    tasks: [text-to-image]
    description: A poster.
    routes: [{pool: flows}]
    options:
      output: paint
      steps:
        paint: {model: painter, input: {prompt: $input.prompt, mood: calm, subject: "A ${input.style} thing"}}
"""


def test_a_step_may_fill_fields_of_one_model_alone_and_its_pool_weighs_as_its_routes() -> None:
    step = msgspec.convert(
        spec_of(snapshot_of(load(ELSEWHERE.encode(), "c.yaml")), "flows").models[0].options, WorkflowOptions
    ).steps["paint"]
    assert step.pools == {"cloud": 3}
    assert step.input == {
        "prompt": "$input.prompt",
        "extra": {"detail": 3, "mood": "calm", "subject": "A ${input.style} thing"},
    }


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("mood: calm, ", "mood: loud, ", "mood: expected what the step's model takes, found \"loud\": mood must be one of: calm, wild."),
        ("mood: calm, ", "detail: $input.prompt, ", "detail: expected whole, found $input.prompt, which is text"),
        ("mood: calm, ", "size: 64x64, ", "size: expected one of the fields of text-to-image (prompt, mood, detail, subject), found \"size\""),
        (', subject: "A ${input.style} thing"', "", " expected the field subject, which text-to-image needs, found a mapping"),
    ],
)  # fmt: skip
def test_what_a_step_may_not_ask_of_a_model_elsewhere_is_named(old: str, new: str, found: str) -> None:
    assert old in ELSEWHERE
    with pytest.raises(CatalogError) as caught:
        load(ELSEWHERE.replace(old, new).encode(), "c.yaml")
    place = "models.poster.options.steps.paint.input"
    assert f"c.yaml:23: {place}{'.' if not found.startswith(' ') else ':'}{found}" in str(caught.value).splitlines()
