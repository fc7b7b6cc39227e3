"""Finds implied dependencies in a compiled template: an index of what resources name in common; pure.

They become part of what a resource requires.  So plans, previews, deletions and the lists of resources
treat them as they treat those of ``depends_on``.
"""

import graphlib
import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..resources.implied import EACH, ImpliedDependency, Names
from ..template.budget import Budget, charged_at
from ..template.errors import CircularDependency
from ..template.language import CompiledTemplate, ResourceDefinition
from ..template.residual import ARGS, FN, is_failing, is_node, members

Json = typing.Any
Path = tuple[tuple[Names, ...], ...]
_EDGE = 5
"""Steps of work that one edge of the graph takes until it is stored."""


def with_implied_dependencies(
    plan: CompiledTemplate, declared: Mapping[str, Sequence[ImpliedDependency]], budget: Budget
) -> CompiledTemplate:
    """Return the template with the dependencies that its resource types imply, in the order they need.

    :param declared: the declarations of each resource's type, by the resource's name.
    :param budget: of the request; a few resources in common imply very many dependencies.
    :raises CircularDependency: with them, resources wait for each other.
    """
    index = _Index(plan.resources, budget)
    dependencies: dict[str, set[str]] = {}
    for name, definition in plan.resources.items():
        with charged_at("resources", name):
            others = {other for each in declared[name] for other in index.find(definition, each)}
        if others := others - {name, *definition.requires}:
            dependencies[name] = others
    if not dependencies:
        return plan
    needs = {name: {*item.requires, *dependencies.get(name, ())} for name, item in plan.resources.items()}
    return replace(
        plan,
        resources={
            name: replace(plan.resources[name], requires=tuple(sorted(needs[name])))
            for name in _in_order(needs, dependencies)
        },
    )


def _in_order(needs: Mapping[str, set[str]], implied: Mapping[str, set[str]]) -> list[str]:
    """Return the names, each behind all that it needs.

    The template's own dependencies have no circle, so one that is implied is part of each circle.
    """
    sorter = graphlib.TopologicalSorter({name: sorted(others) for name, others in needs.items()})
    try:
        return list(sorter.static_order())
    except graphlib.CycleError as error:
        circle: list[str] = list(reversed(error.args[1]))
        pairs = zip(circle, circle[1:], strict=False)
        because = [f"{one} for {other}" for one, other in pairs if other in implied.get(one, ())]
        raise CircularDependency(
            f"resources wait for each other in a circle: {' -> '.join(circle)}. Their types imply that some "
            f"wait, because they name the same thing: {', '.join(because)}",
            ["resources"],
        ) from error


class _Index:
    """Resources by what they name.  Each path is read once for each resource."""

    def __init__(self, resources: Mapping[str, ResourceDefinition], budget: Budget) -> None:
        self._resources = resources
        self._budget = budget
        self._by_type: dict[str, list[ResourceDefinition]] = {}
        for definition in resources.values():
            for type_name in {definition.type, definition.declared_type}:
                self._by_type.setdefault(type_name, []).append(definition)
        self._naming: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._named: dict[tuple[str, Path], frozenset[str]] = {}

    def find(self, definition: ResourceDefinition, declared: ImpliedDependency) -> set[str]:
        """Return the names of the resources that name the same thing."""
        if declared.type not in self._by_type:
            return set()
        naming = self._by_name(declared)
        names = self._names_at(definition, declared.own_path)
        self._budget.step(1 + len(names))
        others = {name for thing in names for name in naming.get(thing, ())}
        self._budget.step(len(others) * _EDGE)
        return others

    def _by_name(self, declared: ImpliedDependency) -> Mapping[str, list[str]]:
        place = (declared.type, declared.theirs)
        if place not in self._naming:
            by_name = self._naming[place] = {}
            for other in self._by_type[declared.type]:
                for name in self._names_at(other, declared.their_path):
                    by_name.setdefault(name, []).append(other.name)
        return self._naming[place]

    def _names_at(self, definition: ResourceDefinition, path: Path) -> frozenset[str]:
        """Return what a path leads to, in a form that is equal for equal things."""
        place = (definition.name, path)
        if place not in self._named:
            self._named[place] = frozenset(self._read(definition, path))
        return self._named[place]

    def _read(self, definition: ResourceDefinition, path: Path) -> Iterator[str]:
        hop, *further = path
        for value in _values(definition.properties, hop):
            if not further:
                if (name := _name_of(value)) is not None:
                    yield name
            elif is_node(value) and value[FN] == "get_resource" and value[ARGS][0] in self._resources:
                yield from self._names_at(self._resources[value[ARGS][0]], tuple(further))


def _values(tree: Json, properties: tuple[Names, ...]) -> Iterator[Json]:
    if not properties:
        yield tree
        return
    names, *further = properties
    if names == EACH:
        inside = tree if isinstance(tree, list) else []
    else:
        inside = [members(tree)[name] for name in names if name in members(tree)]
    for value in inside:
        yield from _values(value, tuple(further))


def _name_of(value: Json) -> str | None:
    """Return the name of a thing as a key; None: the value names nothing."""
    if is_node(value):
        return None if value[FN] == "literal" or is_failing(value) else json.dumps(value, sort_keys=True)
    return f"={value}" if isinstance(value, str | int) and value != "" else None
