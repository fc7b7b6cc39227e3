"""The template of a group's child: a resource for each member, and outputs for requested attributes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ...shapes import Json, JsonMap
from ...template.budget import Budget
from ...template.errors import LimitExceeded
from ..contract import ChildGoal, GroupMember, PermanentError

Definition = JsonMap
"""A resource's body in a template: type, properties, metadata …; the properties are values."""
RequestedAttribute = Sequence[str | int]
"""An attribute of a group, and the constant path below it."""

VERSION = "2018-08-31"
MOST_MEMBERS = 100_000
"""Members of a group.  Their number may come from another resource; then only a step sees it."""
REFS_MAP = "refs_map"
_REFUSED = "StackValidationFailed"
_REQUESTED = 50
"""Bytes of one attribute of one member in the template."""


def output_name(requested: RequestedAttribute) -> str:
    """Return the name of the child's output, and of the group's stored attribute, for a requested one."""
    return ", ".join(str(part) for part in requested)


def group_goal(members: Mapping[str, Definition], values: JsonMap, *, copies: int = 1) -> ChildGoal:
    """Return the goal of a child with these members.

    :param values: values of the child's outputs, by name.
    :param copies: number of resources like each member, as in ChildGoal.
    """
    outputs = {REFS_MAP: _by_name(members, lambda name: {"get_resource": name}), **values}
    template = {
        "heat_template_version": VERSION,
        "resources": dict(members),
        "outputs": {name: {"value": value} for name, value in outputs.items()},
    }
    return ChildGoal(template, generated=True, copies=copies)


def member_bodies(goal: ChildGoal) -> Mapping[str, Definition]:
    """Return the definitions of the members in the goal of a child, by name."""
    assert isinstance(goal.template, Mapping), "a generated template is a map"
    bodies: Mapping[str, Definition] = goal.template.get("resources") or {}
    return bodies


def values_of(names: Sequence[str], requested: Iterable[RequestedAttribute], maps: str) -> dict[str, Json]:
    """Return outputs for the requested attributes of a group with these members.

    :param maps: the attribute that gives a map instead of a list.
    """
    values: dict[str, Json] = {}
    for parts in requested:
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


def _of_member(name: str, path: RequestedAttribute) -> Json:
    return {"get_attr": [name, *path]} if path else {"get_resource": name}


def _by_name(names: Iterable[str], value: Callable[[str], Json]) -> dict[str, Json]:
    return {name: value(name) for name in names}


def with_index(value: Json, variable: str, name: str) -> Json:
    """Replace the variable by the member's name in all texts of the value but the keys of maps."""
    if isinstance(value, str):
        return value.replace(variable, name)
    if isinstance(value, Mapping):
        return {key: with_index(item, variable, name) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_index(item, variable, name) for item in value]
    return value


def check_members(count: int, body: Definition, requested: Sequence[RequestedAttribute]) -> None:
    """Refuse a group that would take too much memory, before its template is generated.

    :param body: the definition of one member.
    :param requested: attributes of each member.
    :raises PermanentError: there are too many members, or they are too large together.
    """
    if count > MOST_MEMBERS:
        raise PermanentError(
            f"a group of {count} members is above the limit of {MOST_MEMBERS}", kind=_REFUSED
        )
    budget = Budget()
    try:
        budget.take_stored(body)
        budget.store((budget.stored + len(requested) * _REQUESTED) * max(0, count - 1))
    except LimitExceeded as error:
        raise PermanentError(
            f"a group of {count} members is too large: {error.message}", kind=_REFUSED
        ) from error


def next_members(
    old: Sequence[GroupMember],
    define: Callable[[str], Definition],
    fresh: Iterator[str],
    *,
    size: int,
    updates: int,
) -> dict[str, Definition]:
    """Return the members of a group after its next batch.

    A member whose template is the same under another name takes the new name at once.

    :param old: its members now, with their definitions, in the order in which they are changed or removed.
    :param define: returns the new definition of a member, by name.
    :param fresh: names for new members.
    :param size: number of members after the batch.
    :param updates: how many may get the new definition in this batch, new ones included; new members always
        have it.
    """
    remaining = old[max(0, len(old) - size) :] if size else []
    updates_left = updates - (size - len(remaining))
    members: dict[str, Definition] = {}
    for member in remaining:
        new = define(member.name)
        is_same = member.has(new)
        if is_same or updates_left > 0:
            updates_left -= 0 if is_same else 1
            members[member.name] = new
        else:
            members[member.name] = member.definition or new
    while len(members) < size:
        name = next(fresh)
        members[name] = define(name)
    return members
