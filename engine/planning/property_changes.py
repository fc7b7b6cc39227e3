"""Old and new values of the properties that an update changes, as they may be shown; pure."""

import json
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass

from ...resources.contract.properties import changed, property_of, renamed, replacement_needed
from ...resources.contract.schema import Property
from ...sealing.redaction import MASK
from ...shapes import Json, JsonMap
from ...template.language import Residual
from ...template.residual import ARGS, FN, holds_secret, is_node, members

MOST_SHOWN = 1000
"""Characters of a value that are shown; of a map or a list they are those of its JSON."""
_BEFORE = 20
"""Characters that are shown before the first difference of values that are cut."""


@dataclass(frozen=True)
class PropertyChange:
    """The change of one property.

    :ivar old, new: its values as they may be shown: secrets are masked, long values are cut and are texts.
    :ivar requires_replacement: the resource cannot take the new value, so another one takes its place.
    """

    old: Json
    new: Json
    requires_replacement: bool


@dataclass(frozen=True)
class GivenProperties:
    """Properties of a resource before or after an update.

    :ivar values: the resolved values, in clear.
    :ivar tree: the residual of the values, in which only secrets are left.
    """

    values: JsonMap
    tree: Residual


def property_changes(
    schema: Mapping[str, Property],
    before: GivenProperties,
    after: GivenProperties,
    *,
    unknown: Collection[str] = (),
    hidden: Container[str] = (),
) -> dict[str, PropertyChange]:
    """Return the properties that differ, by their names in order.

    Values of sensitive properties, secrets, and values that functions make of secrets are masked.  A secret
    on one side is masked on the other one, too: a template may have begun to hide it.

    :param unknown: names whose new values are not known; they are left out.
    :param hidden: names of properties, and of entries of maps, that are masked, too.
    """
    names = changed(schema, before.values, after.values) - set(unknown)
    forced = replacement_needed(schema, names)
    changes = {}
    for name in sorted(names):
        old, new = (_displayed(schema, name, values, hidden) for values in (before, after))
        old, new = _cut(_covered(old, new), _covered(new, old))
        changes[name] = PropertyChange(old, new, requires_replacement=name in forced)
    return changes


def _displayed(
    schema: Mapping[str, Property], name: str, values: GivenProperties, hidden: Container[str]
) -> Json:
    """Return the value of a property without its secrets."""
    value = values.values.get(name)
    prop = property_of(schema, name)
    tree = values.tree
    whole = is_node(tree) and tree[FN] != "literal"  # A function makes all properties.
    subtree = tree if whole else renamed(schema, members(tree)).get(name)
    if holds_secret(subtree):
        value = MASK if whole else _without_secrets(subtree)
    return _without_hidden({name: _without_sensitive(prop, value)}, hidden)[name]


def _without_secrets(tree: Residual) -> Json:
    if is_node(tree):
        if tree[FN] != "literal":
            return MASK
        tree = tree[ARGS][0]
    if isinstance(tree, dict):
        return {key: _without_secrets(item) for key, item in tree.items()}
    return [_without_secrets(item) for item in tree] if isinstance(tree, list) else tree


def _without_sensitive(prop: Property, value: Json) -> Json:
    """Return a value with the values of sensitive properties in it masked."""
    if value is None:
        return None
    if prop.sensitive:
        return MASK
    schema = prop.schema
    if isinstance(schema, Property) and isinstance(value, list):
        return [_without_sensitive(schema, item) for item in value]
    if isinstance(schema, Mapping) and isinstance(value, dict):
        return {key: _without_sensitive(property_of(schema, key), item) for key, item in value.items()}
    return value


def _without_hidden(value: Json, names: Container[str]) -> Json:
    """Return a value with the entries of maps that have one of the names masked."""
    if isinstance(value, dict):
        return {
            key: MASK if key in names and item is not None else _without_hidden(item, names)
            for key, item in value.items()
        }
    return [_without_hidden(item, names) for item in value] if isinstance(value, list) else value


def _covered(value: Json, counterpart: Json) -> Json:
    """Return a value masked where the other one is."""
    if value is None or not _holds_mask(counterpart):
        return value
    if isinstance(value, dict) and isinstance(counterpart, dict):
        return {key: _covered(item, counterpart.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(counterpart, list) and len(value) == len(counterpart):
        return [_covered(*pair) for pair in zip(value, counterpart, strict=True)]
    return MASK


def _holds_mask(value: object) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_holds_mask, value)) if isinstance(value, list) else value == MASK


def _cut(old: Json, new: Json) -> tuple[Json, Json]:
    """Return the values; values that are too long become texts, cut around the first difference."""
    old_text, new_text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in (old, new)
    )
    same = next(
        (i for i, pair in enumerate(zip(old_text, new_text, strict=False)) if pair[0] != pair[1]), None
    )
    start = max(0, (min(len(old_text), len(new_text)) if same is None else same) - _BEFORE)
    return (
        _part(old_text, start) if len(old_text) > MOST_SHOWN else old,
        _part(new_text, start) if len(new_text) > MOST_SHOWN else new,
    )


def _part(text: str, start: int) -> str:
    end = start + MOST_SHOWN
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
