"""Finds implied dependencies in a compiled template, by an index of the names that resources share; pure.

They become part of a resource's requirements.  So plans, previews, deletions and the lists of resources treat
them like dependencies of ``depends_on``.
"""

import graphlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...resources.contract.implied import EACH, ImpliedDependency, Names
from ...shapes import Json
from ...template.budget import Budget, charged_at
from ...template.errors import CircularDependency
from ...template.language import CompiledTemplate, ResourceDefinition
from ...template.residual import ARGS, FN, is_failing, is_node, members

Path = tuple[tuple[Names, ...], ...]
_Naming = dict[tuple[str, str], Mapping[str, list[str]]]
"""By a type and its path: the resources that name something, by the identity of that."""
NOTHING: Mapping[str, Mapping[str, Sequence[Json]]] = {}
_EDGE = 5
"""Steps of work that one edge of the graph takes until it is stored."""


def with_implied_dependencies(
    plan: CompiledTemplate,
    declared: Mapping[str, Sequence[ImpliedDependency]],
    budget: Budget,
    nested: Mapping[str, Mapping[str, Sequence[Json]]] = NOTHING,
    inside: Sequence[ImpliedDependency] = (),
) -> CompiledTemplate:
    """Return the template with the dependencies that its resource types imply, in the order they need.

    :param declared: the declarations of each resource's type, by the resource's name.
    :param budget: the budget of the request; a few resources in common imply very many dependencies.
    :param nested: of each resource that is a nested stack, by the types of the resources inside of it, the
        values in its properties that these may name.
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
        border = _Border(index, plan.resources, nested, inside)
        followers = _Followers(needs, budget)
        for name, mentioned in border.edges(declared):
            with charged_at("resources", name):
                # What waits for the resource itself cannot come before it.
                if (more := mentioned - needs[name]) and (required := more - followers.of(name)):
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


class _Border:
    """Dependencies between the resources of a stack and those inside of its nested stacks.

    Each is found by a value in a nested stack's properties, so it may be more than is needed.
    """

    def __init__(
        self,
        index: "_Index",
        resources: Mapping[str, ResourceDefinition],
        nested: Mapping[str, Mapping[str, Sequence[Json]]],
        inside: Sequence[ImpliedDependency],
    ) -> None:
        self._index = index
        self._resources = resources
        self._nested = nested
        self._inside = inside
        self._mentions = {name: index.mentions(resources[name].properties) for name in nested}

    def edges(self, declared: Mapping[str, Sequence[ImpliedDependency]]) -> Iterator[tuple[str, set[str]]]:
        """Yield names of resources, each with the resources that it has to wait for.

        First those that wait for something inside of a nested stack: it is certain to be there.  Two nested
        stacks of which each may wait for the other do not wait.

        :param declared: the declarations of each resource's type, by the resource's name.
        """
        naming = self._naming_inside()
        for name, definition in self._resources.items():
            if name not in self._nested:
                yield name, self._index.find_in(naming, definition, declared[name])
        siblings = {
            name: self._index.find_mentioned_in(naming, self._mentions[name], self._inside)
            for name in self._nested
        }
        for name in (name for name in self._resources if name in self._nested):
            others = {other for other in siblings[name] if name not in siblings[other]}
            yield name, self._index.find_mentioned(self._mentions[name], self._inside) | others
        for name, definition in self._resources.items():
            if name not in self._nested:
                yield name, self._index.find_through(self._mentions, definition, declared[name])

    def _naming_inside(self) -> "_Naming":
        """Return the nested stacks with a resource of a type inside, by what this may name."""
        naming: _Naming = {}
        for declared in self._inside:
            key = (declared.type, declared.theirs)
            if key in naming:
                continue
            names: dict[str, list[str]] = {}
            naming[key] = names
            for name, contents in self._nested.items():
                if values := contents.get(declared.type):
                    mentions = self._index.mentions(list(values))
                    for identity in self._index.reached(mentions, declared.their_path):
                        names.setdefault(identity, []).append(name)
        return naming


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
        self._naming_through: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._named: dict[tuple[str, Path], frozenset[str]] = {}

    def find(self, definition: ResourceDefinition, declared: ImpliedDependency) -> set[str]:
        """Return the names of the resources that name the same thing."""
        if declared.type not in self._by_type:
            return set()
        identities = self._identities(definition, declared.own_path)
        names = self._pick(self._by_identity(declared), identities)
        self._budget.step(len(names) * _EDGE)
        return names

    def mentions(self, tree: Json) -> dict[str, Json]:
        """Return all parts of a tree that can name something, by their identities."""
        values = _all_values(tree, self._budget)
        return {identity: value for value in values if (identity := _identity(value)) is not None}

    def find_mentioned(self, mentions: Mapping[str, Json], inside: Sequence[ImpliedDependency]) -> set[str]:
        """Return the names of the resources for which something inside of a nested stack may have to wait.

        A value in its properties may become any property of its resources.
        """
        present = [declared for declared in inside if declared.type in self._by_type]
        naming = {(declared.type, declared.theirs): self._by_identity(declared) for declared in present}
        return self.find_mentioned_in(naming, mentions, present)

    def find_mentioned_in(
        self, naming: "_Naming", mentions: Mapping[str, Json], inside: Sequence[ImpliedDependency]
    ) -> set[str]:
        """Return the names, of those that name something, which the mentions lead to."""
        names: set[str] = set()
        for declared in inside:
            if by_identity := naming.get((declared.type, declared.theirs)):
                names |= self._pick(by_identity, self.reached(mentions, declared.own_path))
        self._budget.step(len(names) * _EDGE)
        return names

    def find_in(
        self, naming: "_Naming", definition: ResourceDefinition, declared: Sequence[ImpliedDependency]
    ) -> set[str]:
        """Return the names, of those that name something, which a resource's declarations lead to."""
        names: set[str] = set()
        for each in declared:
            if by_identity := naming.get((each.type, each.theirs)):
                names |= self._pick(by_identity, self._identities(definition, each.own_path))
        self._budget.step(len(names) * _EDGE)
        return names

    def find_through(
        self,
        nested: Mapping[str, Mapping[str, Json]],
        definition: ResourceDefinition,
        declared: Sequence[ImpliedDependency],
    ) -> set[str]:
        """Return the names of the resources that name the same thing, by a reference to a nested stack.

        What the reference gives may be a resource inside, and name whatever the nested stack's properties do.

        :param nested: the mentions of each nested stack.
        """
        names: set[str] = set()
        for each in declared:
            if each.type not in self._by_type:
                continue
            key = (each.type, each.theirs)
            if key not in self._naming_through:
                by_identity = self._naming_through[key] = {}
                for other in self._by_type[each.type]:
                    for identity in self._through(nested, other, each.their_path):
                        by_identity.setdefault(identity, []).append(other.name)
            through = self._through(nested, definition, each.own_path)
            names |= self._pick(self._by_identity(each), through)
            own = self._identities(definition, each.own_path)
            names |= self._pick(self._naming_through[key], own | through)
        self._budget.step(len(names) * _EDGE)
        return names

    def _through(
        self, nested: Mapping[str, Mapping[str, Json]], definition: ResourceDefinition, path: Path
    ) -> set[str]:
        """Return the identities to which a path may lead that leaves the stack for a nested one."""
        hop, *further = path
        identities: set[str] = set()
        for value in _values(definition.properties, hop) if further else ():
            if is_node(value) and value[FN] in ("get_resource", "get_attr"):
                subject = value[ARGS][0]
                if subject in nested:
                    identities |= self.reached(nested[subject], tuple(further))
                elif subject in self._resources and value[FN] == "get_resource":
                    identities |= self._through(nested, self._resources[subject], tuple(further))
        return identities

    def _pick(self, by_identity: Mapping[str, list[str]], identities: Collection[str]) -> set[str]:
        self._budget.step(1 + len(identities))
        return {name for identity in identities for name in by_identity.get(identity, ())}

    def reached(self, mentions: Mapping[str, Json], path: Path) -> set[str]:
        """Return the identities to which the values lead.

        The path may begin inside of the nested stack and end at a value, or continue from a resource that a
        value refers to.
        """
        _, *further = path
        identities = set(mentions)
        for value in mentions.values() if further else ():
            if is_node(value) and value[FN] == "get_resource" and value[ARGS][0] in self._resources:
                identities |= self._identities(self._resources[value[ARGS][0]], tuple(further))
        return identities

    def _by_identity(self, declared: ImpliedDependency) -> Mapping[str, list[str]]:
        key = (declared.type, declared.theirs)
        if key not in self._naming:
            names = self._naming[key] = {}
            for definition in self._by_type[declared.type]:
                for identity in self._identities(definition, declared.their_path):
                    names.setdefault(identity, []).append(definition.name)
        return self._naming[key]

    def _identities(self, definition: ResourceDefinition, path: Path) -> frozenset[str]:
        """Return the identities to which a path leads in a resource."""
        key = (definition.name, path)
        if key not in self._named:
            self._named[key] = frozenset(self._read(definition, path))
        return self._named[key]

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
