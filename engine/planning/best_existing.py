"""Which row of a resource an update starts from, where there are several; pure."""

from collections.abc import Collection, Iterable, Mapping

from ...db.ids import ResourceId
from ...db.rows import Resource, Task
from ...db.states import DELETING, Status
from ...shapes import StoredDefinition
from ...template.language import CompiledTemplate
from .plan import TaskDefinition, same_goal

UNUSABLE = -30
"""Score of a row that an update does not start from where the row was replaced."""


def goal_of(compiled: CompiledTemplate, name: str) -> StoredDefinition:
    """Return the definition that a resource shall have, as its task is given it."""
    return TaskDefinition.of(compiled.resources[name]).to_json()


def best_existing(
    existing: Iterable[Resource],
    compiled: CompiledTemplate,
    running: Mapping[ResourceId, Task],
    unmade: Collection[ResourceId],
    *,
    rolling_back: bool,
) -> dict[str, Resource]:
    """Return for each name of the template the row that the update starts from.

    The rows are weighed as in Heat (Stack._get_best_existing_rsrc_db), but a replacement that was never
    created is not preferred to the row that it was to replace.

    :param running: tasks of older traversals that still run, by resource.
    :param unmade: rows of resources that were never created.
    :param rolling_back: prefer rows that have the definition of the template already.
    """

    def score(row: Resource) -> int:
        points = 0
        if row.status == Status.FAILED or row.id in unmade:
            points -= 30
        if row.action == "DELETE":
            points -= 50
        if row.replaced_by is not None:
            points -= 1
        if rolling_back and same_goal(row.definition, goal_of(compiled, row.name)):
            points += 10
        return points

    best: dict[str, Resource] = {}
    for row in sorted(existing, key=lambda row: row.id):
        deleting = row.id in running and running[row.id].kind in DELETING
        if deleting or row.name not in compiled.resources:
            continue
        rival = best.get(row.name)
        if rival is None or score(row) >= score(rival):
            best[row.name] = row
    return {n: row for n, row in best.items() if row.replaced_by is None or score(row) > UNUSABLE}
