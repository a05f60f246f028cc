"""What must hold inside a workflow: its steps, what they refer to, and the models that they call."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gateway.catalog.fields import Fields
from gateway.catalog.kinds import (
    GIVES,
    Kinds,
    Wrong,
    check_literal,
    check_own,
    field_kinds,
    fits,
    input_kinds,
    media_kinds,
    output_kinds,
    own_kinds,
    spoken,
)
from gateway.catalog.model import Catalog, Model, Pool
from gateway.catalog.parameters import task_fields
from gateway.catalog.problems import shown
from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.tasks import TASKS
from gateway.contract.workflow import (
    INPUT,
    LOCAL_INPUTS,
    LOCALS,
    MOST_STEPS,
    STEP_NAME,
    Lookup,
    Reference,
    TextOf,
    WorkflowOptions,
    WorkflowStep,
    lookups_in,
    needed_by,
    parse_template,
    steps_in,
)

STEP_FIELDS = ("model", "task", "do", "input", "weight")

MOST_DEADLINE_S = 86_400
"""Files of steps belong to no request that Postgres knows: after a day they count as left behind."""


def is_workflow(model: Model, pools: Mapping[str, Pool]) -> bool:
    """Say whether a model is a graph of others."""
    return any(route.pool in pools and pools[route.pool].engine == "workflow" for route in model.routes)


def check_workflow(model: Model, catalog: Catalog, fields: Fields) -> None:
    """Report what does not fit together in a workflow whose own fields are right by themselves."""
    if any(catalog.pools[route.pool].engine != "workflow" for route in model.routes):
        fields.wrong("routes", "pools of the engine workflow only")
    if model.deadline_s > MOST_DEADLINE_S:
        fields.wrong("deadline_s", f"at most {MOST_DEADLINE_S} seconds for a workflow", str(model.deadline_s))
    options = fields.group("options")
    if options is None:
        fields.wrong("options", "`steps` and `output`")
        return
    options.known(WorkflowOptions.__struct_fields__)
    _Graph(model, catalog, options).check()


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step with the fields it was read from, and its input's templates, those left out that cannot be read."""

    name: str
    given: WorkflowStep
    fields: Fields
    templates: dict[str, Any]
    gives: str
    """What kind of thing comes of it."""

    @property
    def input_type(self) -> type[msgspec.Struct] | None:
        """The struct that its input must fit; None where the step itself is wrong."""
        if self.given.do is not None:
            return LOCAL_INPUTS[self.given.do]
        return INPUT_TYPES[self.given.task] if self.given.task is not None else None


class _Graph:
    """One workflow that is checked."""

    def __init__(self, model: Model, catalog: Catalog, options: Fields) -> None:
        self._model = model
        self._catalog = catalog
        self._options = options
        self._steps = {step.name: step for step in self._read()}

    def check(self) -> None:
        """Report everything that is wrong."""
        if not self._steps or len(self._steps) > MOST_STEPS:
            self._options.wrong("steps", f"a mapping of 1 to {MOST_STEPS} steps")
        for step in self._steps.values():
            self._check_input(step)
        self._check_output()

    def _read(self) -> Iterator[_Step]:
        for name, _, fields in self._options.named("steps"):
            if not STEP_NAME.fullmatch(name) or name == INPUT:
                fields.wrong_here("a name of lower-case letters, digits and `_`, and not `input`", shown(name))
            fields.known(STEP_FIELDS)
            given = self._read_step(fields)
            gives = "video" if given.do else GIVES[given.task] if given.task else ""
            if given.do == "trim" and "video" not in given.input:
                gives = "audio"
            yield _Step(name=name, given=given, fields=fields, templates=_templates(given, fields), gives=gives)

    def _read_step(self, fields: Fields) -> WorkflowStep:
        do = fields.word("do", LOCALS) if fields.node("do") is not None else None
        model = fields.text("model", "")
        task = fields.word("task", TASKS) if fields.node("task") is not None else None
        if bool(model) == (fields.node("do") is not None):
            fields.wrong_here("either `model` or `do`", "both" if model else "neither")
        elif model:
            task = self._task(model, task, fields)
        weight = fields.number("weight")
        if weight is not None and not 0 <= weight <= 1000:
            fields.wrong("weight", "a number from 0 to 1000")
        plain = fields.plain("input") if fields.group("input") else {}
        return WorkflowStep(model=model, task=task, do=do, input=plain if isinstance(plain, dict) else {})

    def _task(self, name: str, task: Any, fields: Fields) -> Any:
        """Give the task of a step's model: the one that is named, or the only one there is."""
        known = self._catalog.models.get(name)
        if known is None:
            fields.wrong("model", "a model of this catalog", shown(name))
            return None
        if is_workflow(known, self._catalog.pools):
            fields.wrong("model", "a model that is no workflow itself", shown(name))
        if task is None and len(known.tasks) == 1:
            return known.tasks[0]
        if task not in known.tasks:
            fields.wrong("task", f"one of the tasks of {name} ({', '.join(known.tasks)})", task or "nothing")
            return None
        return task

    def _check_input(self, step: _Step) -> None:
        kind, given = step.input_type, step.fields.group("input") or step.fields
        if kind is None:
            return
        what = step.given.do or step.given.task
        model = self._catalog.models.get(step.given.model)
        parameters = model.parameters if model else {}
        own = model.vendor_fields if model else {}
        refused = _not_taken(model, kind)
        known = [name for name in (*kind.__struct_fields__, *own) if name != "extra" and name not in refused]
        for name, template in step.templates.items():
            if name not in known:
                given.wrong(name, f"one of the fields of {what} ({', '.join(known)})", shown(name))
                continue
            try:
                if any(lookups_in(template)):
                    self._check_references(template, own_kinds(own[name]) if name in own else field_kinds(kind, name))
                elif name in own:
                    check_own(name, own[name], template)
                else:
                    check_literal(kind, name, template, parameters.get(name))
            except Wrong as wrong:
                given.wrong(name, wrong.expected or f"what {what} takes as {name}", wrong.found)
        filled = {name for name, parameter in parameters.items() if parameter.default is not None}
        needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
        needed += [name for name, parameter in parameters.items() if parameter.required and name in known]
        for name in dict.fromkeys(needed):
            if name not in {*step.given.input, *filled}:
                step.fields.wrong("input", f"the field {name}, which {what} needs")
        if step.given.do == "trim" and ("video" in step.given.input) == ("audio" in step.given.input):
            step.fields.wrong("input", "either `video` or `audio`")

    def _check_references(self, template: Any, target: Kinds) -> None:
        """Hold what a template refers to against what its field takes. Raises Wrong."""
        whole = isinstance(template, Lookup)
        if isinstance(template, TextOf) and "text" not in target:
            raise Wrong(f"{spoken(target)}, and no text", "a text")
        if isinstance(template, list) and "images" in target:
            target, whole = frozenset({"image"}), all(isinstance(item, Lookup) for item in template)
        for lookup in lookups_in(template):
            for reference in lookup.among:
                source = self._kinds_of(reference)
                wanted = target if whole else frozenset({"text", "number"})
                if not fits(source, wanted):
                    raise Wrong(spoken(wanted), f"{reference}, which is {spoken(source)}")

    def _kinds_of(self, reference: Reference) -> Kinds:
        """Say what a reference gives. Raises Wrong for one that leads nowhere."""
        head, *rest = reference.path
        if reference.source == INPUT:
            kinds = frozenset[str]().union(*(input_kinds(task, head) for task in self._model.tasks))
            if len(rest) == 1:
                kinds = media_kinds(kinds).get(rest[0], frozenset())
            if not kinds:
                raise Wrong(f"a field of the workflow's own input ({', '.join(self._model.tasks)})", str(reference))
            return kinds
        step = self._steps.get(reference.source)
        if step is None:
            raise Wrong(f"a reference to {INPUT} or to one of the steps {', '.join(self._steps)}", str(reference))
        known = output_kinds(step.gives)
        if rest or head not in known:
            raise Wrong(
                f"something that {step.name} gives ({', '.join(known) or 'nothing to refer to'})", str(reference)
            )
        return known[head]

    def _check_output(self) -> None:
        options, output = self._options, self._options.text("output")
        needs = {name: steps_in(step.templates) for name, step in self._steps.items()}
        for name in self._steps:
            try:
                needed_by(name, needs)
            except ValueError as circle:
                options.wrong("steps", "steps that do not need each other in a circle", str(circle))
                return
        if output not in self._steps:
            options.wrong("output", f"one of the steps {', '.join(self._steps)}", shown(output))
            return
        for name in self._steps.keys() - needed_by(output, needs):
            self._steps[name].fields.wrong_here("a step that the output needs", f"{name}, which nothing needs")
        gives = self._steps[output].gives
        for task in self._model.tasks:
            if gives and GIVES[task] != gives:
                options.wrong(
                    "output", f"a step that gives {GIVES[task]}, as {task} does", f"{output}, which gives {gives}"
                )


def _not_taken(model: Model | None, kind: type[msgspec.Struct]) -> set[str]:
    refusals: Mapping[Any, Any] = model.refusals if model else {}
    return {refusal.name for refusal in refusals.get(kind, ())}


def _templates(given: WorkflowStep, fields: Fields) -> dict[str, Any]:
    read = {}
    for name, value in given.input.items():
        try:
            read[name] = parse_template(value)
        except ValueError as error:
            expected = "a reference such as $input.prompt or ${input.prompt}; a plain dollar is written $$"
            (fields.group("input") or fields).wrong(name, expected, shown(error))
    return read


def options_for_worker(model: Model, models: Mapping[str, Model]) -> dict[str, Any]:
    """Give a workflow's options with what its worker has to know of the step models.

    That is where they are served (the pools of the first order, with their weights), their task, and what their
    callers would have filled in by the catalog: defaults. Options that cannot be read are left to the worker to tell.
    """
    try:
        options = msgspec.convert(model.options, WorkflowOptions)
    except msgspec.ValidationError:
        return model.options
    steps = {name: _filled(step, models.get(step.model)) for name, step in options.steps.items()}
    return {"steps": msgspec.to_builtins(steps), "output": options.output}


def _filled(step: WorkflowStep, model: Model | None) -> WorkflowStep:
    if model is None or not model.routes:
        return step
    task = step.task or model.tasks[0]
    first = min(route.order for route in model.routes)
    pools: dict[str, int] = {}
    for route in model.routes:
        if route.order == first:
            pools[route.pool] = pools.get(route.pool, 0) + route.weight
    fields = task_fields(task)
    defaults = {
        name: parameter.default
        for name, parameter in model.parameters.items()
        if name in fields and parameter.default is not None
    }
    if model.max_output_tokens and "max_tokens" in fields:
        defaults.setdefault("max_tokens", model.max_output_tokens)
    own = {name: field.default for name, field in model.vendor_fields.items() if field.default is not None}
    own |= {name: value for name, value in step.input.items() if name in model.vendor_fields}
    plain = {name: value for name, value in step.input.items() if name not in model.vendor_fields}
    extra = {"extra": own} if own else {}
    return msgspec.structs.replace(step, task=task, input=defaults | plain | extra, pools=pools)
