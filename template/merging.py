"""Merging several environment files into one, as the server does for ``environment_files``."""

import typing
from collections.abc import Mapping, Sequence

from .errors import TemplateError
from .load import load_document
from .parameters import Declaration

Json = typing.Any

STRATEGIES = ("overwrite", "merge", "deep_merge")
_SECTION = "parameter_merge_strategies"


def merge_environments(
    files: Mapping[str, str],
    names: Sequence[str],
    environment: Mapping[str, Json] | None,
    declarations: Mapping[str, Declaration],
) -> dict[str, Json]:
    """The environment document: the named files in their order, each over the ones before.

    As in Heat the files replace `environment` where any are named, since clients send there what they have
    merged themselves.

    :param declarations: the template's parameters: their types say how values are merged.
    :raises TemplateError: a file was not sent, is no environment, or a strategy does not fit.
    """
    if not names:
        return dict(environment or {})
    merged: dict[str, Json] = {}
    strategies: dict[str, Json] = {}
    for name in names:
        if name not in files:
            raise TemplateError(
                f'the environment file "{name}" is not among the files', ["environment_files"]
            )
        document = load_document(files[name], f'environment file "{name}"')
        strategies.update(_strategies(document, name))
        _merge_document(merged, document, strategies, declarations)
    return merged


def _strategies(document: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    declared = document.get(_SECTION) or {}
    if not isinstance(declared, Mapping):
        raise TemplateError("must be a map of parameters to strategies", [name, _SECTION])
    for parameter, strategy in declared.items():
        if strategy not in STRATEGIES:
            wanted = f"must be one of: {', '.join(STRATEGIES)}; not {strategy!r}"
            raise TemplateError(wanted, [name, _SECTION, parameter])
    return declared


def _merge_document(
    merged: dict[str, Json],
    document: Mapping[str, Json],
    strategies: Mapping[str, str],
    declarations: Mapping[str, Declaration],
) -> None:
    for section, body in document.items():
        if section == _SECTION:
            continue
        if section in ("parameters", "parameter_defaults") and isinstance(body, Mapping):
            target = merged.setdefault(section, {})
            for name, value in body.items():
                strategy = strategies.get(name, strategies.get("default", "overwrite"))
                known = declarations.get(name)
                target[name] = _merge_value(target.get(name), value, strategy, known, name)
        elif isinstance(body, Mapping) and isinstance(merged.get(section), Mapping):
            merged[section] = _deep(merged[section], body)
        elif isinstance(body, list) and isinstance(merged.get(section), list):
            merged[section] = [*merged[section], *body]
        else:
            merged[section] = body


def _merge_value(old: Json, new: Json, strategy: str, declared: Declaration | None, name: str) -> Json:
    if old is None or strategy == "overwrite":
        return new
    if declared is not None and declared.type in ("number", "boolean", "string") and strategy == "deep_merge":
        raise TemplateError(f'"{name}" of type {declared.type} cannot be merged deep', [_SECTION, name])
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _deep(old, new) if strategy == "deep_merge" else {**old, **new}
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    if isinstance(old, str) and isinstance(new, str):
        if declared is not None and declared.type == "comma_delimited_list":
            return f"{old},{new}"
        return old + new
    kinds = f"one is a {type(old).__name__}, the other a {type(new).__name__}"
    raise TemplateError(f'the values of "{name}" cannot be merged: {kinds}', [_SECTION, name])


def _deep(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = _deep(before, value)
        else:
            merged[key] = value
    return merged
