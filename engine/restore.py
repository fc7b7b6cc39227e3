"""The goal of a stack that is restored from a snapshot."""

import copy
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..db.rows import Resource
from ..resources.contract.errors import UnknownType
from ..resources.registry import ResourceRegistry
from ..sealing.stored import InClear
from ..shapes import Json, JsonMap
from ..template.environment import with_entries
from ..template.errors import TemplateError
from ..template.formats import format_of, section_of
from ..template.resource_settings import RESTORED, STOKER
from .planning.requests import Goal
from .tree_budget import TreeBudget

Inside = Callable[[Resource], Sequence[Resource]]
"""Returns the copies in the snapshot of a nested stack, by the copy of the resource that the stack is."""


@dataclass(frozen=True)
class Restoring:
    """Turns the goal that a snapshot keeps into the goal of the restored stack.

    :ivar unseal: opens the token of a secret.
    :ivar budget: budget of the whole tree.
    """

    registry: ResourceRegistry
    unseal: Callable[[str], Json]
    inside: Inside
    budget: TreeBudget

    def goal(self, goal: Goal, copies: Sequence[Resource]) -> Goal:
        """Return the snapshot's goal, with the properties that the resources' types restore.

        As in Heat the template is changed; for nested stacks, whose templates are files, the environment is.
        So the next update that keeps both does not undo the restoration.

        :param goal: the snapshot's goal, with the template as a dict.
        :param copies: the snapshot's copies of the resources.
        :raises TemplateError: a type is not installed any more, or the tree is too large.
        """
        template = copy.deepcopy(dict(typing.cast(dict[str, Json], goal.template)))
        form = format_of(template)
        resources = section_of(template, "resources") or {}
        properties = form.resource_keys.get("properties", "properties")
        entries: dict[str, Json] = {}
        for row in (row for row in copies if row.name in resources):
            if below := self._entries(row):
                entries[row.name] = below
            elif restored := self._restored(row):
                body = resources[row.name]
                body[properties] = {**(body.get(properties) or {}), **restored}
        return replace(goal, template=template, environment=with_entries(goal.environment, entries))

    def _entries(self, copy_of: Resource) -> dict[str, Json]:
        """Return the environment's entries for the resources of a nested stack."""
        entries: dict[str, Json] = {}
        rows = self.inside(copy_of)
        self.budget.take_rows(rows)
        with self.budget.level():
            for row in rows:
                if below := self._entries(row):
                    entries[row.name] = below
                elif restored := self._restored(row):
                    entries[row.name] = {STOKER: {RESTORED: dict(restored)}}
        return entries

    def _restored(self, row: Resource) -> JsonMap:
        try:
            plugin = self.registry.get(row.plugin)
        except UnknownType as error:
            raise TemplateError(str(error), ("resources", row.name, "type")) from error
        clear = InClear(self.unseal)
        return plugin.handle_restore(clear.residual(row.properties or {}), clear.data(row))
