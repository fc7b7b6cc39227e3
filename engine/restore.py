"""What a stack shall be that goes back to a snapshot."""

import copy
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..db.rows import Resource
from ..planning.requests import Goal
from ..resources.errors import UnknownType
from ..resources.registry import ResourceRegistry
from ..sealing.stored import InClear
from ..template.environment import with_entries
from ..template.errors import TemplateError
from ..template.resource_settings import RESTORED, STOKER

Json = typing.Any


Inside = Callable[[Resource], Sequence[Resource]]
"""What the snapshot of a nested stack keeps, by the copy of the resource that the stack is."""


@dataclass(frozen=True)
class Restoring:
    """Turns the goal that a snapshot keeps into what the stack shall be.

    :ivar unseal: opens the token of a secret.
    """

    registry: ResourceRegistry
    unseal: Callable[[str], Json]
    inside: Inside

    def goal(self, goal: Goal, copies: Sequence[Resource]) -> Goal:
        """The snapshot's goal, with what the resources' types want to have instead.

        It is the template that is changed, as in Heat, and for what is nested, whose templates are files, the
        environment: so the next update that keeps them does not take back what was restored.

        :param goal: with the template as a dict.
        :param copies: what the snapshot keeps of the resources.
        :raises TemplateError: a type is not there any more.
        """
        template = copy.deepcopy(dict(typing.cast(dict[str, Json], goal.template)))
        resources = template.get("resources") or {}
        entries: dict[str, Json] = {}
        for row in (row for row in copies if row.name in resources):
            if below := self._entries(row):
                entries[row.name] = below
            elif wanted := self._wanted(row):
                body = resources[row.name]
                body["properties"] = {**(body.get("properties") or {}), **wanted}
        return replace(goal, template=template, environment=with_entries(goal.environment, entries))

    def _entries(self, copy_of: Resource) -> dict[str, Json]:
        """What the environment has to say of the resources inside of a nested stack."""
        found: dict[str, Json] = {}
        for row in self.inside(copy_of):
            if below := self._entries(row):
                found[row.name] = below
            elif wanted := self._wanted(row):
                found[row.name] = {STOKER: {RESTORED: dict(wanted)}}
        return found

    def _wanted(self, row: Resource) -> Mapping[str, Json]:
        try:
            plugin = self.registry.get(row.plugin)
        except UnknownType as error:
            raise TemplateError(str(error), ("resources", row.name, "type")) from error
        shown = InClear(self.unseal)
        return plugin.handle_restore(shown.residual(row.properties or {}), shown.data(row))
