"""Checking the stacks inside of a stack before anything of it is made.

What a nested resource's properties say is compiled as the child will be, as far as it is known by then; where
a value comes from another resource only names and types can be judged.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..resources.catalogue import Catalogue
from ..resources.children import ChildGoal
from ..resources.errors import UnknownType
from ..resources.lifting import lifted
from ..resources.nesting import NestedType
from ..resources.properties import validate_properties
from ..template.compile import Limits, describe
from ..template.environment import Environment, is_template_name, nested_environment
from ..template.errors import (
    InvalidReference,
    LimitExceeded,
    ParameterMissing,
    TemplateError,
    UnknownParameter,
)
from ..template.load import load_template
from ..template.model import CompiledTemplate, Reference, ResourceDefinition
from ..template.residual import evaluate, is_deferred, references
from .stored import StoredLookup

Json = typing.Any
COMMON = frozenset({"outputs", "show", "stack_name"})
"""Attributes that every nested stack has beside its outputs."""


@dataclass(frozen=True)
class Branch:
    """A child to be compiled.

    :ivar environment: the child's.
    :ivar secret: names of parameters whose values hold secrets.
    """

    template: Mapping[str, Json]
    parameters: Mapping[str, Json]
    environment: Environment
    facade: Mapping[str, Json]
    secret: frozenset[str]


@dataclass(frozen=True)
class Place:
    """Where in the tree a child stands.

    :ivar environment: of the stack around it.
    :ivar copies: how many stacks like that one there will be.
    """

    environment: Environment
    depth: int
    copies: int


Compile = Callable[[Branch], CompiledTemplate]


@dataclass
class Tree:
    """One check of everything below one stack.

    :ivar files: of the stack.
    :ivar compile: compiles and checks one child, without what is below it.
    :ivar unseal: opens the token of a secret.
    :ivar count: resources found so far.
    """

    catalogue: Catalogue
    limits: Limits
    files: Mapping[str, str]
    compile: Compile
    unseal: Callable[[str], Json]
    count: int = 0

    def check(
        self, plan: CompiledTemplate, environment: Environment, depth: int = 0, copies: int = 1
    ) -> None:
        """Check what is below a stack.

        :param copies: how many stacks like this one there will be.
        :raises TemplateError: with the path from this stack down.
        """
        self.count += len(plan.resources) * copies
        if self.limits.resources and self.count > self.limits.resources:
            raise LimitExceeded(
                f"the stack and those inside of it have more than {self.limits.resources} resources",
                ["resources"],
            )
        for definition in plan.resources.values():
            plugin = self._nested(definition)
            if plugin is None:
                continue
            try:
                self._check_child(definition, plugin, plan, Place(environment, depth + 1, copies))
            except TemplateError as error:
                raise type(error)(error.message, ("resources", definition.name, *error.path)) from error

    def _nested(self, definition: ResourceDefinition) -> NestedType | None:
        try:
            plugin = self.catalogue.get(definition.type)
        except UnknownType:
            return None
        return plugin if isinstance(plugin, NestedType) else None

    def _check_child(
        self,
        definition: ResourceDefinition,
        plugin: NestedType,
        plan: CompiledTemplate,
        place: "Place",
    ) -> None:
        if self.limits.depth and place.depth > self.limits.depth:
            raise LimitExceeded(f"stacks may be nested {self.limits.depth} levels deep")
        goal = self._goal(definition, plugin)
        if goal is None:
            return
        goal = lifted(goal, None)
        template = load_template(goal.template, max_bytes=0 if goal.generated else self.limits.template_bytes)
        given = goal.parameters
        if is_template_name(definition.type):
            _check_attributes(definition.name, template, plan)
        below = nested_environment(place.environment, definition.name)
        secret: frozenset[str] = frozenset()
        if not goal.generated:
            given, secret = self._opened(given)
        if any(is_deferred(value) for value in given.values()):
            _check_names(template, given, below)
            given = {name: value for name, value in given.items() if not is_deferred(value)}
            if _missing(template, given, below):
                return
        child = self.compile(Branch(template, given, below, static_facade(definition), secret))
        self.check(child, below, place.depth, place.copies * goal.copies)

    def _opened(self, given: Mapping[str, Json]) -> tuple[dict[str, Json], frozenset[str]]:
        """The parameters with those in clear that hang on secrets only, and the names of those."""
        secret = {name for name, value in given.items() if is_deferred(value) and not references(value)}
        lookup = StoredLookup(self.unseal)
        opened = {n: evaluate(value, lookup) if n in secret else value for n, value in given.items()}
        return opened, frozenset(secret)

    def _goal(self, definition: ResourceDefinition, plugin: NestedType) -> ChildGoal | None:
        """What is known of the child; values that come from other resources are residuals."""
        given = definition.properties
        if not is_template_name(definition.type):
            given = validate_properties(plugin.properties_schema, given)
        return static_goal(definition, plugin, given, self.files)


def static_facade(definition: ResourceDefinition) -> dict[str, Json]:
    """What of the resource's definition its child's template may ask for, as far as no step has to say it."""
    return {"metadata": {}, "deletion_policy": definition.deletion_policy, "update_policy": {}}


def static_goal(
    definition: ResourceDefinition, plugin: NestedType, given: Mapping[str, Json], files: Mapping[str, str]
) -> ChildGoal | None:
    """What a child will be; None: not enough is known.

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


def _check_names(template: Mapping[str, Json], given: Mapping[str, Json], environment: Environment) -> None:
    declared = describe(template)["Parameters"]
    if unknown := sorted(set(given) - set(declared)):
        raise UnknownParameter(f'The Parameter "{unknown[0]}" was not defined in template.', ("properties",))
    if missing := _missing(template, given, environment):
        raise ParameterMissing(f"The Parameter ({missing[0]}) was not provided.", ("properties",))


def _missing(template: Mapping[str, Json], given: Mapping[str, Json], environment: Environment) -> list[str]:
    declared = describe(template)["Parameters"]
    return [
        name
        for name, schema in declared.items()
        if "Default" not in schema and name not in given and name not in environment.parameter_defaults
    ]


def _check_attributes(name: str, template: Mapping[str, Json], plan: CompiledTemplate) -> None:
    """The attributes of a provider template's resource are its outputs."""
    outputs = template.get("outputs")
    known = {*COMMON, *(outputs if isinstance(outputs, Mapping) else ())}
    for reference in _references(plan):
        if reference.resource == name and reference.attribute and reference.attribute not in known:
            raise InvalidReference(f"The Referenced Attribute ({name} {reference.attribute}) is incorrect.")


def _references(plan: CompiledTemplate) -> list[Reference]:
    return [
        *(reference for definition in plan.resources.values() for reference in definition.references),
        *(reference for output in plan.outputs.values() for reference in output.references),
    ]
