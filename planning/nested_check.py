"""Checks of the stacks nested in a stack, and the attributes that it requests of them; pure.

The checks run before any resource is created.  A nested stack is compiled from its resource's properties as
far as they are known.  Where a value comes from another resource only names and types can be checked.
"""

import contextlib
import json
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..resources.context import ChildGoal
from ..resources.errors import UnknownType
from ..resources.nested.base import NestedType
from ..resources.nested.members import output_name
from ..resources.nested.parameterize import parameterize
from ..resources.properties import validate_properties
from ..resources.registry import ResourceRegistry
from ..sealing.stored import StoredLookup
from ..template.budget import Budget
from ..template.compile import Limits, describe
from ..template.environment import Environment, nested_environment
from ..template.errors import (
    InvalidReference,
    LimitExceeded,
    ParameterMissing,
    TemplateError,
    UnknownParameter,
)
from ..template.language import CompiledTemplate, OutputDefinition, ResourceDefinition, is_template_name
from ..template.load import load_template
from ..template.residual import ARGS, FN, evaluate, failing, is_deferred, is_node, node, references

Json = typing.Any
COMMON = frozenset({"outputs", "show", "stack_name"})
"""Attributes that every nested stack has beside its outputs."""


def check_names(declared: Mapping[str, Json], given: Mapping[str, Json], environment: Environment) -> None:
    """Check the parameters given to a nested stack against those that its template declares.

    :raises UnknownParameter, ParameterMissing: they differ.
    """
    if unknown := sorted(set(given) - set(declared)):
        raise UnknownParameter(f'The Parameter "{unknown[0]}" was not defined in template.', ("properties",))
    if lacking := missing(declared, given, environment):
        raise ParameterMissing(f"The Parameter ({lacking[0]}) was not provided.", ("properties",))


def missing(declared: Mapping[str, Json], given: Mapping[str, Json], environment: Environment) -> list[str]:
    """Return the names of the parameters that have no value."""
    defaults = environment.defaults
    return [
        name
        for name, schema in declared.items()
        if "Default" not in schema and name not in given and name not in defaults
    ]


def check_attributes(name: str, template: Mapping[str, Json], used: Iterable[str]) -> None:
    """Check the attributes of a provider template's resource: they are its outputs.

    :raises InvalidReference: it has no such output.
    """
    outputs = template.get("outputs")
    known = {*COMMON, *(outputs if isinstance(outputs, Mapping) else ())}
    for attribute in used:
        if attribute and attribute not in known:
            raise InvalidReference(f"The Referenced Attribute ({name} {attribute}) is incorrect.")


def attributes_used(plan: CompiledTemplate) -> dict[str, dict[str, None]]:
    """Return the attributes that a template uses of each of its resources."""
    found: dict[str, dict[str, None]] = {}
    users: Iterable[ResourceDefinition | OutputDefinition] = (
        *plan.resources.values(),
        *plan.outputs.values(),
    )
    for user in users:
        for reference in user.references:
            found.setdefault(reference.resource, {})[reference.attribute or ""] = None
    return found


_OUTPUT = 400
"""Bytes that one attribute of one member of a group takes in its generated template."""
_WRITTEN = 500
"""Characters of JSON that one step of work writes."""


@dataclass(frozen=True)
class Branch:
    """A child to be compiled.

    :ivar environment: the child's.
    :ivar secret: names of parameters whose values hold secrets.
    """

    template: Mapping[str, Json]
    parameters: Mapping[str, Json]
    environment: Environment
    facade: Mapping[str, Json] | None
    secret: frozenset[str]
    depth: int


@dataclass(frozen=True)
class Place:
    """The place of a child in the tree.

    :ivar environment: of the stack around it.
    :ivar copies: number of equal stacks.
    """

    environment: Environment
    depth: int
    copies: int


Compile = Callable[[Branch], CompiledTemplate]


@dataclass(frozen=True)
class Parsed:
    """A child's template.

    :ivar number: unique for each text.
    :ivar stored: bytes of its resources and outputs, without what its functions make.
    :ivar described: the declarations of its parameters, as `describe` returns them.
    """

    number: int
    stored: int
    template: Mapping[str, Json]
    described: Mapping[str, Json]


@dataclass(frozen=True)
class Cost:
    """The resources of a stack and of those nested in it, and the bytes that are stored of them."""

    resources: int
    stored: int


@dataclass
class TemplateTree:
    """The check of all stacks below one stack.

    Equal children are compiled once, and equal templates are read once.

    :ivar files: of the stack.
    :ivar compile: compiles and checks one child, without what is below it.
    :ivar unseal: opens the token of a secret.
    :ivar budget: of the request.
    :ivar entering: called with the name of each resource whose child is checked; a context for the check.
    :ivar count: resources found so far.
    """

    registry: ResourceRegistry
    limits: Limits
    files: Mapping[str, str]
    compile: Compile
    unseal: Callable[[str], Json]
    budget: Budget = field(default_factory=Budget)
    count: int = 0
    entering: Callable[[str], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    _parsed: dict[str, Parsed] = field(default_factory=dict)
    _checked: dict[str, Cost] = field(default_factory=dict)

    def check(
        self, plan: CompiledTemplate, environment: Environment, depth: int = 0, copies: int = 1
    ) -> Cost:
        """Check the stacks below a stack.

        :param copies: number of equal stacks.
        :returns: the cost of one of them; bytes of the stack itself are not included.
        :raises TemplateError: with the path from this stack down.
        """
        self._count(len(plan.resources) * copies)
        resources, stored = len(plan.resources), 0
        nested = {name: self._nested(definition) for name, definition in plan.resources.items()}
        uses = attributes_used(plan) if any(nested.values()) else {}
        for definition in plan.resources.values():
            plugin = nested[definition.name]
            if plugin is None:
                continue
            try:
                place = Place(environment, depth + 1, copies)
                with self.entering(definition.name):
                    cost = self._check_child(definition, plugin, uses.get(definition.name, {}), place)
            except TemplateError as error:
                raise type(error)(error.message, ("resources", definition.name, *error.path)) from error
            resources, stored = resources + cost.resources, stored + cost.stored
        return Cost(resources, stored)

    def _count(self, more: int) -> None:
        self.count += more
        if self.limits.resources and self.count > self.limits.resources:
            raise LimitExceeded(
                f"the stack and those inside of it have more than {self.limits.resources} resources",
                ["resources"],
            )

    def _nested(self, definition: ResourceDefinition) -> NestedType | None:
        if definition.external_id is not None:
            return None
        try:
            plugin = self.registry.get(definition.type)
        except UnknownType:
            return None
        return plugin if isinstance(plugin, NestedType) else None

    def _check_child(
        self, definition: ResourceDefinition, plugin: NestedType, uses: Mapping[str, None], place: "Place"
    ) -> Cost:
        """Check one child and all below it.

        :param uses: attributes of the child that its parent's template uses.
        """
        if self.limits.depth and place.depth > self.limits.depth:
            raise LimitExceeded(f"stacks may be nested {self.limits.depth} levels deep")
        goal = self._goal(definition, plugin)
        if goal is None:
            return Cost(0, 0)
        parsed, given = self._read(goal), goal.parameters
        if is_template_name(definition.type):
            check_attributes(definition.name, parsed.template, uses)
        below = nested_environment(place.environment, definition.name, definition.declared_type, self.budget)
        secret: frozenset[str] = frozenset()
        if not goal.generated:
            given, secret = self._opened(given)
        if any(is_deferred(value) for value in given.values()):
            check_names(parsed.described, given, below)
            given = {name: value for name, value in given.items() if not is_deferred(value)}
            if missing(parsed.described, given, below):
                return Cost(0, 0)
        branch = Branch(parsed.template, given, below, static_facade(definition), secret, place.depth)
        copies = place.copies * goal.copies
        cost = self._check_once(parsed, branch, copies)
        return Cost(cost.resources * goal.copies, cost.stored * goal.copies)

    def _check_once(self, parsed: Parsed, branch: Branch, copies: int) -> Cost:
        """Check one child, or return the cost of an equal one."""
        entries = branch.environment.registry.get("resources")
        key = json.dumps(
            [
                parsed.number,
                branch.parameters,
                sorted(branch.secret),
                entries,
                branch.facade,
                branch.depth,
            ],
            sort_keys=True,
        )
        self.budget.step(1 + len(key) // _WRITTEN)
        if (found := self._checked.get(key)) is not None:
            self._count(found.resources * copies)
            self.budget.store(found.stored * copies)
            return found
        before = self.budget.stored
        child = self.compile(branch)
        made = self.budget.stored - before
        own = parsed.stored + made
        self.budget.store(own * copies - made)
        below = self.check(child, branch.environment, branch.depth, copies)
        found = self._checked[key] = Cost(below.resources, own + below.stored)
        return found

    def _read(self, goal: ChildGoal) -> Parsed:
        """Read the child's template, or return an equal one that was read."""
        text = goal.template if isinstance(goal.template, str) else json.dumps(goal.template, sort_keys=True)
        if text not in self._parsed:
            most = 0 if goal.generated else self.limits.template_bytes
            template = load_template(goal.template, max_bytes=most, budget=self.budget)
            described, before = describe(template)["Parameters"], self.budget.stored
            self.budget.take_stored([template.get("resources"), template.get("outputs")])
            stored = self.budget.stored - before
            self._parsed[text] = Parsed(len(self._parsed), stored, template, described)
        return self._parsed[text]

    def _opened(self, given: Mapping[str, Json]) -> tuple[dict[str, Json], frozenset[str]]:
        """Open the parameters that depend on secrets only; return all parameters, and the names of those."""
        secret = {name for name, value in given.items() if is_deferred(value) and not references(value)}
        lookup = StoredLookup(self.unseal)
        opened = {
            n: evaluate(value, lookup, self.budget) if n in secret else value for n, value in given.items()
        }
        return opened, frozenset(secret)

    def _goal(self, definition: ResourceDefinition, plugin: NestedType) -> ChildGoal | None:
        """Return what is known of the child's goal; values that come from other resources are residuals."""
        given = definition.properties
        if is_template_name(definition.type):
            return static_goal(definition, plugin, given, self.files)
        given = validate_properties(plugin.properties_schema, given)
        if definition.requested_attributes and not self._charge_members(definition, plugin, given):
            return None
        goal = static_goal(definition, plugin, given, self.files)
        if goal is None or not goal.generated:
            return goal
        assert isinstance(goal.template, Mapping), "a generated template is a map"
        for body in goal.template["resources"].values():
            self.budget.take_value(body)  # Members may share their properties, which are copied now.
        return parameterize(goal, None)

    def _charge_members(
        self, definition: ResourceDefinition, plugin: NestedType, given: Mapping[str, Json]
    ) -> bool:
        """Charge the attributes that are requested of the members of a group, before each gets its output.

        :returns: False: the members are not known.
        """
        goal = static_goal(replace(definition, requested_attributes=()), plugin, given, self.files)
        if goal is None or not isinstance(goal.template, Mapping):
            return goal is not None
        self.budget.take(
            len(goal.template["resources"]) * goal.copies * len(definition.requested_attributes) * _OUTPUT
        )
        return True


def static_facade(definition: ResourceDefinition) -> dict[str, Json]:
    """Return the parts of the resource's definition that its child's template may read before a step runs."""
    return {"metadata": {}, "deletion_policy": definition.deletion_policy, "update_policy": {}}


def static_goal(
    definition: ResourceDefinition, plugin: NestedType, given: Mapping[str, Json], files: Mapping[str, str]
) -> ChildGoal | None:
    """Return the goal of a child; None: not enough is known.

    :param given: the resource's properties, as far as they are known.
    :param files: of the stack around it.
    :raises TemplateError: its template is not among them.
    """
    if not is_template_name(definition.type):
        return plugin.static_goal(given, definition)
    if definition.type not in files:
        raise TemplateError(
            f"the template {definition.type} is not among the files of the request", ("type",)
        )
    return ChildGoal(files[definition.type], {n: value for n, value in given.items() if value is not None})


PATHS_SINCE = "2014-10-16"
"""Version from which get_attr passes its path to the resource; before, the path led into the value."""
_PARTS = ("properties", "metadata", "update_policy", "external_id")


def with_requested_attributes(plan: CompiledTemplate, groups: Mapping[str, NestedType]) -> CompiledTemplate:
    """Return the template with the requested attributes of each group, and with references that name them.

    ``[group, address, 0]`` requests ``[address, 0]`` of each member, not the first item of the list of
    addresses.  So it becomes a reference to the group's attribute "address, 0".

    :param groups: types of the resources whose members have attributes, by name.
    :raises TemplateError: a requested attribute is not known before a step; with the path in the template.
    """
    rewriter = _Rewriter(groups, takes_paths=plan.version >= PATHS_SINCE)
    found = {name: rewriter.resource(definition) for name, definition in plan.resources.items()}
    outputs = {}
    for name, output in plan.outputs.items():
        value = rewriter.value(output.value, ("outputs", name, "value"))
        outputs[name] = replace(output, value=value, references=references(value))
    for name, requested in rewriter.requested.items():
        parts = tuple(requested[key] for key in sorted(requested))
        found[name] = replace(found[name], requested_attributes=parts)
    return replace(plan, resources=found, outputs=outputs)


class _Rewriter:
    """Collects the requested attributes of one template, and rewrites the references to them."""

    def __init__(self, groups: Mapping[str, NestedType], *, takes_paths: bool) -> None:
        self._groups = groups
        self._takes_paths = takes_paths
        self.requested: dict[str, dict[str, tuple[str | int, ...]]] = {name: {} for name in groups}

    def resource(self, definition: ResourceDefinition) -> ResourceDefinition:
        parts = {
            key: self.value(getattr(definition, key), ("resources", definition.name, key)) for key in _PARTS
        }
        return replace(definition, references=references(list(parts.values())), **parts)

    def value(self, tree: Json, path: tuple[str | int, ...]) -> Json:
        if is_node(tree):
            if tree[FN] == "literal":
                return {**tree, ARGS: [self._members(tree[ARGS][0], path)]}
            args = [self.value(arg, path) for arg in tree[ARGS]]
            if tree[FN] == "get_attr" and args[0] in self._groups and args[1]:
                return self._requested(args, path)
            return {**tree, ARGS: args}
        if isinstance(tree, dict):
            return self._members(tree, path)
        if isinstance(tree, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(tree)]
        return tree

    def _members(self, tree: Mapping[str, Json], path: tuple[str | int, ...]) -> dict[str, Json]:
        return {key: self.value(item, (*path, key)) for key, item in tree.items()}

    def _requested(self, args: list[Json], path: tuple[str | int, ...]) -> Json:
        name, attribute, *steps = args
        inside = steps if self._takes_paths else []
        try:
            requested = self._groups[name].member_attribute(attribute, inside)
        except LookupError as error:
            text = f"The Referenced Attribute ({name} {attribute}) is incorrect: {error}"
            if path[0] == "outputs":
                return failing(text)  # Heat makes the stack; only who reads the output gets the error.
            raise InvalidReference(text, path) from error
        if requested is None:
            return node("get_attr", *args)
        if not all(isinstance(part, str | int) for part in inside):
            raise TemplateError(
                f"what is asked of the members of {name} must be known before any resource exists", path
            )
        key = output_name(requested)
        self.requested[name][key] = tuple(requested)
        return node("get_attr", name, key, *([] if self._takes_paths else steps))
