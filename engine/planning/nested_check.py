"""Checks of the stacks nested in a stack, and the attributes that it requests of them; pure.

The checks run before any resource is created.  A nested stack is compiled from its resource's properties as
far as they are known.  Where a value comes from another resource only names and types can be checked.
"""

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...resources.contract.children import ChildGoal
from ...resources.contract.properties import validate_properties
from ...resources.nested.base import RESOURCE, NestedType
from ...resources.nested.parameterize import parameterize
from ...resources.registry import ResourceRegistry
from ...shapes import Json, JsonMap
from ...template.budget import Budget
from ...template.compile import Limits, describe
from ...template.environment import Environment, facade_of, nested_environment
from ...template.errors import (
    ErrorList,
    LimitExceeded,
    ParameterMissing,
    TemplateError,
    UnknownAttribute,
    UnknownParameter,
)
from ...template.formats import format_at, section_of
from ...template.language import (
    CompiledTemplate,
    Path,
    ResourceDefinition,
    is_template_name,
)
from ...template.residual import (
    Lookup,
    evaluate,
    is_deferred,
    is_failing,
    references,
)
from .facade import Facade, check_facade
from .requests import NOTHING_STORED, Branch, CheckedStack, NestedChild, ResourcePath, StoredData

COMMON = frozenset({"outputs", "show", "stack_name"})
"""Attributes that every nested stack has besides its outputs."""


def check_names(
    declared: JsonMap,
    values: JsonMap,
    environment: Environment,
    errors: ErrorList,
    *,
    is_draft: bool = False,
) -> None:
    """Check the parameters given to a nested stack against those that its template declares.

    :param is_draft: values may be missing.
    :param errors: gets an UnknownParameter or a ParameterMissing for each difference.
    """
    for name in sorted(set(values) - set(declared)):
        errors.add(UnknownParameter(f"The Parameter ({name}) was not defined in template.", ("properties",)))
    for name in () if is_draft else missing(declared, values, environment):
        errors.add(ParameterMissing(f"The Parameter ({name}) was not provided.", ("properties",)))


def missing(declared: JsonMap, values: JsonMap, environment: Environment) -> list[str]:
    """Return the names of the parameters that have no value."""
    defaults = environment.defaults
    return [
        name
        for name, schema in declared.items()
        if "Default" not in schema and name not in values and name not in defaults
    ]


def check_attributes(name: str, template: JsonMap, used: Iterable[str], errors: ErrorList) -> None:
    """Check the attributes of a provider template's resource: they are its outputs.

    :param errors: gets an UnknownAttribute for each attribute that is no output.
    """
    outputs = section_of(template, "outputs")
    names = {*COMMON, *(outputs if isinstance(outputs, Mapping) else ())}
    inside = template.get("resources")
    names.update(f"{RESOURCE}{key}" for key in (inside if isinstance(inside, Mapping) else ()))
    for attribute in used:
        if attribute.startswith(RESOURCE):  # A path may follow the resource's name.
            attribute = ".".join(attribute.partition(",")[0].split(".")[:2])
        if attribute and attribute not in names:
            errors.add(UnknownAttribute(f"The Referenced Attribute ({name} {attribute}) is incorrect."))


def attributes_used(plan: CompiledTemplate) -> dict[str, dict[str, None]]:
    """Return the attributes that the resources of a template use of each other.

    An output that uses one that does not exist is no reason to refuse the stack.
    """
    used: dict[str, dict[str, None]] = {}
    for user in plan.resources.values():
        for reference in user.references:
            used.setdefault(reference.resource, {})[reference.attribute or ""] = None
    return used


_OUTPUT = 400
"""Bytes that one attribute of one member of a group takes in its generated template."""
_WRITTEN = 500
"""Characters of JSON that one step of work writes."""


@dataclass(frozen=True)
class Place:
    """The place of a child in the tree.

    :ivar environment: the environment of the stack around the child.
    :ivar path: names of the resources down to the child.  Of equal stacks it is that of the first one.
    :ivar copies: number of equal stacks.
    """

    environment: Environment
    path: ResourcePath
    copies: int


Compile = Callable[[Branch, ErrorList], CompiledTemplate]


@dataclass(frozen=True)
class Parsed:
    """A child's template.

    :ivar number: unique for each text.
    :ivar stored: bytes of its resources and outputs, without the values that its functions make.
    :ivar described: its description, by `describe`.
    :ivar is_described: the description has no errors; those are found again where the template is compiled.
    """

    number: int
    stored: int
    template: JsonMap
    described: JsonMap
    is_described: bool


@dataclass
class TemplateTree:
    """The check of all stacks below one stack.

    Equal children are compiled once, and equal templates are read once.

    :ivar files: the files of the stack, by name.
    :ivar compile: compiles and checks one child, without the stacks below it.
    :ivar secrets: opens the tokens of secrets.
    :ivar budget: the budget of the request.
    :ivar load: loads a template, unless it is too long; `template.load.LoadedTemplates`.
    :ivar keeps: whether the plans of all stacks are returned.
    :ivar all_members: compiles all members of a group, not one for all, where the type can say which.
    :ivar is_draft: whether the goal is a draft, of which no stack is made now; see Goal.
    :ivar entering: called with the path of each resource whose child is checked; a context for the check.
    :ivar stored_data: the data that groups have stored.
    :ivar count: number of resources so far.
    """

    registry: ResourceRegistry
    limits: Limits
    files: Mapping[str, str]
    compile: Compile
    secrets: Lookup
    budget: Budget
    load: Callable[..., JsonMap]
    keeps: bool
    all_members: bool
    is_draft: bool
    entering: Callable[[Path], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    stored_data: StoredData = NOTHING_STORED
    count: int = field(default=0, init=False)
    _parsed: dict[str, Parsed] = field(default_factory=dict)
    _checked: dict[str, tuple[CheckedStack, ErrorList]] = field(default_factory=dict)

    def check(
        self,
        plan: CompiledTemplate,
        environment: Environment,
        errors: ErrorList,
        above: ResourcePath = (),
        copies: int = 1,
    ) -> CheckedStack:
        """Check the stacks below a stack.

        :param errors: gets the errors, with their paths from this stack down.
        :param above: names of the resources down to this stack.
        :param copies: number of equal stacks.
        :returns: one of the equal stacks; its own bytes are not included.
        """
        self._count(len(plan.resources) * copies)
        resources = len(plan.resources)
        stored = 0
        children: dict[str, NestedChild] = {}
        nested = {name: self._nested(definition) for name, definition in plan.resources.items()}
        uses = attributes_used(plan) if any(nested.values()) else {}
        for definition in plan.resources.values():
            plugin = nested[definition.name]
            if plugin is None:
                continue
            path = format_at(plan.version).native_path(("resources", definition.name))
            place = Place(environment, (*above, definition.name), copies)
            uncertain = definition.name in plan.uncertain
            collected = ErrorList() if uncertain else errors
            child = None
            try:
                with collected.collect(), collected.below(path) as inside, self.entering(path):
                    used = uses.get(definition.name, {})
                    child = self._check_child(definition, plugin, used, place, inside)
            except LimitExceeded:
                if not uncertain:
                    raise
            if child is None or not collected.is_empty and uncertain:
                continue
            resources += child.stack.resources * child.copies
            stored += child.stack.stored * child.copies
            if self.keeps:
                children[definition.name] = child
        return CheckedStack(plan if self.keeps else None, resources, stored, children)

    def _count(self, more: int) -> None:
        self.count += more
        self._check_count(self.count)

    def _check_count(self, count: int) -> None:
        if self.limits.resources and count > self.limits.resources:
            raise LimitExceeded(
                f"the stack and those inside of it have more than {self.limits.resources} resources "
                "([stacks] max_resources)",
                ["resources"],
            )

    def _nested(self, definition: ResourceDefinition) -> NestedType | None:
        plugin = self.registry.get(definition.type)
        return plugin if isinstance(plugin, NestedType) else None

    def _check_child(
        self,
        definition: ResourceDefinition,
        plugin: NestedType,
        uses: Mapping[str, None],
        place: "Place",
        errors: ErrorList,
    ) -> NestedChild | None:
        """Check one child and all below it.

        :param uses: attributes of the child that its parent's template uses.
        :returns: the child; None: nothing is known of it yet.
        """
        depth = len(place.path)
        if depth > self.limits.deepest:
            deepest = self.limits.deepest
            raise LimitExceeded(f"stacks may be nested {deepest} levels deep ([stacks] max_depth)")
        goal = self._goal(definition, plugin, place.path)
        if goal is None:
            return None
        parsed = self._read(goal)
        parameters = goal.parameters
        if is_template_name(definition.type):
            check_attributes(definition.name, parsed.template, uses, errors)
        below = nested_environment(place.environment, definition.name, definition.declared_type, self.budget)
        secret: frozenset[str] = frozenset()
        if not goal.generated:
            parameters, secret = self._opened(parameters)
        declared = parsed.described["Parameters"]
        replaced = self._facade(definition, place.environment, below)
        if replaced is not None and parsed.is_described:
            outputs = section_of(parsed.template, "outputs")
            check_facade(definition.declared_type, replaced, declared, outputs, below)
        if unknown := {name for name, value in parameters.items() if is_deferred(value)}:
            check_names(declared, parameters, below, errors, is_draft=self.is_draft)
            parameters = {
                name: value for name, value in parameters.items() if name not in unknown and name in declared
            }
        if goal.generated or unknown or self.is_draft:
            unknown.update(missing(declared, parameters, below))
        facade = static_facade(definition)
        branch = Branch(parsed.template, parameters, below, facade, secret, depth, frozenset(unknown))
        # The parameters of a template that a type has made mean nothing to the user.
        described = {**parsed.described, "Parameters": {}} if goal.generated else parsed.described
        place = replace(place, copies=place.copies * goal.copies)
        stack = self._check_once(parsed, branch, place, errors)
        return NestedChild(definition, described, branch, stack, goal.copies)

    def _facade(
        self, definition: ResourceDefinition, environment: Environment, below: Environment
    ) -> Facade | None:
        """Return the type or template whose place a child's template takes; None: it takes no place.

        :param environment: the environment of the stack around the child.
        :param below: the environment of the child.
        """
        declared = definition.declared_type
        if not is_template_name(definition.type) or is_template_name(declared):
            return None
        name = facade_of(environment, [definition.name], declared, self.budget)
        if name in self.files and is_template_name(name):
            general = self._read(ChildGoal(self.files[name], {}))
            outputs = section_of(general.template, "outputs")
            return Facade.of_template(general.described["Parameters"], outputs, below)
        return Facade.of_type(self.registry.get(name)) if name in self.registry else None

    def _check_once(self, parsed: Parsed, branch: Branch, place: Place, errors: ErrorList) -> CheckedStack:
        """Check one child, or return an equal one."""
        copies = place.copies
        entries = branch.environment.registry.get("resources")
        key = json.dumps(
            [
                parsed.number,
                branch.parameters,
                sorted(branch.secret),
                sorted(branch.unknown),
                entries,
                branch.facade,
                branch.depth,
                self.stored_data.below(place.path),
            ],
            sort_keys=True,
        )
        self.budget.step(1 + len(key) // _WRITTEN)
        if key in self._checked:
            stack, stack_errors = self._checked[key]
            errors.add_all(stack_errors)
            self._count(stack.resources * copies)
            self.budget.store(stack.stored * copies)
            return stack
        stored = self.budget.stored
        with errors.below() as inside:
            child = self.compile(branch, inside)
            computed = self.budget.stored - stored
            total = parsed.stored + computed
            self.budget.store(total * copies - computed)
            below = self.check(child, branch.environment, inside, place.path, copies)
        stack = replace(below, stored=total + below.stored)
        self._checked[key] = stack, inside
        return stack

    def _read(self, goal: ChildGoal) -> Parsed:
        """Read the child's template, or return an equal one that was read."""
        text = goal.template if isinstance(goal.template, str) else json.dumps(goal.template, sort_keys=True)
        if text not in self._parsed:
            template = self.load(goal.template, generated=goal.generated)
            errors = ErrorList()
            described = describe(template, errors)
            before = self.budget.stored
            self.budget.take_stored([section_of(template, "resources"), section_of(template, "outputs")])
            stored = self.budget.stored - before
            number = len(self._parsed)
            self._parsed[text] = Parsed(number, stored, template, described, errors.is_empty)
        return self._parsed[text]

    def _opened(self, parameters: JsonMap) -> tuple[dict[str, Json], frozenset[str]]:
        """Open the parameters that depend on secrets only; return all parameters, and the names of those."""
        secret = {
            name
            for name, value in parameters.items()
            if is_deferred(value) and not references(value) and not is_failing(value)
        }
        opened = {
            n: evaluate(value, self.secrets, self.budget) if n in secret else value
            for n, value in parameters.items()
        }
        return opened, frozenset(secret)

    def _goal(
        self, definition: ResourceDefinition, plugin: NestedType, path: ResourcePath
    ) -> ChildGoal | None:
        """Return the child's goal; values that come from other resources are residuals.

        None: the goal is not known yet.

        :param path: names of the resources down to this one.
        """
        properties = definition.properties
        if is_template_name(definition.type):
            return static_goal(definition, plugin, properties, self.files)
        properties = validate_properties(plugin.properties_schema, properties)
        properties = plugin.with_past(properties, lambda: self.stored_data.of(path))
        if definition.requested_attributes and not self._charge_members(definition, plugin, properties):
            return None
        goal = static_goal(definition, plugin, properties, self.files)
        if goal is not None and self.all_members and goal.copies > 1:
            self._check_count(self.count + goal.copies)  # Before so many are made.
            goal = plugin.expanded(goal, properties, definition)
        if goal is None or not goal.generated:
            return goal
        assert isinstance(goal.template, Mapping), "a generated template is a map"
        for body in goal.template["resources"].values():
            self.budget.take_value(body)  # Members may share their properties, which are copied now.
        return parameterize(goal, None)

    def _charge_members(self, definition: ResourceDefinition, plugin: NestedType, values: JsonMap) -> bool:
        """Charge the attributes that are requested of the members of a group, before each gets its output.

        :returns: whether the members are known.
        """
        goal = static_goal(replace(definition, requested_attributes=()), plugin, values, self.files)
        if goal is None or not goal.generated:
            return goal is not None  # A single nested stack is not made of members.
        assert isinstance(goal.template, Mapping), "a generated template is a map"
        self.budget.take(
            len(goal.template["resources"]) * goal.copies * len(definition.requested_attributes) * _OUTPUT
        )
        return True


def static_facade(definition: ResourceDefinition) -> dict[str, Json]:
    """Return the parts of the resource's definition that its child's template may read before a step runs."""
    return {"metadata": {}, "deletion_policy": definition.deletion_policy, "update_policy": {}}


def static_goal(
    definition: ResourceDefinition, plugin: NestedType, values: JsonMap, files: Mapping[str, str]
) -> ChildGoal | None:
    """Return the goal of a child; None: not enough is known.

    :param values: the resource's properties, as far as they are known.
    :param files: the files of the stack around it.
    :raises TemplateError: the child's template is not among the files.
    """
    if not is_template_name(definition.type):
        return plugin.static_goal(values, definition)
    if definition.template not in files:
        raise TemplateError(
            f"the template {definition.template} is not among the files of the request", ("type",)
        )
    parameters = {name: value for name, value in values.items() if value is not None}
    return ChildGoal(files[definition.template], parameters)
