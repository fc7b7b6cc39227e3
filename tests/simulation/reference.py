"""The end of stacks by a deliberately simple reading of their requests: one order after another,
no tasks, no conductors, no faults."""

import json
import typing
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from simulation.cloud import CloudObject
from simulation.templates import NOTHING, RandomGoal, is_nested
from stoker.db.rows import Resource
from stoker.db.states import Status

Json = typing.Any
CONVERGING = ("CREATE", "UPDATE", "ROLLBACK", "RESTORE", "ADOPT")
"""Actions after whose success a stack is what its goal says."""


@dataclass
class Story:
    """One stack's.

    :ivar requested: the goal that the user requested last.
    :ivar goal: what the stack is being brought to.
    :ivar complete: the goal it had when it was complete last, or was adopted with.
    :ivar reached: what it is; None: something in between.
    :ivar mixed: what there is may come of several goals, for an update has begun and is not complete.
    """

    requested: RandomGoal
    goal: RandomGoal = NOTHING
    complete: RandomGoal = NOTHING
    reached: RandomGoal | None = None
    mixed: bool = False
    traversal: str = ""
    adopts: bool = False


@dataclass(frozen=True)
class Made:
    """Rows and objects that exist.

    :ivar rows: rows by the stack's id; a stack that is deleted has none.
    :ivar objects: objects by their physical id.
    :ivar unread: ids of resources that may show old users, for their refresh came too late.
    :ivar doubtful: ids of resources that may have the values of an update that failed.
    :ivar adopted: ids of resources that may need a nested stack by its id from before the adoption.
    """

    rows: Mapping[str, Sequence[Resource]]
    objects: Mapping[str, CloudObject]
    unread: Set[int] = frozenset()
    doubtful: Set[int] = frozenset()
    adopted: Set[int] = frozenset()

    def has_needs(self, row: Resource, needs: Sequence[str]) -> bool:
        """Return whether the thing of a resource is there, and needs these."""
        item = self.objects.get(str(row.physical_id))
        if item is None or len(item.needs) != len(needs):
            return False
        pairs = zip(item.needs, needs, strict=True)
        return all(old == new or self._is_renamed(row, old, new) for old, new in pairs)

    def _is_renamed(self, row: Resource, old: str, new: str) -> bool:
        """Return whether an adopted resource needs a nested stack that an adoption has given a new id."""
        is_old_stack = old not in self.rows and not old.startswith("thing")
        return row.id in self.adopted and is_old_stack and new in self.rows

    def holds(self, row: Resource, value: str) -> bool:
        """Return whether the thing of a resource holds a value; a picture may be of another one."""
        item = self.objects[str(row.physical_id)]
        return item.value == value or bool(item.picture) or row.id in self.doubtful


@dataclass(frozen=True)
class Wanted:
    """The resources that a stack should have.

    :ivar parameters: parameters of a nested stack, with their values.
    """

    resources: Json
    files: Json
    parameters: Mapping[str, Json] = field(default_factory=dict)
    outputs: Mapping[str, Json] = field(default_factory=dict)

    def users(self, name: str) -> set[str]:
        """Return the users of a resource that outputs show in the end."""
        names = {output["value"]["get_attr"][0] for output in self.outputs.values()}
        names_used = {
            other
            for other, resource in self.resources.items()
            if {"get_resource": name} in list(resource["properties"]["needs"]) and not is_nested(resource)
        }
        return names_used if name in names else set()

    def required(self, name: str) -> set[str]:
        """The names of those that come before this one: it refers to them, or uses what they offer."""
        properties = self.resources[name]["properties"]
        values = [*properties.get("needs", ()), properties.get("value")]
        uses = [value for value in values if isinstance(value, dict)]
        names = {use["get_resource"] for use in uses if "get_resource" in use}
        names |= {use["get_attr"][0] for use in uses if "get_attr" in use}
        used = properties.get("uses")
        for other, resource in self.resources.items():
            if used is not None and resource["properties"].get("offers") == used:
                names.add(other)
        return names

    def value(self, residual: Json, by_name: Mapping[str, Resource]) -> Json:
        """Return the value in the end, by those of the references."""
        if isinstance(residual, list):
            return [self.value(item, by_name) for item in residual]
        if not isinstance(residual, dict):
            return residual
        [(function, argument)] = residual.items()
        if function == "get_param":
            return self.parameters[argument]
        if function == "get_resource":
            return str(by_name[argument].physical_id)
        return (by_name[argument[0]].attributes or {}).get(argument[1])


class Reference:
    """The stories of all stacks, by their names."""

    def __init__(self) -> None:
        self._stories: dict[str, Story] = {}
        self._just_reached: set[str] = set()

    def asks(self, name: str, goal: RandomGoal) -> None:
        """The user is about to ask for this; it may be refused."""
        self._stories.setdefault(name, Story(goal)).requested = goal

    def goal(self, name: str) -> RandomGoal:
        """Return the goal that the stack is being brought to, or was."""
        return self._stories[name].goal

    def is_mixed(self, name: str) -> bool:
        """Return whether its goal alone does not determine each of its resources."""
        return self._stories[name].mixed

    def turns_out(self, name: str, goal: RandomGoal) -> None:
        """Take the goal for that of the last request."""
        story = self._stories[name]
        story.requested = story.goal = goal
        if story.reached is not None:
            story.reached = story.complete = goal

    def sees(self, name: str, traversal: str, action: str, status: str) -> None:
        """That is what is stored of the stack, after each transaction."""
        if name not in self._stories:
            return  # A stack of Stoker's own.
        story = self._stories[name]
        if traversal != story.traversal:
            story.traversal = traversal
            if story.adopts and action != "ROLLBACK":
                story.complete = story.goal
            story.adopts = action == "ADOPT"
            if action == "ROLLBACK":
                story.goal = story.complete
            elif action in CONVERGING:
                story.goal = story.requested
            if action in CONVERGING or action == "DELETE":
                story.reached = None
                self._just_reached.discard(name)
                story.mixed = action not in ("CREATE", "ADOPT")
        if status == Status.COMPLETE and action in CONVERGING:
            if story.reached is None:
                self._just_reached.add(name)
            story.complete = story.reached = story.goal
            story.mixed = False

    def just_reached(self) -> list[str]:
        """Return, once, the names of the stacks that have become what their goals say."""
        names = sorted(self._just_reached)
        self._just_reached.clear()
        return names

    def differences(self, name: str, stack_id: str, result: Made) -> list[str]:
        """In what the stack is not what it should be."""
        reached = self._stories[name].reached
        if reached is None:
            return []
        goal = Wanted(reached.resources, reached.files, outputs=reached.template.get("outputs", {}))
        return _differences(name, stack_id, goal, result)


def _differences(name: str, stack_id: str, goal: Wanted, result: Made) -> list[str]:
    if stack_id not in result.rows:
        return [f"{name} is not there"]
    by_name = {row.name: row for row in result.rows[stack_id]}
    if sorted(row.name for row in result.rows[stack_id]) != sorted(goal.resources):
        return [f"{name} has {sorted(by_name)} and should have {sorted(goal.resources)}"]
    faults: list[str] = []
    for n, resource in goal.resources.items():
        row = by_name[n]
        properties = resource["properties"]
        missing = {by_name[other].id for other in goal.required(n)} - set(row.requires)
        if missing:
            faults.append(f"{name}.{n} requires {row.requires} and should require {missing}, too")
        value = goal.value(properties.get("value", ""), by_name)
        needs = goal.value(properties["needs"], by_name)
        if is_nested(resource):
            body = json.loads(goal.files[resource["type"]])
            below = Wanted(body["resources"], goal.files, {"value": value, "needs": needs})
            faults += _differences(f"{name}.{n}", str(row.physical_id), below, result)
            first = [below for below in result.rows.get(str(row.physical_id), ()) if below.name == "s0"]
            address = [f"at-{below.physical_id}" for below in first]
            if [(row.attributes or {}).get("address")] != address:
                faults.append(f"{name}.{n} shows {row.attributes} and should be {address}")
            continue
        attributes = {"address": f"at-{row.physical_id}", "value": value}
        view = dict(row.attributes or {})
        users = view.pop("users", None) or []
        missing = goal.users(n) - set(users)
        if missing and row.id not in result.unread:
            faults.append(f"{name}.{n} shows the users {users} and not {missing}, which outputs ask for")
        if view != attributes:
            faults.append(f"{name}.{n} shows {row.attributes} and should show {attributes}")
        item = result.objects.get(str(row.physical_id))
        if not result.has_needs(row, needs):
            faults.append(f"{name}.{n} is {item} and should stand on {needs}")
        elif not result.holds(row, str(value)):
            faults.append(f"{name}.{n} is {item} and should hold {value!r}")
    return faults
