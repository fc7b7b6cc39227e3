"""What stacks come to, by a deliberately simple reading of what they were asked for: one order after another,
no tasks, no conductors, no faults."""

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simulation.cloud import Thing
from simulation.templates import NOTHING, RandomGoal
from stoker.db.resources import Resource
from stoker.db.states import Status

Json = typing.Any
CONVERGING = ("CREATE", "UPDATE", "ROLLBACK", "RESTORE", "ADOPT")
"""Actions after whose success a stack is what its goal says."""


@dataclass
class Story:
    """One stack's.

    :ivar asked: what the user asked for last.
    :ivar goal: what the stack is being brought to.
    :ivar complete: the goal it had when it was complete last.
    :ivar reached: what it is; None: something in between.
    """

    asked: RandomGoal
    goal: RandomGoal = NOTHING
    complete: RandomGoal = NOTHING
    reached: RandomGoal | None = None
    traversal: str = ""


class Reference:
    """The stories of all stacks, by their names."""

    def __init__(self) -> None:
        self._stories: dict[str, Story] = {}

    def asks(self, name: str, goal: RandomGoal) -> None:
        """The user is about to ask for this; it may be refused."""
        self._stories.setdefault(name, Story(goal)).asked = goal

    def goal(self, name: str) -> RandomGoal:
        """What the stack is being brought to, or was."""
        return self._stories[name].goal

    def turns_out(self, name: str, goal: RandomGoal) -> None:
        """What was asked for a moment ago is this."""
        story = self._stories[name]
        story.asked = story.goal = goal
        if story.reached is not None:
            story.reached = story.complete = goal

    def sees(self, name: str, traversal: str, action: str, status: str) -> None:
        """That is what is stored of the stack, after each transaction."""
        if name not in self._stories:
            return  # A stack of Stoker's own.
        story = self._stories[name]
        if traversal != story.traversal:
            story.traversal = traversal
            if action == "ROLLBACK":
                story.goal = story.complete
            elif action in CONVERGING:
                story.goal = story.asked
            if action in CONVERGING or action == "DELETE":
                story.reached = None
        if status == Status.COMPLETE and action in CONVERGING:
            story.complete = story.reached = story.goal

    def differences(self, name: str, rows: Iterable[Resource], things: Mapping[str, Thing]) -> list[str]:
        """In what the stack is not what it should be."""
        story, by_name = self._stories[name], {row.name: row for row in rows}
        if story.reached is None:
            return []
        wanted = story.reached.resources
        if sorted(row.name for row in rows) != sorted(wanted):
            return [f"{name} has {sorted(by_name)} and should have {sorted(wanted)}"]
        physical = {n: str(row.physical_id) for n, row in by_name.items()}
        found: list[str] = []
        for n, resource in wanted.items():
            properties = resource["properties"]
            value = properties.get("value", "")
            if isinstance(value, dict):
                value = f"at-{physical[value['get_attr'][0]]}"
            attributes = {"address": f"at-{physical[n]}", "value": value}
            if by_name[n].attributes != attributes:
                found.append(f"{name}.{n} shows {by_name[n].attributes} and should show {attributes}")
            needs = tuple(physical[need["get_resource"]] for need in properties["needs"])
            if physical[n] not in things or things[physical[n]].needs != needs:
                found.append(f"{name}.{n} is {things.get(physical[n])} and should stand on {needs}")
        return found
