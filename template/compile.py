"""Compilation: a template, an environment and parameters become definitions with everything folded."""

import graphlib
import itertools
import urllib.parse
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..settings import Bytes, setting
from ..shapes import Json, JsonMap
from .budget import Budget, BudgetLimits, located
from .conditions import Conditions
from .environment import Environment, map_type, settings_for
from .errors import (
    MOST_ERRORS,
    SUGGESTION,
    CircularDependency,
    ErrorList,
    InvalidProperty,
    LimitExceeded,
    TemplateError,
    UnknownResource,
    Unresolvable,
    ValueUnknown,
    WordedByHeat,
    named_at_once,
)
from .fold import FoldScope, fold, fold_parts
from .formats import FORMATS, find_version, normal_form
from .language import (
    CompiledTemplate,
    OutputDefinition,
    Path,
    Residual,
    ResourceDefinition,
    Version,
    template_of,
    type_identity,
)
from .parameters import GivenValues, parse_declarations, resolve_parameters, schema
from .residual import failing, holds_secret, is_deferred, is_failing, quote, references
from .scalars import kind_of, written
from .sections import check_sections, checked_keys, parameter_groups, resource_body, section
from .suggestions import closest

_OUTPUT_KEYS = ("description", "value")
_POLICIES = ("Delete", "Retain", "Snapshot")

_EDGE = 5
"""Steps of work that one edge of the graph takes until it is stored."""


MOST_LEVELS = 50
"""Levels of nested stacks, also where nothing else limits them: whatever follows them counts to it."""


@dataclass(frozen=True)
class Limits:
    """Limits above which a template is refused.

    :ivar config_bytes: bytes of a software config, as JSON; 0: no limit.
    """

    template_bytes: Bytes = setting(
        "max_template",
        524_288,
        "Maximum size of a template in bytes; 0: no limit.",
        least=0,
    )
    resources: int = setting(
        "max_resources",
        10_000,
        "Maximum number of resources of a stack with all stacks nested in it; 0: no limit.",
        least=0,
    )
    depth: int = setting(
        "max_depth",
        30,
        "Maximum number of levels of nested stacks; TripleO has 7. 0, or more than 50: 50.",
        least=0,
    )
    budget: BudgetLimits = BudgetLimits()
    config_bytes: int = 0

    @property
    def deepest(self) -> int:
        """Return the levels of nested stacks that a tree may have."""
        return min(self.depth or MOST_LEVELS, MOST_LEVELS)


@dataclass(frozen=True)
class Region:
    """The cloud as templates in CloudFormation's format see it."""

    name: str = setting(
        "region",
        "ap-southeast-1",
        "Value of AWS::Region in templates in CloudFormation's format. Heat's is always the default, which "
        "public templates use as a key of their mappings.",
    )
    zones: Sequence[str] = setting(
        "availability_zones",
        ("nova",),
        "Names of Nova's availability zones in the order in which Fn::GetAZs lists them. Heat asks Nova at "
        "each use. A change takes effect at the next creation or update of a stack.",
    )


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

    :ivar parameters: the values of the request, which win over the environment's.
    :ivar path: names of the resources from the root stack down to this one; empty for a root stack.
    :ivar secret: names of parameters that are hidden even if the template does not declare them hidden.
    :ivar budget: the budget of the request; None: a new one.
    :ivar unknown: names of parameters whose values are not known yet.  Values that depend on them are not
        checked.
    :ivar is_draft: nobody makes the stack now; see GivenValues.
    :ivar region: the cloud's region.
    """

    template: JsonMap
    environment: Environment = field(default_factory=Environment)
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: JsonMap = field(default_factory=dict)
    facade: JsonMap | None = None
    path: tuple[str, ...] = ()
    secret: frozenset[str] = frozenset()
    budget: Budget | None = None
    unknown: frozenset[str] = frozenset()
    is_draft: bool = False
    region: Region = Region()

    @property
    def values(self) -> GivenValues:
        """Return the values that the parameters are given."""
        is_nested = self.facade is not None
        return GivenValues(
            self.environment,
            self.parameters,
            self.secret,
            self.unknown,
            from_resource=is_nested,
            is_draft=self.is_draft,
        )


def compile_template(
    source: Source,
    *,
    identity: Identity,
    limits: Limits,
    seal: Callable[[Json], str],
    errors: ErrorList | None = None,
) -> CompiledTemplate:
    """Compile a template.

    :param seal: makes the token of a secret.
    :param errors: gets the errors of single parts, and the other parts are compiled nevertheless; None: all
        errors are raised.
    :raises TemplateError: the template, the environment or the parameters cannot be used.
    """
    if errors is None:
        with named_at_once() as errors:
            return compile_template(source, identity=identity, limits=limits, seal=seal, errors=errors)
    version = find_version(source.template)
    source = replace(source, template=check_sections(source.template, version, errors))
    with errors.within(FORMATS[version.key].native_path) as inside:
        return _compiled(source, version, identity, limits, seal, inside)


def _compiled(
    source: Source,
    version: Version,
    identity: Identity,
    limits: Limits,
    seal: Callable[[Json], str],
    errors: ErrorList,
) -> CompiledTemplate:
    template = normal_form(source.template) if version.is_cfn else source.template
    pseudo = identity.pseudo(version, source.region)
    budget = Budget(limits.budget) if source.budget is None else source.budget
    parameters = resolve_parameters(
        template.get("parameters"), source.values, version=version, seal=seal, errors=errors
    )
    mappings = section(template, "mappings")
    conditions = Conditions(section(template, "conditions"), version, parameters, pseudo, budget, mappings)
    for name in conditions.definitions:  # Also those that nobody uses.
        with errors.collect():
            conditions.check(name)
    bodies = section(template, "resources")
    if limits.resources and len(bodies) > limits.resources:
        raise LimitExceeded(
            f"{len(bodies)} resources are above the limit of {limits.resources} ([stacks] max_resources)",
            ["resources"],
        )
    usable, enabled = _conditional(bodies, conditions, errors)
    for name in (name for name in bodies if enabled.get(name) and name in parameters):
        # As in Heat: Ref finds both by their names.
        text = f"Duplicate names {{'{name}'}}: a parameter has this name, too"
        errors.add(WordedByHeat(text, ("resources", name)))
    uncertain = frozenset(name for name, on in enabled.items() if on is None)
    scope = FoldScope(
        version=version,
        parameters=parameters,
        pseudo=pseudo,
        files=source.files,
        resources=frozenset(bodies),
        disabled=frozenset(name for name, on in enabled.items() if on is False),
        condition=conditions.evaluate,
        facade=source.facade,
        functions=version.functions,
        budget=budget,
        mappings=mappings,
        zones=source.region.zones,
    )
    return CompiledTemplate(
        version=version.date,
        description=str(template.get("description") or ""),
        parameters=parameters,
        resources=_in_order(_definitions(usable, uncertain, scope, source, errors), errors),
        outputs=_outputs(section(template, "outputs"), scope, conditions, errors),
        parameter_groups=parameter_groups(template.get("parameter_groups"), parameters, errors),
        uncertain=uncertain,
        pseudo=pseudo,
    )


def _conditional(
    bodies: JsonMap, conditions: Conditions, errors: ErrorList
) -> tuple[dict[str, JsonMap], dict[str, bool | None]]:
    """Return the usable bodies of resources, and whether the template has each of these resources."""
    usable = dict[str, JsonMap]()
    enabled = dict[str, bool | None]()
    for name, body in bodies.items():
        with errors.collect():
            usable[name] = resource_body(name, body, conditions.version, errors)
            enabled[name] = None  # Also where its condition is wrong, which is one error and not several.
            with errors.collect():
                enabled[name] = _enabled(name, usable[name], conditions)
    return usable, enabled


def _definitions(
    usable: Mapping[str, JsonMap],
    uncertain: Container[str],
    scope: FoldScope,
    source: Source,
    errors: ErrorList,
) -> dict[str, ResourceDefinition]:
    """Return the definitions of the resources that the template has, or may have.

    The errors of a resource that may be absent are no errors of the template: it is left out.

    :param uncertain: names of resources that may be absent.
    """
    definitions = {}
    for name in (name for name in usable if name not in scope.disabled):
        wrong = ErrorList()
        try:
            with wrong.collect():
                definitions[name] = _resource(name, usable[name], scope, source, wrong)
        except LimitExceeded as error:
            raise located(error, "resources", name) from error
        if name in uncertain and not wrong.is_empty:
            definitions.pop(name, None)
        elif not wrong.is_empty:
            errors.add_all(wrong)
    return definitions


def _holds(condition: Json, conditions: Conditions, path: Path) -> bool | None:
    """Return whether a condition is true, as none at all is; None: that is not known yet."""
    try:
        return condition is None or conditions.evaluate(condition, path)
    except ValueUnknown:
        return None


def _enabled(name: str, body: JsonMap, conditions: Conditions) -> bool | None:
    """Return whether the template has a resource; None: that is not known yet."""
    if body.get("condition") is None:
        return True
    return _holds(body["condition"], conditions, ("resources", name, "condition"))


def _resource(
    name: str, body: JsonMap, scope: FoldScope, source: Source, errors: ErrorList
) -> ResourceDefinition:
    path: Path = ("resources", name)
    keys = ("properties", "metadata", "update_policy")
    parts = {key: _part(key, body, scope, path, errors) for key in keys}
    here = (*source.path, name)
    settings = settings_for(source.environment, here, scope.budget)
    parts["properties"] = {**parts["properties"], **{n: quote(v) for n, v in settings.restored.items()}}
    external = None
    depends = tuple[str, ...]()
    policy = "Delete"
    if body.get("external_id") is not None:
        with errors.collect():
            external = _external_id(body["external_id"], scope, (*path, "external_id"))
    uses = references([*parts.values(), external])
    if body.get("depends_on") is not None:
        with errors.collect():
            depends = _depends_on(body["depends_on"], scope, (*path, "depends_on"), errors)
    if body.get("deletion_policy") is not None:
        with errors.collect():
            policy = _deletion_policy(body["deletion_policy"], scope, (*path, "deletion_policy"))
    scope.budget.step((len(uses) + len(depends)) * _EDGE)
    mapped_name = map_type(source.environment, here, body["type"], scope.budget).name
    return ResourceDefinition(
        name=name,
        type=type_identity(mapped_name),
        template=template_of(mapped_name),
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


def _part(key: str, body: JsonMap, scope: FoldScope, path: Path, errors: ErrorList) -> Json:
    value, wrong = fold_parts(body.get(key), scope, (*path, key))
    for error in wrong:
        if key == "properties" and isinstance(error, Unresolvable):
            # As in Heat it is the property that has no value, not the functions around.
            names = itertools.takewhile(lambda part: part not in scope.functions, error.path)
            error = InvalidProperty(error.message, tuple(names))
        errors.add(error)
    if value is None:
        return {}
    if not isinstance(value, dict):
        errors.add(TemplateError(f"must be a map, not {kind_of(value)}", (*path, key)))
        return failing("it is not a map")
    return value


def _external_id(value: Json, scope: FoldScope, path: Path) -> Residual:
    external = fold(value, scope, path)
    if holds_secret(external):
        raise TemplateError("must not hold the value of a hidden parameter: an id is stored and shown", path)
    if isinstance(external, str | None) or is_deferred(external):
        return external
    raise TemplateError(f"must be a string, not {written(external)}", path)


def _depends_on(value: object, scope: FoldScope, path: Path, errors: ErrorList) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TemplateError("must be the name of a resource, or a list of names", path)
    for name in names:
        if name not in scope.resources:
            key = "DependsOn" if scope.version.is_cfn else "depends_on"
            hint = f'{key} names "{name}", which the template does not have{closest(name, scope.resources)}'
            errors.add(UnknownResource.at(name, path, hint))
    return tuple(sorted(scope.resources.intersection(names) - scope.disabled))


def _deletion_policy(value: Json, scope: FoldScope, path: Path) -> str:
    policy = fold(value, scope, path)
    if policy is None or is_failing(policy):
        return "Delete"
    spellings = {name: name for name in _POLICIES}
    if scope.version.has_conditions and not scope.version.is_cfn:
        spellings.update({name.lower(): name for name in _POLICIES})
    if not isinstance(policy, str) or policy not in spellings:
        text = f"Invalid deletion policy {written(policy)}: it must be one of: {', '.join(spellings)}"
        raise TemplateError(text, path)
    return spellings[policy]


def _outputs(
    bodies: JsonMap, scope: FoldScope, conditions: Conditions, errors: ErrorList
) -> dict[str, OutputDefinition]:
    outputs: dict[str, OutputDefinition] = {}
    for name, raw in bodies.items():
        with errors.collect():
            outputs[name] = _output(name, raw, scope, conditions, errors)
    return outputs


def _output(
    name: str, raw: Json, scope: FoldScope, conditions: Conditions, errors: ErrorList
) -> OutputDefinition:
    """Return an output; one whose condition is false has the value null.

    As in Heat an unknown key has no effect.
    """
    allowed = [*_OUTPUT_KEYS, "condition"] if scope.version.has_conditions else list(_OUTPUT_KEYS)
    path: Path = ("outputs", name)
    is_usable = isinstance(raw, Mapping) and "value" in raw
    # A condition that an older version does not have would be worse than one that has no effect.
    is_usable = is_usable and (scope.version.has_conditions or "condition" not in raw)
    body = raw if is_usable else checked_keys(path, raw, allowed, scope.version, errors)
    if "value" not in body:
        raise WordedByHeat("Each output must contain a value key.", path)
    disabled = _holds(body.get("condition"), conditions, (*path, "condition")) is False
    value = None if disabled else _output_value(body["value"], scope, (*path, "value"))
    return OutputDefinition(name, value, str(body.get("description") or ""), references(value))


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


def _in_order(
    definitions: Mapping[str, ResourceDefinition], errors: ErrorList
) -> dict[str, ResourceDefinition]:
    """Return the resources, each after those that it requires; as they are, where these form a circle."""
    graph: dict[str, Collection[str]] = {name: item.requires for name, item in definitions.items()}
    for _ in range(MOST_ERRORS):
        try:
            order = list(graphlib.TopologicalSorter(graph).static_order())
            return {name: definitions[name] for name in order if name in definitions}
        except graphlib.CycleError as error:
            circle = list(reversed(error.args[1]))
            text = f"resources wait for each other in a circle: {' -> '.join(circle)}"
            errors.add(CircularDependency(text, ["resources"]))
            graph = {name: others for name, others in graph.items() if name not in circle}
    return dict(definitions)


def describe(template: JsonMap, errors: ErrorList | None = None) -> dict[str, Json]:
    """Return the description of a template's parameters, as Heat's ``template validate`` shows it.

    :param errors: gets the errors, as of `compile_template`.
    :raises TemplateError: the template cannot be described.
    """
    if errors is None:
        with named_at_once() as errors:
            return describe(template, errors)
    version = find_version(template)
    template = check_sections(template, version, errors)
    with errors.within(FORMATS[version.key].native_path) as inside:
        template = normal_form(template)
        declarations = parse_declarations(template.get("parameters"), version, inside)
        groups = parameter_groups(template.get("parameter_groups"), declarations, inside)
        return {
            "Description": str(template.get("description") or "No description"),
            "Parameters": {name: schema(declared) for name, declared in declarations.items()},
            "ParameterGroups": list(groups),
        }
