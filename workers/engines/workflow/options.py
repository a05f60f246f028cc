"""The graph of a workflow, read from the options of its model and checked once more: catalogs are written by people."""

from typing import Any

import msgspec

from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.inputs.fields import InputStruct
from gateway.contract.workflow import (
    INPUT,
    LOCAL_INPUTS,
    WorkflowOptions,
    WorkflowStep,
    needed_by,
    parse_template,
    steps_in,
)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a graph, ready to run."""

    name: str
    step: WorkflowStep
    template: dict[str, Any]
    input_type: type[InputStruct]

    @property
    def weight(self) -> float:
        """Its share of the progress."""
        if self.step.weight is not None:
            return self.step.weight
        return 1.0 if self.step.model else 0.0

    @property
    def title(self) -> str:
        """How it is called in what a caller reads."""
        return f"{self.name} ({self.step.model or self.step.do})"


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a workflow by name, and the one whose output is the workflow's."""

    nodes: dict[str, Node]
    output: str
    giving: frozenset[str]
    """The steps at models that the output comes from: itself, or those that local steps made it of."""
    stored: frozenset[str]
    """The local steps whose output a step at a model takes, so that it must lie in the blob store."""


def read_options(options: dict[str, Any]) -> Graph:
    """Read the options of a model. Raises ValueError that says what is wrong."""
    given = msgspec.convert(options, WorkflowOptions)
    nodes = {name: _node(name, step) for name, step in given.steps.items()}
    needs = {name: steps_in(node.template) for name, node in nodes.items()}
    for name, needed in needs.items():
        if unknown := needed - nodes.keys():
            raise ValueError(f"step {name}: there is no step {min(unknown)}")
    if given.output not in nodes:
        raise ValueError(f"there is no step {given.output} for the output")
    for name in nodes:
        try:
            needed_by(name, needs)
        except ValueError as circle:
            raise ValueError(f"steps need each other in a circle: {circle}") from None
    return Graph(
        nodes=nodes,
        output=given.output,
        giving=frozenset(_giving(given.output, nodes, needs)),
        stored=frozenset(
            one for name, node in nodes.items() if node.step.model for one in needs[name] if nodes[one].step.do
        ),
    )


def _node(name: str, step: WorkflowStep) -> Node:
    if name == INPUT or bool(step.model) == (step.do is not None):
        raise ValueError(f"step {name}: either a model or something to do is needed, and another name than input")
    if step.do is not None:
        kind = LOCAL_INPUTS[step.do]
    elif step.task is None or not step.pools:
        raise ValueError(f"step {name}: no pool here serves {step.model}")
    else:
        kind = INPUT_TYPES[step.task]
    try:
        template = parse_template(step.input)
    except ValueError as error:
        raise ValueError(f"step {name}: {error} is no reference") from None
    return Node(name=name, step=step, template=template, input_type=kind)


def _giving(name: str, nodes: dict[str, Node], needs: dict[str, set[str]]) -> set[str]:
    if nodes[name].step.model:
        return {name}
    return {model for needed in needs[name] for model in _giving(needed, nodes, needs)}
