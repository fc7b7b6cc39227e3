"""Finds implied dependencies in a compiled template, by an index of the names that resources share; pure.

They become part of a resource's requirements.  So plans, previews, deletions and the lists of resources treat
them like dependencies of ``depends_on``.
"""

import graphlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..resources.implied import EACH, ImpliedDependency, Names
from ..shapes import Json
from ..template.budget import Budget, charged_at
from ..template.errors import CircularDependency
from ..template.language import CompiledTemplate, ResourceDefinition
from ..template.residual import ARGS, FN, is_failing, is_node, members

Path = tuple[tuple[Names, ...], ...]
_EDGE = 5
"""Steps of work that one edge of the graph takes until it is stored."""


def with_implied_dependencies(
    plan: CompiledTemplate, declared: Mapping[str, Sequence[ImpliedDependency]], budget: Budget
) -> CompiledTemplate:
    """Return the template with the dependencies that its resource types imply, in the order they need.

    :param declared: the declarations of each resource's type, by the resource's name.
    :param budget: the budget of the request; a few resources in common imply very many dependencies.
    :raises CircularDependency: resources would wait for each other in a circle.
    """
    index = _Index(plan.resources, budget)
    dependencies: dict[str, set[str]] = {}
    for name, definition in plan.resources.items():
        with charged_at("resources", name):
            required = {
                required_name for each in declared[name] for required_name in index.find(definition, each)
            }
        if required := required - {name, *definition.requires}:
            dependencies[name] = required
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
    """Return the names, each after all that it needs.

    The template's own dependencies have no circle, so each circle has an implied dependency.
    """
    sorter = graphlib.TopologicalSorter({name: sorted(required) for name, required in needs.items()})
    try:
        return list(sorter.static_order())
    except graphlib.CycleError as error:
        circle: list[str] = list(reversed(error.args[1]))
        pairs = zip(circle, circle[1:], strict=False)
        because = [
            f"{waiting} for {required}" for waiting, required in pairs if required in implied.get(waiting, ())
        ]
        raise CircularDependency(
            f"resources wait for each other in a circle: {' -> '.join(circle)}. Their types imply that some "
            f"wait, because they name the same thing: {', '.join(because)}",
            ["resources"],
        ) from error


class _Index:
    """Resources by the identities to which their properties lead.

    Each path is read once for each resource.
    """

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
        naming = self._by_identity(declared)
        identities = self._identities(definition, declared.own_path)
        self._budget.step(1 + len(identities))
        names = {name for identity in identities for name in naming.get(identity, ())}
        self._budget.step(len(names) * _EDGE)
        return names

    def _by_identity(self, declared: ImpliedDependency) -> Mapping[str, list[str]]:
        place = (declared.type, declared.theirs)
        if place not in self._naming:
            names = self._naming[place] = {}
            for definition in self._by_type[declared.type]:
                for identity in self._identities(definition, declared.their_path):
                    names.setdefault(identity, []).append(definition.name)
        return self._naming[place]

    def _identities(self, definition: ResourceDefinition, path: Path) -> frozenset[str]:
        """Return the identities to which a path leads in a resource."""
        place = (definition.name, path)
        if place not in self._named:
            self._named[place] = frozenset(self._read(definition, path))
        return self._named[place]

    def _read(self, definition: ResourceDefinition, path: Path) -> Iterator[str]:
        hop, *further = path
        for value in _values(definition.properties, hop):
            if not further:
                if (identity := _identity(value)) is not None:
                    yield identity
            elif is_node(value) and value[FN] == "get_resource" and value[ARGS][0] in self._resources:
                yield from self._identities(self._resources[value[ARGS][0]], tuple(further))


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


def _identity(value: Json) -> str | None:
    """Return the identity that a value names, as a text to compare; None: it names nothing."""
    if is_node(value):
        return None if value[FN] == "literal" or is_failing(value) else json.dumps(value, sort_keys=True)
    return f"={value}" if isinstance(value, str | int) and value != "" else None
