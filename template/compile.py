"""Compilation: a template, an environment and parameters become definitions with everything folded.

First it checks the version that the template names, and the sections and keys that this version has.
"""

import graphlib
import itertools
import typing
import urllib.parse
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from .budget import Budget, BudgetLimits, located
from .conditions import Conditions
from .environment import Environment, map_type, settings_for
from .errors import (
    SUGGESTION,
    CircularDependency,
    InvalidProperty,
    InvalidReference,
    InvalidTemplateSection,
    LimitExceeded,
    TemplateError,
    UnknownResource,
    Unresolvable,
    ValueUnknown,
)
from .fold import FoldScope, fold
from .formats import FORMATS, RESOURCE_KEYS, errors_in, find_version, normal_form
from .language import (
    AWS_DATE,
    AWS_KEY,
    HOT_KEY,
    CompiledTemplate,
    Json,
    OutputDefinition,
    Path,
    Residual,
    ResourceDefinition,
    Version,
)
from .parameters import GivenValues, parse_declarations, resolve_parameters, schema
from .residual import failing, holds_secret, is_deferred, is_failing, quote, references
from .suggestions import closest

_SECTIONS = (HOT_KEY, "description", "parameter_groups", "parameters", "resources", "outputs")
_LATER = ("conditions", "condition", "external_id")
"""Sections and keys of 2016-10-14."""


def _unknown(key: Json, allowed: Iterable[str], what: str, version: Version) -> str:
    if version.is_cfn and str(key).lower() in _LATER:
        return f'"{str(key).title()}" needs {AWS_KEY} {AWS_DATE}; this is {version.key} {version.date}'
    if key in _LATER:
        return f'"{key}" needs version 2016-10-14 or later'
    return f'"{key}" is not {what}{closest(str(key), allowed)}'


def check_sections(template: Mapping[str, Json], version: Version) -> None:
    """Check the names of the sections.

    :raises TemplateError: the template has a section that its version does not know.
    """
    allowed = [*_SECTIONS, "conditions"]
    if version.is_cfn:
        allowed = [version.key, *FORMATS[version.key].sections.values()]
    if not version.has_conditions:
        allowed.pop(allowed.index("Conditions" if version.is_cfn else "conditions"))
    for key in template:
        if key not in allowed:
            text = _unknown(key, allowed, "a section of a template", version)
            raise InvalidTemplateSection(f"{key}. {text}")


def section(template: Mapping[str, Json], name: str) -> dict[str, Json]:
    """Return a section that is a map; an empty map where the template lacks it.

    :raises TemplateError: the section is no map.
    """
    value = template.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TemplateError(f"must be a map, not {type(value).__name__}", [name])
    return {str(key): body for key, body in value.items()}


def checked_keys(
    path: Path, body: Json, allowed: Iterable[str], what: str, version: Version
) -> Mapping[str, Json]:
    """Return the body of something that has only certain keys.

    :raises TemplateError: the body has other keys, or is no map.
    """
    if not isinstance(body, Mapping):
        raise TemplateError(f"must be a map, not {type(body).__name__}", path)
    names = list(allowed)
    for key in body:
        if key not in names:
            raise TemplateError(_unknown(key, names, f"a key of {what}", version), path)
    return body


def parameter_groups(groups: Json, parameters: Iterable[str]) -> tuple[Mapping[str, Json], ...]:
    """Return the groups, each parameter in one at most.

    :raises TemplateError: the section is malformed, or a parameter is in two groups.
    :raises InvalidReference: a group names a parameter that the template does not have.
    """
    if not isinstance(groups, list):
        raise TemplateError("must be a list of groups", ["parameter_groups"])
    known, grouped = set(parameters), set[str]()
    for index, group in enumerate(groups):
        path: Path = ("parameter_groups", index)
        if not isinstance(group, Mapping):
            raise TemplateError(f"must be a map, not {type(group).__name__}", path)
        names = group.get("parameters")
        if not isinstance(names, list):
            raise TemplateError("must be a list of parameters' names", (*path, "parameters"))
        for name in names:
            _check_grouped(name, known, grouped, (*path, "parameters"))
            grouped.add(name)
    return tuple(groups)


def _check_grouped(name: Json, known: set[str], grouped: Container[str], path: Path) -> None:
    if not isinstance(name, str) or name not in known:
        raise InvalidReference(f'the template has no parameter "{name}"{closest(str(name), known)}', path)
    if name in grouped:
        raise TemplateError(f'the parameter "{name}" is in a group already', path)


_OUTPUT_KEYS = ("description", "value")
_POLICIES = ("Delete", "Retain", "Snapshot")

_EDGE = 5
"""Steps of work that one edge of the graph takes until it is stored."""
MAX_NAME = 255
"""Characters of a resource's name, as many as Heat stores."""


@dataclass(frozen=True)
class Limits:
    """Limits above which a template is refused; 0 means no limit.

    :ivar template_bytes: of the template's text.
    :ivar resources: per stack.
    :ivar depth: of nested stacks.
    :ivar budget: of one request.
    """

    template_bytes: int = 524_288
    resources: int = 10_000
    depth: int = 5
    budget: BudgetLimits = BudgetLimits()


@dataclass(frozen=True)
class Region:
    """The cloud as templates in CloudFormation's format see it.

    :ivar name: the value of ``AWS::Region``.
    :ivar zones: the value of ``Fn::GetAZs``.
    """

    name: str = "ap-southeast-1"
    zones: tuple[str, ...] = ("nova",)


@dataclass(frozen=True)
class Identity:
    """The stack that a template is compiled for: the values of the pseudo parameters."""

    stack_name: str
    stack_id: str
    project_id: str

    @property
    def arn(self) -> str:
        """The stack's name in the world of AWS, as in Heat."""
        project = urllib.parse.quote(self.project_id, "")
        return f"arn:openstack:heat::{project}:stacks/{self.stack_name}/{self.stack_id}"

    def pseudo(self, version: Version, region: Region) -> dict[str, str]:
        """Return the pseudo parameters of a version by name."""
        if version.is_cfn:
            return {
                "AWS::StackName": self.stack_name,
                "AWS::StackId": self.arn,
                "AWS::Region": region.name,
            }
        return {
            "OS::stack_name": self.stack_name,
            "OS::stack_id": self.stack_id,
            "OS::project_id": self.project_id,
        }


@dataclass(frozen=True)
class Source:
    """The template of a stack, with everything that its compilation needs.

    :ivar parameters: of the request; they win over the environment's.
    :ivar path: names of the resources from the root stack down to this one; empty for a root stack.
    :ivar secret: names of parameters that are hidden whatever the template declares.
    :ivar budget: of the request; None: one of its own.
    :ivar unknown: names of parameters whose values are not known yet.  What depends on them is not checked.
    :ivar region: of the cloud.
    """

    template: Mapping[str, Json]
    environment: Environment = field(default_factory=Environment)
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    facade: Mapping[str, Json] | None = None
    path: tuple[str, ...] = ()
    secret: frozenset[str] = frozenset()
    budget: Budget | None = None
    unknown: frozenset[str] = frozenset()
    region: Region = Region()

    @property
    def values(self) -> GivenValues:
        """Return the values that the parameters are given."""
        is_nested = self.facade is not None
        return GivenValues(
            self.environment, self.parameters, self.secret, self.unknown, from_resource=is_nested
        )


def compile_template(
    source: Source, *, identity: Identity, limits: Limits, seal: Callable[[Json], str]
) -> CompiledTemplate:
    """Compile a template.

    :param seal: makes the token of a secret.
    :raises TemplateError: the template, the environment or the parameters cannot be used.
    """
    version = find_version(source.template)
    check_sections(source.template, version)
    with errors_in(FORMATS[version.key]):
        return _compiled(source, version, identity, limits, seal)


def _compiled(
    source: Source, version: Version, identity: Identity, limits: Limits, seal: Callable[[Json], str]
) -> CompiledTemplate:
    template = normal_form(source.template) if version.is_cfn else source.template
    pseudo = identity.pseudo(version, source.region)
    budget = Budget(limits.budget) if source.budget is None else source.budget
    parameters = resolve_parameters(
        template.get("parameters"),
        source.values,
        version=version,
        seal=seal,
    )
    mappings = section(template, "mappings")
    conditions = Conditions(section(template, "conditions"), version, parameters, pseudo, budget, mappings)
    for name in conditions.definitions:  # Also those that nobody uses.
        _holds(name, conditions, ("conditions",))
    bodies = section(template, "resources")
    if limits.resources and len(bodies) > limits.resources:
        raise LimitExceeded(
            f"{len(bodies)} resources are above the limit of {limits.resources}", ["resources"]
        )
    enabled = {name: _enabled(name, body, version, conditions) for name, body in bodies.items()}
    uncertain = frozenset(name for name, on in enabled.items() if on is None)
    scope = FoldScope(
        version=version,
        parameters=parameters,
        pseudo=pseudo,
        files=source.files,
        resources=frozenset(enabled),
        disabled=frozenset(name for name, on in enabled.items() if on is False),
        condition=conditions.evaluate,
        facade=source.facade,
        functions=version.functions,
        budget=budget,
        mappings=mappings,
        zones=source.region.zones,
    )
    definitions = {}
    for name in (name for name, on in enabled.items() if on is not False):
        try:
            definitions[name] = _resource(name, bodies[name], scope, source)
        except LimitExceeded as error:
            raise located(error, "resources", name) from error
        except TemplateError:
            if name not in uncertain:
                raise
    groups = template.get("parameter_groups")
    return CompiledTemplate(
        version=version.date,
        description=str(template.get("description") or ""),
        parameters=parameters,
        resources=_in_order(definitions),
        outputs=_outputs(section(template, "outputs"), scope, conditions),
        parameter_groups=() if groups is None else parameter_groups(groups, parameters),
        uncertain=uncertain,
        pseudo=pseudo,
    )


def _holds(condition: Json, conditions: Conditions, path: Path) -> bool | None:
    """Return whether a condition is true, as none at all is; None: that is not known yet."""
    try:
        return condition is None or conditions.evaluate(condition, path)
    except ValueUnknown:
        return None


def _enabled(name: str, body: Json, version: Version, conditions: Conditions) -> bool | None:
    """Return whether the template has a resource; None: that is not known yet."""
    path: Path = ("resources", name)
    if not name or "/" in name or len(name) > MAX_NAME:
        raise TemplateError(
            f"a resource's name must have 1 to {MAX_NAME} characters, and no slash among them", path
        )
    allowed = [*RESOURCE_KEYS, *(["condition", "external_id"] if version.has_conditions else [])]
    body = checked_keys(path, body, allowed, "a resource", version)
    declared = body.get("type")
    if not isinstance(declared, str) or not declared:
        raise TemplateError(f"must be the name of a resource type, not {declared!r}", (*path, "type"))
    if body.get("condition") is None:
        return True
    return _holds(body["condition"], conditions, (*path, "condition"))


def _resource(name: str, body: Mapping[str, Json], scope: FoldScope, source: Source) -> ResourceDefinition:
    path: Path = ("resources", name)
    parts = {key: _part(key, body, scope, path) for key in ("properties", "metadata", "update_policy")}
    here = (*source.path, name)
    settings = settings_for(source.environment, here, scope.budget)
    parts["properties"] = {**parts["properties"], **{n: quote(v) for n, v in settings.restored.items()}}
    external, depends, policy = None, tuple[str, ...](), "Delete"
    if body.get("external_id") is not None:
        external = _external_id(body["external_id"], scope, (*path, "external_id"))
    uses = references([*parts.values(), external])
    if body.get("depends_on") is not None:
        depends = _depends_on(body["depends_on"], scope, (*path, "depends_on"))
    if body.get("deletion_policy") is not None:
        policy = _deletion_policy(body["deletion_policy"], scope, (*path, "deletion_policy"))
    scope.budget.step((len(uses) + len(depends)) * _EDGE)
    return ResourceDefinition(
        name=name,
        type=map_type(source.environment, here, body["type"], scope.budget).name,
        declared_type=body["type"],
        properties=parts["properties"],
        metadata=parts["metadata"],
        depends_on=depends,
        references=uses,
        requires=tuple(sorted({*depends, *(use.resource for use in uses)})),
        deletion_policy=policy if external is None else "Retain",
        update_policy=parts["update_policy"],
        external_id=external,
        description=str(body.get("description") or ""),
        settings=settings,
    )


def _part(key: str, body: Mapping[str, Json], scope: FoldScope, path: Path) -> Json:
    try:
        value = fold(body.get(key), scope, (*path, key))
    except Unresolvable as error:
        if key != "properties":
            raise
        # As in Heat it is the property that has no value, whatever functions are around.
        names = itertools.takewhile(lambda part: part not in scope.functions, error.path)
        raise InvalidProperty(error.message, tuple(names)) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TemplateError(f"must be a map, not {type(value).__name__}", (*path, key))
    return value


def _external_id(value: Json, scope: FoldScope, path: Path) -> Residual:
    external = fold(value, scope, path)
    if holds_secret(external):
        raise TemplateError("must not hold the value of a hidden parameter: an id is stored and shown", path)
    if isinstance(external, str | None) or is_deferred(external):
        return external
    raise TemplateError(f"must be a string, not {external!r}", path)


def _depends_on(value: Json, scope: FoldScope, path: Path) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TemplateError("must be the name of a resource, or a list of names", path)
    for name in names:
        if name not in scope.resources:
            hint = f'The template has no resource "{name}"{closest(name, scope.resources)}'
            raise UnknownResource.at(name, path, hint)
    return tuple(sorted(set(names) - scope.disabled))


def _deletion_policy(value: Json, scope: FoldScope, path: Path) -> str:
    policy = fold(value, scope, path)
    if policy is None or is_failing(policy):
        return "Delete"
    spellings = {name: name for name in _POLICIES}
    if scope.version.has_conditions and not scope.version.is_cfn:
        spellings.update({name.lower(): name for name in _POLICIES})
    if not isinstance(policy, str) or policy not in spellings:
        raise TemplateError(f"must be one of: {', '.join(spellings)}; not {policy!r}", path)
    return spellings[policy]


def _outputs(
    bodies: Mapping[str, Json], scope: FoldScope, conditions: Conditions
) -> dict[str, OutputDefinition]:
    """Return the outputs; an output whose condition is false has the value null.

    As in Heat an unknown key has no effect.
    """
    allowed = [*_OUTPUT_KEYS, "condition"] if scope.version.has_conditions else list(_OUTPUT_KEYS)
    found: dict[str, OutputDefinition] = {}
    for name, raw in bodies.items():
        path: Path = ("outputs", name)
        is_usable = isinstance(raw, Mapping) and "value" in raw
        # A condition that an older version does not have would be worse than one that has no effect.
        is_usable = is_usable and (scope.version.has_conditions or "condition" not in raw)
        body = raw if is_usable else checked_keys(path, raw, allowed, "an output", scope.version)
        if "value" not in body:
            raise TemplateError("an output needs a value", path)
        disabled = _holds(body.get("condition"), conditions, (*path, "condition")) is False
        value = None if disabled else _output_value(body["value"], scope, (*path, "value"))
        found[name] = OutputDefinition(name, value, str(body.get("description") or ""), references(value))
    return found


def _output_value(value: Json, scope: FoldScope, path: Path) -> Residual:
    """Return the value of an output.

    As in Heat, one that names no parameter, file or resource is no reason to refuse the stack: only who reads
    the output gets the error.  But get_attr of a resource that does not exist is refused, in Heat too.
    """
    try:
        return fold(value, scope, path)
    except (Unresolvable, UnknownResource) as error:
        if error.path[-1] in ("get_attr", "Fn::GetAtt"):
            raise
        return failing(error.message.partition(SUGGESTION)[0])


def _in_order(definitions: Mapping[str, ResourceDefinition]) -> dict[str, ResourceDefinition]:
    sorter = graphlib.TopologicalSorter({name: item.requires for name, item in definitions.items()})
    try:
        return {name: definitions[name] for name in sorter.static_order() if name in definitions}
    except graphlib.CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise CircularDependency(
            f"resources wait for each other in a circle: {circle}", ["resources"]
        ) from error


def describe(template: Mapping[str, Json]) -> dict[str, typing.Any]:
    """Return the description of a template's parameters, as Heat's ``template validate`` shows it."""
    version = find_version(template)
    check_sections(template, version)
    with errors_in(FORMATS[version.key]):
        template = normal_form(template)
        declarations = parse_declarations(template.get("parameters"), version)
        groups = template.get("parameter_groups")
        return {
            "Description": str(template.get("description") or "No description"),
            "Parameters": {name: schema(declared) for name, declared in declarations.items()},
            "ParameterGroups": [] if groups is None else list(parameter_groups(groups, declarations)),
        }
