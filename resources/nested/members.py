"""The template of a group's child: one resource for each member, and outputs for what others ask of them."""

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ...template.budget import Budget
from ...template.errors import LimitExceeded
from ..context import ChildGoal
from ..errors import PermanentError

Json = typing.Any
Definition = Mapping[str, Json]
"""A resource's body in a template: type, properties, metadata …; the properties are values."""
Wanted = Sequence[str | int]
"""An attribute of a group, and the constant path below it."""

VERSION = "2018-08-31"
MOST_MEMBERS = 100_000
"""Members of a group.  Their number may come from another resource; then only a step sees it."""
REFS_MAP = "refs_map"
_REFUSED = "StackValidationFailed"
_ASKED = 50
"""Bytes of one attribute of one member in the template."""


def output_name(wanted: Wanted) -> str:
    """The output of the child, and the stored attribute of the group, that holds it."""
    return ", ".join(str(part) for part in wanted)


def group_goal(
    members: Mapping[str, Definition], values: Mapping[str, Json], *, copies: int = 1
) -> ChildGoal:
    """A child of these members.

    :param values: of its outputs, by name.
    :param copies: see ChildGoal.
    """
    outputs = {REFS_MAP: _by_name(members, lambda name: {"get_resource": name}), **values}
    template = {
        "heat_template_version": VERSION,
        "resources": dict(members),
        "outputs": {name: {"value": value} for name, value in outputs.items()},
    }
    return ChildGoal(template, generated=True, copies=copies)


def values_of(names: Sequence[str], wanted: Iterable[Wanted], maps: str) -> dict[str, Json]:
    """Outputs for what is asked of a group whose members are known by their names.

    :param maps: the attribute that gives a map instead of a list.
    """
    values: dict[str, Json] = {}
    for parts in wanted:
        first, *path = parts
        if str(first).startswith("resource."):
            _, name, *rest = str(first).split(".", 2)
            if name in names:
                values[output_name(parts)] = _of_member(name, [*rest, *path])
        elif first == maps:
            values[output_name(parts)] = _by_name(names, lambda name, path=path: _of_member(name, path))  # type: ignore[misc]
        else:
            values[output_name(parts)] = [_of_member(name, parts) for name in names]
    return values


def _of_member(name: str, path: Wanted) -> Json:
    return {"get_attr": [name, *path]} if path else {"get_resource": name}


def _by_name(names: Iterable[str], value: Callable[[str], Json]) -> dict[str, Json]:
    return {name: value(name) for name in names}


def with_index(value: Json, variable: str, name: str) -> Json:
    """The value with the member's name in the place of the variable, in all texts but the keys of maps."""
    if isinstance(value, str):
        return value.replace(variable, name)
    if isinstance(value, Mapping):
        return {key: with_index(item, variable, name) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_index(item, variable, name) for item in value]
    return value


def check_members(count: int, body: Definition, wanted: Sequence[Wanted]) -> None:
    """Refuse a group that would take too much memory, before its template is made.

    :param body: of one member.
    :param wanted: of each member.
    :raises Final: there would be too many members, or they would be too large together.
    """
    if count > MOST_MEMBERS:
        raise PermanentError(
            f"a group of {count} members is above the limit of {MOST_MEMBERS}", kind=_REFUSED
        )
    budget = Budget()
    try:
        budget.take_stored(body)
        budget.store((budget.stored + len(wanted) * _ASKED) * max(0, count - 1))
    except LimitExceeded as error:
        raise PermanentError(
            f"a group of {count} members is too large: {error.message}", kind=_REFUSED
        ) from error


def next_members(
    old: Sequence[tuple[str, Definition]],
    wanted: Callable[[str], Definition],
    fresh: Iterator[str],
    *,
    size: int,
    updates: int,
) -> dict[str, Definition]:
    """The members of a group after its next batch.

    :param old: those it has, in the order in which they are to be changed or removed.
    :param wanted: what a member of this name shall be.
    :param fresh: names for new members.
    :param size: how many members there shall be.
    :param updates: how many may be given the wanted definition in this batch, new ones among them; new ones
        are always made by it.
    """
    kept = old[max(0, len(old) - size) :] if size else []
    left = updates - (size - len(kept))
    members: dict[str, Definition] = {}
    for name, definition in kept:
        new = wanted(name)
        if left > 0 and new != definition:
            left -= 1
            definition = new
        members[name] = definition
    while len(members) < size:
        name = next(fresh)
        members[name] = wanted(name)
    return members
