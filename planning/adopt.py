"""Adoption: a stack that takes over what is there already."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..db.states import TaskKind
from ..resources.nested.base import ADOPTED
from ..resources.registry import ResourceRegistry
from ..template.residual import sealed
from .plan import Plan
from .requests import AdoptedResource

Json = typing.Any


def adopting(
    plan: Plan,
    adopted: Mapping[str, AdoptedResource],
    seal: Callable[[Json], str],
    registry: ResourceRegistry,
) -> Plan:
    """The plan of a creation, turned into one that takes over what is there.

    A nested stack is made anew, and takes over what the other one had: so no document can name a stack that
    is somebody else's.

    Data and metadata may hold secrets of which nobody knows yet, so all of both is sealed until the
    resource's step stores them as it stores those of every resource.
    """
    definitions = {task.resource_id: task.definition for task in plan.tasks}
    rows = []
    for row in plan.resources:
        found = adopted.get(row.name, AdoptedResource())
        data = dict(found.data)
        if registry.is_nested(row.plugin):
            found = replace(found, physical_id=None)
            if found.nested is not None:
                data[ADOPTED] = {name: found.nested.get(name) for name in ("template", "resources")}
        row = replace(
            row,
            # With what they are to be adopted as: whoever goes on with it later has to know.
            definition=definitions[row.id],
            physical_id=found.physical_id,
            data=sealed(seal(data)) if data else None,
            metadata=None if found.metadata is None else sealed(seal(dict(found.metadata))),
        )
        rows.append(row)
    return replace(plan, resources=rows, tasks=[replace(task, kind=TaskKind.ADOPT) for task in plan.tasks])
