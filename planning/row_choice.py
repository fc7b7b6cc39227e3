"""Which row of a resource an update starts from, where there are several."""

import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..db.ids import ResourceId
from ..db.rows import Resource, Task
from ..db.states import DELETING, Status
from ..template.model import CompiledTemplate
from .task_definition import TaskDefinition

Json = typing.Any


def goal_of(compiled: CompiledTemplate, name: str) -> Json:
    """What a resource shall be, as its task is given it."""
    return TaskDefinition.of(compiled.resources[name]).to_json()


@dataclass(frozen=True)
class RowChoice:
    """Chooses for one update.

    :ivar unmade: rows for which nothing was made.
    :ivar going_back: what an update has replaced, and is still there, is taken again.
    """

    compiled: CompiledTemplate
    running: Mapping[ResourceId, Task]
    unmade: Collection[ResourceId]
    going_back: bool

    def among(self, existing: Iterable[Resource]) -> dict[str, Resource]:
        """For each name of the template the row that the update starts from."""
        found: dict[str, Resource] = {}
        for row in sorted(existing, key=lambda row: row.id):
            going = row.id in self.running and self.running[row.id].kind in DELETING
            if going or row.name not in self.compiled.resources:
                continue
            other = found.get(row.name)
            if other is None or self._suitability(row) >= self._suitability(other):
                found[row.name] = row
        return {n: row for n, row in found.items() if row.replaced_by is None or self._suitability(row) > -30}

    def _suitability(self, row: Resource) -> int:
        """As Heat weighs them (Stack._get_best_existing_rsrc_db), but that a replacement for which nothing
        was made yet is not preferred to what it was to replace."""
        score = 0
        if row.status == Status.FAILED or row.id in self.unmade:
            score -= 30
        if row.action == "DELETE":
            score -= 50
        if row.replaced_by is not None:
            score -= 1
        if self.going_back and row.definition == goal_of(self.compiled, row.name):
            score += 10
        return score
