"""Adoption: turning the plan of a creation into one that takes over existing resources; pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...db.states import TaskKind
from ...resources.contract.plugin import ADOPTED_ID
from ...resources.nested.base import ADOPTED
from ...resources.registry import ResourceRegistry
from ...shapes import Json
from ...template.residual import sealed
from .plan import Plan
from .requests import AdoptedResource


def plan_adoption(
    plan: Plan,
    adopted: Mapping[str, AdoptedResource],
    seal: Callable[[Json], str],
    registry: ResourceRegistry,
) -> Plan:
    """Turn the plan of a creation into one that takes over existing resources.

    A nested stack is created and takes over the resources of the adopted one, so no document can name a stack
    of another project.  What else Stoker itself stores gets its physical id from its step, which finds out
    whose it is: an adoption that fails stores no id.

    Data and metadata may hold secrets that nothing marks as such yet.  So both are sealed as a whole until
    the resource's step stores them as usual.

    :param adopted: the facts that the document states of each resource, by its name; secrets in clear.
    :param seal: makes the token of a secret.
    """
    creations = [task for task in plan.tasks if task.kind == TaskKind.CREATE]
    definitions = {task.resource_id: task.definition for task in creations}
    rows = []
    for row in plan.resources:
        entry = adopted.get(row.name, AdoptedResource())
        # Only the facts below may say what is adopted: the document's data must not pass for them.
        data = {name: value for name, value in entry.data.items() if name not in (ADOPTED, ADOPTED_ID)}
        if registry.is_nested(row.plugin):
            entry = replace(entry, physical_id=None)
            if entry.nested is not None:
                data[ADOPTED] = {name: entry.nested.get(name) for name in ("template", "resources")}
        elif registry.is_stored_here(row.plugin):
            # The data says that there is something to adopt, also to an update that comes before the step.
            data = {} if entry.physical_id is None else {**data, ADOPTED_ID: entry.physical_id}
            entry = replace(entry, physical_id=None)
        row = replace(
            row,
            # The definition is stored at once: an update that comes before the adoption compares with it.
            definition=definitions[row.id],
            physical_id=entry.physical_id,
            data=sealed(seal(data)) if data else None,
            metadata=None if entry.metadata is None else sealed(seal(dict(entry.metadata))),
        )
        rows.append(row)
    adoptions = [replace(task, kind=TaskKind.ADOPT) for task in creations]
    return replace(plan, resources=rows, tasks=[*adoptions, *plan.tasks[len(creations) :]])
