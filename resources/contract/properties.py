"""Values under a properties schema: checked when a stack is planned, resolved when a step runs, compared.

Single values are converted as generously as Heat does: ``"5"`` is an integer, ``5`` a string.  Every function
``to_...`` takes a value that is not None and raises ValueError with a text for the user.
"""

import copy
import math
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ...shapes import Json, JsonMap
from ...template.constraints import Constraint, ConstraintError, Custom
from ...template.custom_checks import OF_CLOUD
from ...template.errors import LimitExceeded
from ...template.residual import FN, is_deferred, is_node, members, plain
from ...template.scalars import as_text, written
from ...template.suggestions import nearest
from ..units import unit_hint
from .errors import PropertyError, UnknownProperty, raise_all
from .schema import ANY_NAME, Property


def to_string(value: Json) -> str:
    """Convert a boolean to ``True`` or ``False``, an integer to digits; other types are refused."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    raise ValueError(f"Value must be a string; got {written(value)}")


def to_integer(value: Json) -> int:
    """Convert digits; a fraction, which Heat drops silently, is refused."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    raise ValueError(f"Value '{as_text(value)}' is not an integer")


def to_number(value: Json) -> int | float:
    """Convert to an integer where the value is one; refuse infinity and NaN, which JSON cannot hold."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str | float):
        try:
            return int(value) if isinstance(value, str) else _finite(value)
        except ValueError:
            pass
        try:
            return _finite(float(value))
        except ValueError:
            pass
    raise ValueError(f"Value '{as_text(value)}' is not a number")


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def to_boolean(value: Json) -> bool:
    """Convert a boolean; of texts Heat's properties take ``true`` and ``false`` alone, in any case.

    So the words that parameters take (template/scalars.py) are not used here.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f'"{as_text(value)}" is not a valid boolean')


def to_map(value: Json) -> dict[str, Json]:
    """Copy a map; JSON text is not parsed."""
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f'"{as_text(value)}" is not a map')


def to_list(value: Json) -> list[Json]:
    """Copy a list; a string is not split."""
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(f'"{as_text(value)}" is not a list')


#: By type name; ``any`` is absent, it takes everything as it is.
CONVERTERS: Mapping[str, Callable[[Json], Json]] = {
    "string": to_string,
    "integer": to_integer,
    "number": to_number,
    "boolean": to_boolean,
    "map": to_map,
    "list": to_list,
}

#: Makes the value of a property given as null, where it has no default.
EMPTY: Mapping[str, Callable[[], Json]] = {
    "string": str,
    "integer": int,
    "number": int,
    "boolean": bool,
    "map": dict,
    "list": list,
}


Path = tuple[str | int, ...]


def validate_properties(schema: Mapping[str, Property], residuals: JsonMap) -> dict[str, Json]:
    """Check at plan time the properties that are known; deferred ones are skipped.

    :param residuals: a mapping of residuals; or one function node, of which nothing is known.
    :returns: the properties for `ResourceType.validate`: known values, converted, with defaults; None
        where there is neither; deferred ones are absent.
    :raises PropertyError: unknown name, missing required property, wrong type, unmet constraint; the first
        one, with the others.
    """
    errors: list[PropertyError] = []
    values = known_properties(schema, residuals, errors)
    raise_all(errors)
    return values


def known_properties(
    schema: Mapping[str, Property], residuals: JsonMap, errors: list[PropertyError]
) -> dict[str, Json]:
    """Return the properties that are known and right, as `validate_properties` does.

    :param errors: list to which the errors are added.
    """
    if is_node(residuals) and residuals[FN] != "literal":
        return {}
    wrong: list[PropertyError] = []
    values = _known_members(schema, members(residuals), (), wrong)
    errors += [_without_secrets(error, schema) for error in wrong]
    return values


def resolve_properties(
    schema: Mapping[str, Property], values: JsonMap, secret: Collection[str] = ()
) -> dict[str, Json]:
    """Return the properties as a step sees them: every name of the schema, converted, with defaults.

    A property that is neither given nor has a default is None.  Null means the default, without one the
    type's empty value (``""``, 0, false, {}, []), as in Heat.

    :param secret: names whose values came from secrets and shall not appear in an error.
    :raises PropertyError: errors as of validate_properties.
    """
    errors: list[PropertyError] = []
    resolved = _resolve_members(schema, values, (), errors)
    raise_all([_without_secrets(error, schema, secret) for error in errors])
    return resolved


def resolve_stored(schema: Mapping[str, Property], values: JsonMap) -> dict[str, Json]:
    """Return the stored properties of a resource, for actions without new ones.

    Unlike resolve_properties it refuses nothing: an invalid value stays unchanged, a missing one is None.  So
    a resource whose create never started, or whose type became stricter, can be deleted.
    """
    resolved: dict[str, Json] = {}
    values = renamed(schema, values)
    for name in {**{key: None for key in schema if key != ANY_NAME}, **values}:
        single_schema = {name: property_of(schema, name)}
        errors = list[PropertyError]()
        value = _resolve_members(single_schema, {name: values[name]} if name in values else {}, (), errors)
        resolved |= {name: values.get(name)} if errors else value
    return resolved


def resolve_reported(
    schema: Mapping[str, Property], reported: JsonMap, properties: JsonMap, ignored: Collection[str] = ()
) -> dict[str, Json]:
    """Return the properties that a service reports, converted by the schema.

    :param properties: the resource's own; one that is null on both sides is left out, for it gets no default.
    :param ignored: names of properties that are left out.
    """
    values = {
        name: value
        for name, value in reported.items()
        if name in schema and name not in ignored and not (value is None and properties.get(name) is None)
    }
    return resolve_stored({name: schema[name] for name in values}, values)


def changed(schema: Mapping[str, Property], before: JsonMap, after: JsonMap) -> frozenset[str]:
    """Return the names whose resolved values differ; an absent one counts as None, as may an empty one."""
    names = {*schema, *before, *after} - {ANY_NAME}
    return frozenset(
        name for name in names if not _alike(property_of(schema, name), before.get(name), after.get(name))
    )


def _alike(prop: Property, before: Json, after: Json) -> bool:
    """Return whether two values of a property mean the same."""
    return _same(before, after) or _same(meant(prop, before), meant(prop, after))


def meant(prop: Property, value: Json) -> Json:
    """Return a resolved value, with the default, or None, for each empty one that means nothing is given."""
    if value in ("", [], {}) and prop.omits_empty:
        return prop.default
    if isinstance(prop.schema, Mapping) and isinstance(value, Mapping):
        return {name: meant(property_of(prop.schema, name), item) for name, item in value.items()}
    if isinstance(prop.schema, Property) and isinstance(value, list):
        return [meant(prop.schema, item) for item in value]
    return value


def meanings(schema: Mapping[str, Property], values: JsonMap) -> dict[str, Json]:
    """Return resolved properties as a type's rules see them: an empty value may mean that none is given."""
    return {name: meant(property_of(schema, name), value) for name, value in values.items()}


SameThing = Callable[[str, str, str], bool]
"""Returns whether two texts name the same thing of a kind."""


def respelled(
    schema: Mapping[str, Property], before: JsonMap, after: JsonMap, same: SameThing
) -> dict[str, Json]:
    """Return properties in which each name or id is written as others have it that name the same thing.

    So what a property names is compared, not the words for it.

    :param after: the properties whose words are used.
    """
    return {
        name: _respelled(property_of(schema, name), value, after.get(name), same)
        for name, value in before.items()
    }


def _respelled(prop: Property, before: Json, after: Json, same: SameThing) -> Json:
    if isinstance(before, str) and isinstance(after, str):
        is_named = prop.kind and before and after and before != after
        return after if is_named and same(prop.kind, before, after) else before
    if isinstance(prop.schema, Mapping) and isinstance(before, Mapping) and isinstance(after, Mapping):
        return respelled(prop.schema, before, after, same)
    if isinstance(prop.schema, Property) and isinstance(before, list) and isinstance(after, list):
        pairs = zip(before, after, strict=False)
        return [*(_respelled(prop.schema, *pair, same) for pair in pairs), *before[len(after) :]]
    return before


def names_things(schema: "Mapping[str, Property] | Property | None") -> bool:
    """Return whether a property of the schema names a thing in a cloud."""
    if isinstance(schema, Property):
        return bool(schema.kind) or names_things(schema.schema)
    return any(names_things(prop) for prop in (schema or {}).values())


def named_things(schema: Mapping[str, Property], values: JsonMap) -> Iterator[tuple[str, str]]:
    """Yield the names and ids of things in a cloud that resolved properties have, each with its kind."""
    for name, value in values.items():
        yield from _named_things(property_of(schema, name), value)


def _named_things(prop: Property, value: Json) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if value and prop.kind:
            yield prop.kind, value
    elif isinstance(prop.schema, Mapping) and isinstance(value, Mapping):
        yield from named_things(prop.schema, value)
    elif isinstance(prop.schema, Property) and isinstance(value, list):
        for item in value:
            yield from _named_things(prop.schema, item)


def replacement_needed(schema: Mapping[str, Property], names: Iterable[str]) -> frozenset[str]:
    """Return the changed names for which the resource has to be replaced."""
    return frozenset(name for name in names if not property_of(schema, name).update_allowed)


def immutable_changed(schema: Mapping[str, Property], names: Iterable[str]) -> frozenset[str]:
    """Return the changed names whose change must be refused."""
    return frozenset(name for name in names if property_of(schema, name).immutable)


def _without_secrets(
    error: PropertyError, schema: Mapping[str, Property], secret: Collection[str] = ()
) -> PropertyError:
    """Return an error without the value of a property that is sensitive or secret, in its context, too."""
    name = str(error.path[0]) if error.path else ""
    if name not in secret and not (name in schema and schema[name].sensitive):
        return error
    # Keys below may be secret as well.
    return PropertyError("The value is not valid; it is secret and not shown", error.path[:1])


_UNLISTED = Property("any")


def property_of(schema: Mapping[str, Property], name: str) -> Property:
    """Return the property that a schema has for a name; one that takes anything where it has none."""
    return schema.get(name) or schema.get(ANY_NAME) or _UNLISTED


def _same(first: Json, second: Json) -> bool:
    """Return whether values are equal as JSON: unlike in Python true is not 1."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def renamed(schema: Mapping[str, Property], values: JsonMap) -> JsonMap:
    """Return the values with those of old names under the names that have taken their place."""
    old = [name for name in values if name in schema and schema[name].alias_of in schema]
    if not old:
        return values
    moved = {str(schema[name].alias_of): values[name] for name in old}
    return {**moved, **{name: value for name, value in values.items() if name not in old}}


def _members(
    schema: Mapping[str, Property], values: JsonMap, path: Path, errors: list[PropertyError]
) -> Iterator[tuple[str, Property, bool]]:
    """Yield name, property, and whether it is given, for all known given ones and all of the schema.

    A name that is unknown or missing is an error.  Nothing is said of the name that was probably meant.
    """
    resolved_names: set[str | None] = set()
    for unknown in () if ANY_NAME in schema else [name for name in values if name not in schema]:
        names = sorted(name for name, prop in schema.items() if not prop.support_status.hidden)
        errors.append(UnknownProperty(str(unknown), nearest(str(unknown), names), names, path))
        resolved_names.add(nearest(str(unknown), [name for name in names if name not in values]))
    more = [name for name in values if name not in schema] if ANY_NAME in schema else []
    for name in [*(key for key in schema if key != ANY_NAME), *more]:
        prop = property_of(schema, name)
        if name not in values and prop.required and prop.default is None:
            if name not in resolved_names:
                errors.append(PropertyError(f"Property {name} not assigned", path))
        elif name in values or name not in resolved_names:
            yield name, prop, name in values


def _resolve_members(
    schema: Mapping[str, Property], values: JsonMap, path: Path, errors: list[PropertyError]
) -> dict[str, Json]:
    resolved: dict[str, Json] = {}
    values = renamed(schema, values)
    for name, prop, is_given in _members(schema, values, path, errors):
        has_value = is_given or prop.default is not None
        resolved[name] = _convert(prop, values.get(name), (*path, name), errors) if has_value else None
    return resolved


def _convert(prop: Property, value: Json, path: Path, errors: list[PropertyError]) -> Json:
    """Return the converted and checked value; None means the default or the empty value.

    :param errors: gets the errors of the value; if there are any, nothing may be done with the value.
    """
    if value is None:
        value = prop.default
    try:
        if prop.type == "any":
            converted = copy.deepcopy(value)
        elif value is None:
            converted = EMPTY[prop.type]()
        else:
            converted = CONVERTERS[prop.type](value)
    except ValueError as error:
        hint = "" if prop.type not in ("integer", "number") else _unit_hint(prop, value, path)
        errors.append(PropertyError(f"{error}{hint}", path))
        return None
    before = len(errors)
    if isinstance(prop.schema, Mapping):
        converted = _resolve_members(prop.schema, converted, path, errors)
    elif prop.schema is not None:
        converted = [_convert(prop.schema, item, (*path, i), errors) for i, item in enumerate(converted)]
    if prop.constraints and len(errors) == before:
        _check(prop, converted, path, errors)
    return converted


def _unit_hint(prop: Property, value: Json, path: Path) -> str:
    name = next((part for part in reversed(path) if isinstance(part, str)), "it")
    return unit_hint(name, prop.description, value)


def _check(prop: Property, value: Json, path: Path, errors: list[PropertyError]) -> None:
    for constraint in prop.constraints:
        try:
            constraint.check(value)
        except (ConstraintError, LimitExceeded) as error:
            text = error.message if isinstance(error, LimitExceeded) else str(error)
            errors.append(PropertyError(text, path))
            return


def asks_cloud(schema: "Mapping[str, Property] | Property | None") -> bool:
    """Return whether a property of the schema has a constraint that only the cloud can check."""
    if isinstance(schema, Property):
        return any(_of_cloud(item) for item in schema.constraints) or asks_cloud(schema.schema)
    return any(asks_cloud(prop) for prop in (schema or {}).values())


def custom_values(
    schema: Mapping[str, Property], residuals: Json
) -> Iterator[tuple[Path, Custom, Json, bool]]:
    """Yield the given values that are known and that only the cloud can check; defaults are trusted.

    :param residuals: properties that validate_properties has accepted.
    :returns: the path of each, the constraint, the value, and whether it is a secret.
    """
    for name, tree in members(residuals).items():
        prop = property_of(schema, name)
        for path, constraint, value in _custom_values(prop, tree, (name,)):
            yield path, constraint, value, prop.sensitive


def _custom_values(prop: Property, tree: Json, path: Path) -> Iterator[tuple[Path, Custom, Json]]:
    for constraint in filter(_of_cloud, prop.constraints):
        if tree is not None and not is_deferred(tree):
            yield path, typing.cast(Custom, constraint), plain(tree)
    if isinstance(prop.schema, Mapping):
        for name, inner in members(tree).items():
            yield from _custom_values(property_of(prop.schema, name), inner, (*path, name))
    elif prop.schema is not None and isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _custom_values(prop.schema, item, (*path, index))


def _of_cloud(constraint: Constraint) -> bool:
    return isinstance(constraint, Custom) and constraint.check_name in OF_CLOUD


def _known_members(
    schema: Mapping[str, Property], values: JsonMap, path: Path, errors: list[PropertyError]
) -> dict[str, Json]:
    resolved: dict[str, Json] = {}
    values = renamed(schema, values)
    for name, prop, is_given in _members(schema, values, path, errors):
        if is_given and is_deferred(values[name]):
            _check_partly(prop, values[name], (*path, name), errors)
        elif is_given or prop.default is not None:
            before = len(errors)
            value = _convert(prop, plain(values[name]) if is_given else None, (*path, name), errors)
            if len(errors) == before:
                resolved[name] = value
        else:
            resolved[name] = None
    return resolved


def _check_partly(prop: Property, tree: Json, path: Path, errors: list[PropertyError]) -> None:
    """Check the known parts of a tree with deferred ones; its constraints wait for the step."""
    if is_node(tree) and tree[FN] != "literal":
        return
    tree = members(tree) if is_node(tree) else tree
    kind = "map" if isinstance(tree, dict) else "list"
    if prop.type not in ("any", kind):
        errors.append(PropertyError(f"Value must be of type {prop.type}, not {kind}", path))
    elif isinstance(prop.schema, Mapping):
        _known_members(prop.schema, tree, path, errors)
    elif prop.schema is not None:
        for index, item in enumerate(tree):
            if is_deferred(item):
                _check_partly(prop.schema, item, (*path, index), errors)
            else:
                _convert(prop.schema, plain(item), (*path, index), errors)
