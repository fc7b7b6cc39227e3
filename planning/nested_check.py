"""Checks of the stacks nested in a stack, before any of its resources is created; pure.

A nested stack is compiled from its resource's properties as far as they are known.  Where a value comes from
another resource only names and types can be checked.
"""

import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..resources.context import ChildGoal
from ..resources.errors import UnknownType
from ..resources.nested.base import NestedType
from ..resources.nested.parameterize import parameterize
from ..resources.properties import validate_properties
from ..resources.registry import ResourceRegistry
from ..sealing.stored import StoredLookup
from ..template.budget import Budget
from ..template.compile import Limits, describe
from ..template.environment import Environment, nested_environment
from ..template.errors import (
    LimitExceeded,
    TemplateError,
)
from ..template.language import CompiledTemplate, ResourceDefinition, is_template_name
from ..template.load import load_template
from ..template.residual import evaluate, is_deferred, references
from .nested_names import attributes_used, check_attributes, check_names, missing

Json = typing.Any
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
    :ivar count: resources found so far.
    """

    registry: ResourceRegistry
    limits: Limits
    files: Mapping[str, str]
    compile: Compile
    unseal: Callable[[str], Json]
    budget: Budget = field(default_factory=Budget)
    count: int = 0
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
        below = nested_environment(place.environment, definition.name, self.budget)
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
