"""Environments: parameters, and the registry that maps resource types, by patterns too."""

import enum
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..shapes import EnvironmentDocument, Json, JsonMap
from .budget import Budget, charged_at, new_budget
from .errors import ErrorList, TemplateError, named_at_once
from .event_sinks import parse_sinks
from .language import Path, ResourceSettings, is_template_name
from .load import check_tree
from .resource_settings import SETTINGS, check_setting, combined, with_hooks, words
from .scalars import kind_of, written
from .suggestions import closest
from .wildcards import COMPARED, WildNames, matching


def _find_entry(entries: JsonMap, type_name: str, wild: WildNames, budget: Budget) -> tuple[str, str] | None:
    """Return the entry that maps the type: its name, and the name that the type is mapped to."""
    exact = entries.get(type_name)
    if isinstance(exact, str) and type_name not in SETTINGS:
        return type_name, exact
    budget.step(1 + len(type_name) // COMPARED)
    for key in wild.of(entries):
        budget.step(1 + len(key) // COMPARED)
        if key.endswith("*") and isinstance(entries[key], str) and type_name.startswith(key[:-1]):
            target = str(entries[key])
            return key, target[:-1] + type_name[len(key) - 1 :] if target.endswith("*") else target
    return None


_COPIED = 4
"""Entries of a registry that one step of work copies."""
_LONGEST_CHAIN = 100
"""Mappings from one type to another, of which real environments have two or three."""

SECTIONS = (
    "parameters",
    "parameter_defaults",
    "resource_registry",
    "event_sinks",
    "encrypted_param_names",
    "parameter_merge_strategies",
)
STACK_SETTINGS = "stoker"
"""Key in the registry of the settings for the whole stack: clients of Heat refuse sections of other names."""
PREFLIGHT = "preflight"
_NOT_TYPES = ("resources", "base_url", STACK_SETTINGS)


@dataclass(frozen=True)
class Environment:
    """The content of one environment, or of several merged ones.

    :ivar registry: type -> type or template's name; ``resources`` -> settings of single resources.
    :ivar encrypted_param_names: parameters that are hidden in the stack, and in all that is nested in it,
        even if their templates do not declare them hidden.
    :ivar operator: the environment that lies below this one for all stacks; None: nothing.  It is not stored.
    :ivar wild: names with wildcards in the registry.
    """

    parameters: JsonMap = field(default_factory=dict)
    parameter_defaults: JsonMap = field(default_factory=dict)
    registry: JsonMap = field(default_factory=dict)
    event_sinks: Sequence[Json] = ()
    encrypted_param_names: Sequence[str] = ()
    operator: "Environment | None" = field(default=None, repr=False, compare=False)
    wild: WildNames = field(default_factory=WildNames, init=False, repr=False, compare=False)

    @property
    def defaults(self) -> JsonMap:
        """Return the defaults of parameters, with the operator's below them."""
        if self.operator is None:
            return self.parameter_defaults
        return {**self.operator.parameter_defaults, **self.parameter_defaults}

    @property
    def queues(self) -> Sequence[tuple[str, int]]:
        """Return the names of the event sinks' queues, each with the seconds that a message stays there."""
        return parse_sinks(self.event_sinks, ("environment", "event_sinks"))


def parse_environment(document: JsonMap | None, budget: Budget | None = None) -> Environment:
    """Parse the document of an environment.

    :param budget: the budget of the request; None: a new one.
    :raises TemplateError: a section is unknown or of the wrong type; all errors are named at once.
    """
    if budget is None:
        with new_budget() as own_budget:
            return parse_environment(document, own_budget)
    with named_at_once() as errors:
        return _parsed(document, budget, errors)


def _parsed(document: JsonMap | None, budget: Budget, errors: ErrorList) -> Environment:
    body = {} if document is None else document
    if not isinstance(body, Mapping):
        raise TemplateError(f"must be a map, not {kind_of(body)}", ["environment"])
    check_tree(body, "environment")
    for key in (str(key) for key in body if key not in SECTIONS):
        text = f'"{key}" is not a section of an environment{closest(key, SECTIONS)}'
        errors.add(TemplateError(text, ["environment"]))
    maps = {
        key: _mapping(body, key, errors)
        for key in ("resource_registry", "parameter_merge_strategies", "parameters", "parameter_defaults")
    }
    _check_registry(maps["resource_registry"], errors)
    sinks = list[Json]()
    names = list[str]()
    with errors.collect():
        sinks = [*_sinks(body)]
    with errors.collect():
        names = [*_names(body, "encrypted_param_names")]
    errors.check()
    with charged_at("environment", "resource_registry"):
        registry = _without_removed(maps["resource_registry"], budget)
    return Environment(
        parameters=maps["parameters"],
        parameter_defaults=maps["parameter_defaults"],
        registry=registry,
        event_sinks=sinks,
        encrypted_param_names=sorted({*names}),
    )


def _without_removed(registry: JsonMap, budget: Budget) -> dict[str, Json]:
    """Return the registry without mappings to null, each of which removes the matching ones before it."""
    removals: dict[str, int] = {}
    positions: dict[str, int] = {}
    for position, (name, target) in enumerate(registry.items()):
        budget.step(1 + len(name) // COMPARED)
        if target is not None:
            positions[name] = position
        elif name.endswith("*"):
            removals[name[:-1]] = position
    removed = _removed(positions, removals)
    return {name: _with_text_keys(registry[name]) for name in positions if name not in removed}


def _removed(positions: Mapping[str, int], removals: Mapping[str, int]) -> set[str]:
    """Return the names of mappings that a removal after them takes.

    One pass in the order of the alphabet: the names with a prefix follow the prefix without a gap, so that
    the open prefixes are a stack.

    :param removals: position of the last removal by its prefix.
    """
    removed = set[str]()
    prefixes: list[tuple[str, int]] = []  # Each with the last position in the stack up to it.
    for name in sorted({*positions, *removals}):
        while prefixes and not name.startswith(prefixes[-1][0]):
            prefixes.pop()
        last = prefixes[-1][1] if prefixes else -1
        if name in removals:
            last = max(last, removals[name])
            prefixes.append((name, last))
        if name not in _NOT_TYPES and positions.get(name, last) < last:
            removed.add(name)
    return removed


def _with_text_keys(value: object) -> object:
    """Return the value with keys as texts: YAML reads a resource's name like 1 as a number."""
    if not isinstance(value, Mapping):
        return value
    return {str(key): _with_text_keys(item) for key, item in value.items()}


def _mapping(body: JsonMap, key: str, errors: ErrorList) -> JsonMap:
    value = body.get(key)
    if value is not None and not isinstance(value, Mapping):
        errors.add(TemplateError(f"must be a map, not {kind_of(value)}", ["environment", key]))
        return {}
    return {str(name): item for name, item in (value or {}).items()}


def _list(body: JsonMap, key: str) -> Sequence[Json]:
    value = body.get(key)
    if value is not None and not isinstance(value, list):
        raise TemplateError(f"must be a list, not {kind_of(value)}", ["environment", key])
    return value or []


def _sinks(body: JsonMap) -> Sequence[Json]:
    sinks = _list(body, "event_sinks")
    if sinks:
        parse_sinks(sinks, ("environment", "event_sinks"))
    return sinks


def _names(body: JsonMap, key: str) -> Sequence[str]:
    names = _list(body, key)
    if not all(isinstance(name, str) for name in names):
        raise TemplateError("must be a list of names", ["environment", key])
    return names


def _check_registry(registry: JsonMap, errors: ErrorList) -> None:
    path: Path = ("environment", "resource_registry")
    for name, target in registry.items():
        if name == "resources":
            if not isinstance(target, Mapping | None):
                errors.add(TemplateError("must be a map of resource names", (*path, name)))
            else:
                _check_resources(target or {}, (*path, name), errors)
        elif name == STACK_SETTINGS and not isinstance(target, str | None):
            with errors.collect():
                _check_stack_settings(target, (*path, name))
        elif not isinstance(target, str | None):
            text = f"must be the name of a type or of a template, not {written(target)}"
            errors.add(TemplateError(text, (*path, name)))


class PreflightMode(enum.StrEnum):
    """The effect of a comparison with the cloud on a request."""

    REFUSE = "refuse"  #: a request that the cloud would not carry out is refused
    WARN = "warn"  #: the stack's reason and its first event say what hinders
    OFF = "off"  #: nothing is compared


def preflight_mode(registry: JsonMap) -> PreflightMode | None:
    """Return the mode that a valid environment sets for its stack; None: it sets none."""
    settings = registry.get(STACK_SETTINGS)
    mode = settings.get(PREFLIGHT) if isinstance(settings, Mapping) else None
    return None if mode is None else PreflightMode(_without_yaml(mode))


def _without_yaml(mode: object) -> str:
    """Return a mode as it was written: YAML reads the word off as a boolean."""
    return PreflightMode.OFF.value if mode is False else str(mode)


def _check_stack_settings(settings: object, path: Path) -> None:
    if not isinstance(settings, Mapping):
        raise TemplateError(f"must be a map of: {PREFLIGHT}; not {written(settings)}", path)
    for name, value in settings.items():
        if name != PREFLIGHT:
            raise TemplateError(f'"{name}" is not one of: {PREFLIGHT}{closest(str(name), [PREFLIGHT])}', path)
        words = [mode.value for mode in PreflightMode]
        if value is not None and _without_yaml(value) not in words:
            text = f"must be one of: {', '.join(words)}; not {written(value)}"
            raise TemplateError(text, (*path, PREFLIGHT))


def _check_resources(entries: JsonMap, path: Path, errors: ErrorList) -> None:
    for name, entry in entries.items():
        here = (*path, str(name))
        if not isinstance(entry, Mapping | None):
            errors.add(TemplateError(f"must be a map, not {written(entry)}", here))
            continue
        for key, value in (entry or {}).items():
            with errors.collect():
                _check_entry(str(key), value, (*here, str(key)), here, errors)


def _check_entry(key: str, value: object, path: Path, parent: Path, errors: ErrorList) -> None:
    if value is None:
        return  # As in Heat null counts as absent.
    if key in SETTINGS:
        check_setting(key, value, path)
    elif isinstance(value, Mapping):
        _check_resources({key: value}, parent, errors)
    elif not isinstance(value, str):
        raise TemplateError(f"must be the name of a type, a map, or one of: {', '.join(SETTINGS)}", path)


def _entries(env: Environment, path: Sequence[str], budget: Budget) -> list[JsonMap]:
    """Return the registry's entries for the resource at the path, exact names after wildcards.

    The resource's own name counts before the names above it, as it does in the environment of the
    nested stack, which knows only its own names.
    """
    level: list[tuple[tuple[tuple[bool, int, str], ...], JsonMap]] = [
        ((), env.registry.get("resources") or {})
    ]
    for name in path:
        level = [
            (((key == name, len(key), key), *above), entries[key])
            for above, entries in level
            for key in matching(entries, name, env.wild, budget)
            if isinstance(entries[key], Mapping) and not (above and key in SETTINGS)
        ]
    return [entry for _, entry in sorted(level, key=lambda item: item[0])]


def settings_for(env: Environment, path: Sequence[str], budget: Budget | None = None) -> ResourceSettings:
    """Return the settings of the resource at the path (names from the root stack down).

    Hooks and restricted actions of several matching entries add up; of timeout and retries the entry with
    the most exact name wins.
    """
    if not env.registry.get("resources"):
        return _NO_SETTINGS
    if budget is None:
        with new_budget() as own_budget:
            return settings_for(env, path, own_budget)
    return combined(_entries(env, path, budget))


_NO_SETTINGS = ResourceSettings()


class MappedType(typing.NamedTuple):
    """The outcome of the mapping of a type.

    :ivar name: the name of another type or of a template; the type's own, if nothing maps it.
    :ivar entry: the name of the last entry on the way, if the entry is for all resources.
    :ivar is_operators: the last entry is the operator's.
    """

    name: str
    entry: str | None = None
    is_operators: bool = False


def map_type(
    env: Environment, path: Sequence[str], type_name: str, budget: Budget | None = None
) -> MappedType:
    """Return the type or template to which the registry maps a type, for the resource at the path.

    An entry for the resource wins over one for all; an exact name over a wildcard, a longer wildcard over a
    shorter one.  A chain of mappings is followed to its end, which the name of a template is in any case; one
    that leads back ends where it began.  The operator's entries come after those of the stack, unless one of
    the stack maps the type to itself.

    :raises TemplateError: the chain has no end, as ``A*: AA*``.
    """
    operator = env.operator if env.operator is not None and env.operator.registry else None
    if not env.registry and operator is None:
        return MappedType(type_name)
    if budget is None:
        with new_budget() as own_budget:
            return map_type(env, path, type_name, own_budget)
    last = MappedType(type_name)
    tables = _tables(env, path, budget)
    visited: list[str] = []
    while type_name not in visited and not (visited and is_template_name(type_name)):
        if len(visited) > _LONGEST_CHAIN:
            raise TemplateError(
                f'the mapping of the type "{visited[0]}" does not end', ["environment", "resource_registry"]
            )
        visited.append(type_name)
        for table, wild in tables:
            entry = _find_entry(table, type_name, wild, budget)
            if entry is not None and entry[1] != type_name:
                is_operators = operator is not None and table is operator.registry
                is_for_all = is_operators or table is env.registry
                last = MappedType(entry[1], entry[0] if is_for_all else None, is_operators)
                type_name = entry[1]
                break
            if entry is not None and table is env.registry:
                break
    return last._replace(name=type_name)


def _tables(env: Environment, path: Sequence[str], budget: Budget) -> list[tuple[JsonMap, WildNames]]:
    """Return the maps of types for the resource at the path, the one that counts most first."""
    tables = [(table, env.wild) for table in (*reversed(_entries(env, path, budget)), env.registry)]
    if env.operator is not None and env.operator.registry:
        tables.append((env.operator.registry, env.operator.wild))
    return tables


def facade_of(env: Environment, path: Sequence[str], type_name: str, budget: Budget) -> str:
    """Return the type or template to which a type would be mapped, if not to the resource's own template.

    As in Heat that is the mapping for all resources where one for the resource itself comes before it, and
    else the type.
    """
    template = map_type(env, path, type_name, budget).name
    for table, wild in _tables(env, path, budget):
        entry = _find_entry(table, type_name, wild, budget)
        if entry is not None and (facade := map_type(env, path, entry[1], budget).name) != template:
            return facade
    return type_name


def nested_environment(
    env: Environment, resource_name: str, type_name: str, budget: Budget | None = None
) -> Environment:
    """Return the environment of the nested stack of a resource.

    It has no parameters, and of the entries for resources those below this one.  The entry that made the type
    a template does not apply below, so that such a template may have resources of the very type.

    `resource_name` is one of the stack that has `env`; for a grandchild call it again with the result.  Where
    several entries match, their hooks and restricted actions add up, and else the most exact name wins.

    :param type_name: the type of the resource, as its template declares it.
    """
    if budget is None:
        with new_budget() as own_budget:
            return nested_environment(env, resource_name, type_name, own_budget)
    below: dict[str, Json] = {}
    budget.step(len(env.registry) // _COPIED)
    for entry in _entries(env, [resource_name], budget):
        budget.step(len(entry))
        inner = {
            key: value for key, value in entry.items() if isinstance(value, Mapping) and key not in SETTINGS
        }
        below = _overlaid(below, inner)
    mapped_type = map_type(env, [resource_name], type_name, budget)
    left_out = mapped_type.entry if is_template_name(mapped_type.name) else None
    registry = {key: value for key, value in env.registry.items() if key not in ("resources", left_out)}
    if left_out is not None and mapped_type.is_operators:
        registry[left_out] = left_out
    return Environment(
        parameter_defaults=env.parameter_defaults,
        registry={**registry, "resources": below} if below else registry,
        event_sinks=env.event_sinks,
        encrypted_param_names=env.encrypted_param_names,
        operator=env.operator,
    )


def with_entries(document: JsonMap, entries: JsonMap) -> dict[str, Json]:
    """Return the document of an environment with more entries for resources, which win."""
    if not entries:
        return {**document}
    registry = document.get("resource_registry") or {}
    resources = _overlaid(registry.get("resources") or {}, entries)
    return {**document, "resource_registry": {**registry, "resources": resources}}


def _overlaid(under: JsonMap, over: JsonMap) -> dict[str, Json]:
    merged = dict(under)
    for key, value in over.items():
        earlier_value = merged.get(key)
        if key == "hooks":
            merged[key] = with_hooks(earlier_value, value)
        elif isinstance(value, Mapping):
            merged[key] = _overlaid(earlier_value if isinstance(earlier_value, Mapping) else {}, value)
        elif key == "restricted_actions":
            merged[key] = sorted({*words(earlier_value), *words(value)})
        elif value is not None:
            merged[key] = value
    return merged


def as_document(env: Environment) -> EnvironmentDocument:
    """Return the environment in the form of the API's answer."""
    return {
        "parameters": dict(env.parameters),
        "parameter_defaults": dict(env.parameter_defaults),
        "resource_registry": {**env.registry, "resources": env.registry.get("resources") or {}},
        "event_sinks": list(env.event_sinks),
        "encrypted_param_names": list(env.encrypted_param_names),
    }
