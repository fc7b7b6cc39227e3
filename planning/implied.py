"""Finds implied dependencies in a compiled template, by an index of the names that resources share; pure.

They become part of a resource's requirements.  So plans, previews, deletions and the lists of resources treat
them like dependencies of ``depends_on``.
"""

import graphlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    plan: CompiledTemplate,
    declared: Mapping[str, Sequence[ImpliedDependency]],
    budget: Budget,
    nested: Collection[str] = (),
    inside: Sequence[ImpliedDependency] = (),
) -> CompiledTemplate:
    """Return the template with the dependencies that its resource types imply, in the order they need.

    :param declared: the declarations of each resource's type, by the resource's name.
    :param budget: the budget of the request; a few resources in common imply very many dependencies.
    :param nested: names of the resources that are nested stacks.
    :param inside: the declarations of all types that a nested stack may have.
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
    needs = {name: {*item.requires, *dependencies.get(name, ())} for name, item in plan.resources.items()}
    if nested:
        followers = _Followers(needs, budget)
        for name in (name for name in plan.resources if name in nested):
            with charged_at("resources", name):
                mentioned = index.find_mentioned(plan.resources[name], inside) - needs[name]
                # What waits for the nested stack itself cannot come before it.
                if mentioned and (required := mentioned - followers.of(name)):
                    dependencies.setdefault(name, set()).update(required)
                    needs[name] |= required
                    followers.add(name, required)
    if not dependencies:
        return plan
    return replace(
        plan,
        resources={
            name: replace(plan.resources[name], requires=tuple(sorted(needs[name])))
            for name in _in_order(needs, dependencies)
        },
    )


class _Followers:
    """The resources that come after each resource."""

    def __init__(self, needs: Mapping[str, set[str]], budget: Budget) -> None:
        self._budget = budget
        self._next: dict[str, list[str]] = {}
        for name, required in needs.items():
            self.add(name, required)

    def add(self, name: str, required: Iterable[str]) -> None:
        """Let a resource come after others."""
        for required_name in required:
            self._next.setdefault(required_name, []).append(name)

    def of(self, name: str) -> set[str]:
        """Return a resource and all that come after it."""
        reached = {name}
        unread = [name]
        while unread:
            followers = self._next.get(unread.pop(), ())
            self._budget.step(1 + len(followers))
            more = [other for other in followers if other not in reached]
            reached.update(more)
            unread += more
        return reached


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

    def find_mentioned(self, definition: ResourceDefinition, inside: Sequence[ImpliedDependency]) -> set[str]:
        """Return the names of the resources for which something inside of a nested stack may have to wait.

        Its own references are not read: a value in its properties may become any property of its resources.
        """
        mentions = {
            identity: value
            for value in _all_values(definition.properties, self._budget)
            if (identity := _identity(value)) is not None
        }
        names: set[str] = set()
        for declared in inside:
            if declared.type in self._by_type:
                naming = self._by_identity(declared)
                identities = self._mentioned(mentions, declared)
                self._budget.step(1 + len(identities))
                names |= {name for identity in identities for name in naming.get(identity, ())}
        self._budget.step(len(names) * _EDGE)
        return names

    def _mentioned(self, mentions: Mapping[str, Json], declared: ImpliedDependency) -> set[str]:
        """Return the identities to which the values lead.

        The path may begin inside of the nested stack and end at a value, or continue from a resource that a
        value refers to.
        """
        _, *further = declared.own_path
        identities = set(mentions)
        for value in mentions.values() if further else ():
            if is_node(value) and value[FN] == "get_resource" and value[ARGS][0] in self._resources:
                identities |= self._identities(self._resources[value[ARGS][0]], tuple(further))
        return identities

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


def _all_values(tree: Json, budget: Budget) -> Iterator[Json]:
    """Yield all parts of a tree that can name something: texts, numbers and functions."""
    stack = [tree]
    while stack:
        value = stack.pop()
        budget.step()
        if is_node(value):
            yield value
            stack += value[ARGS]
        elif isinstance(value, Mapping):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
        elif value is not None:
            yield value


def _identity(value: Json) -> str | None:
    """Return the identity that a value names, as a text to compare; None: it names nothing."""
    if is_node(value):
        return None if value[FN] == "literal" or is_failing(value) else json.dumps(value, sort_keys=True)
    return f"={value}" if isinstance(value, str | int) and value != "" else None
