"""Environments: parameters and the registry that says what a resource type means here."""

import fnmatch
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import TemplateError
from .fold import Path, closest
from .model import ResourceSettings

Json = typing.Any

SECTIONS = (
    "parameters",
    "parameter_defaults",
    "resource_registry",
    "event_sinks",
    "encrypted_param_names",
    "parameter_merge_strategies",
)
HOOKS = ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete")
RESTRICTED = ("update", "replace")
SETTINGS = ("hooks", "restricted_actions", "timeout", "retries")


@dataclass(frozen=True)
class Environment:
    """What one or several environment files say together.

    :ivar registry: type -> type or template's name; ``resources`` -> settings of single resources.
    """

    parameters: Mapping[str, Json] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Json] = field(default_factory=dict)
    registry: Mapping[str, Json] = field(default_factory=dict)
    event_sinks: Sequence[Json] = ()
    encrypted_param_names: Sequence[str] = ()


def parse_environment(document: Mapping[str, Json] | None) -> Environment:
    """An environment from its document.

    :raises TemplateError: a section is unknown or of the wrong type.
    """
    body = document or {}
    unknown = [str(key) for key in body if key not in SECTIONS]
    if unknown:
        raise TemplateError(
            f'"{unknown[0]}" is not a section of an environment{closest(unknown[0], SECTIONS)}',
            ["environment"],
        )
    registry = _mapping(body, "resource_registry")
    _check_registry(registry)
    return Environment(
        parameters=_mapping(body, "parameters"),
        parameter_defaults=_mapping(body, "parameter_defaults"),
        registry=registry,
        event_sinks=_list(body, "event_sinks"),
        encrypted_param_names=_list(body, "encrypted_param_names"),
    )


def _mapping(body: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    value = body.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise TemplateError(f"must be a map, not {value!r}", ["environment", key])
    return value or {}


def _list(body: Mapping[str, Json], key: str) -> Sequence[Json]:
    value = body.get(key)
    if value is not None and not isinstance(value, list):
        raise TemplateError(f"must be a list, not {value!r}", ["environment", key])
    return value or []


def _check_registry(registry: Mapping[str, Json]) -> None:
    path: Path = ("environment", "resource_registry")
    for name, target in registry.items():
        if name == "resources":
            if not isinstance(target, Mapping | None):
                raise TemplateError("must be a map of resource names", (*path, name))
            _check_resources(target or {}, (*path, name))
        elif not isinstance(target, str):
            raise TemplateError(f"must be the name of a type or of a template, not {target!r}", (*path, name))


def _check_resources(entries: Mapping[str, Json], path: Path) -> None:
    for name, entry in entries.items():
        here = (*path, str(name))
        if not isinstance(entry, Mapping | None):
            raise TemplateError(f"must be a map, not {entry!r}", here)
        for key, value in (entry or {}).items():
            _check_entry(str(key), value, (*here, str(key)), here)


def _check_entry(key: str, value: Json, path: Path, parent: Path) -> None:
    if key == "hooks":
        _check_words(value, HOOKS, path)
    elif key == "restricted_actions":
        _check_words(value, RESTRICTED, path)
    elif key == "timeout":
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise TemplateError(f"must be a number of seconds above 0, not {value!r}", path)
    elif key == "retries":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise TemplateError(f"must be a whole number, 0 or more, not {value!r}", path)
    elif isinstance(value, Mapping):
        _check_resources({key: value}, parent)
    elif not isinstance(value, str):
        raise TemplateError(f"must be the name of a type, a map, or one of: {', '.join(SETTINGS)}", path)


def _check_words(value: Json, allowed: Sequence[str], path: Path) -> None:
    for word in value if isinstance(value, list) else [value]:
        if word not in allowed:
            raise TemplateError(f'"{word}" is not one of: {", ".join(allowed)}', path)


def _entries(env: Environment, path: Sequence[str]) -> list[Mapping[str, Json]]:
    """The registry's entries that are for the resource at the path, exact names after wildcards."""
    level: list[Mapping[str, Json]] = [env.registry.get("resources") or {}]
    for name in path:
        found: list[Mapping[str, Json]] = []
        for entries in level:
            wild = [key for key in entries if key != name and "*" in key and fnmatch.fnmatchcase(name, key)]
            for key in [*sorted(wild, key=len), *([name] if name in entries else [])]:
                if isinstance(entries[key], Mapping):
                    found.append(entries[key])
        level = found
    return level


def settings_for(env: Environment, path: Sequence[str]) -> ResourceSettings:
    """What the environment says of the resource at the path (names from the root stack down).

    Hooks and restricted actions of several matching entries add up; of timeout and retries the entry with
    the most exact name wins.
    """
    if not env.registry.get("resources"):
        return ResourceSettings()
    hooks: set[str] = set()
    restricted: set[str] = set()
    timeout: float | None = None
    retries: int | None = None
    for entry in _entries(env, path):
        hooks.update(_words(entry.get("hooks")))
        restricted.update(_words(entry.get("restricted_actions")))
        timeout = entry.get("timeout", timeout)
        retries = entry.get("retries", retries)
    return ResourceSettings(frozenset(hooks), frozenset(restricted), timeout, retries)


def _words(value: Json) -> list[str]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def map_type(env: Environment, path: Sequence[str], type_name: str) -> str:
    """What the type means for the resource at the path.

    An entry for the resource wins over one for all; an exact name over a wildcard, a longer wildcard over a
    shorter one.  A chain of mappings is followed; one that leads back ends where it began.
    """
    seen: set[str] = set()
    while type_name not in seen:
        seen.add(type_name)
        for entry in [*reversed(_entries(env, path)), env.registry]:
            mapped = _mapped(entry, type_name)
            if mapped is not None and mapped != type_name:
                type_name = mapped
                break
    return type_name


def _mapped(entry: Mapping[str, Json], type_name: str) -> str | None:
    exact = entry.get(type_name)
    if isinstance(exact, str) and type_name not in SETTINGS:
        return exact
    wild = [key for key in entry if key.endswith("*") and isinstance(entry[key], str)]
    for key in sorted(wild, key=len, reverse=True):
        if type_name.startswith(key[:-1]):
            target = str(entry[key])
            return target[:-1] + type_name[len(key) - 1 :] if target.endswith("*") else target
    return None


def as_document(env: Environment) -> dict[str, Json]:
    """The environment in the shape of the API's answer."""
    return {
        "parameters": dict(env.parameters),
        "parameter_defaults": dict(env.parameter_defaults),
        "resource_registry": {"resources": {}, **env.registry},
        "event_sinks": list(env.event_sinks),
        "encrypted_param_names": list(env.encrypted_param_names),
    }
