"""Adoption: a stack that takes over what is there already."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..db.resources import Resource
from ..db.states import TaskKind
from ..template.residual import sealed
from .planning import Plan
from .requests import AdoptedResource

Json = typing.Any


def adopting(plan: Plan, adopted: Mapping[str, AdoptedResource], seal: Callable[[Json], str]) -> Plan:
    """The plan of a creation, turned into one that takes over what is there.

    Data and metadata may hold secrets of which nobody knows yet, so all of both is sealed until the
    resource's step stores them as it stores those of every resource.
    """
    rows = [_row(row, adopted.get(row.name, AdoptedResource()), seal) for row in plan.resources]
    return replace(plan, resources=rows, tasks=[replace(task, kind=TaskKind.ADOPT) for task in plan.tasks])


def _row(row: Resource, found: AdoptedResource, seal: Callable[[Json], str]) -> Resource:
    return replace(
        row,
        physical_id=found.physical_id,
        data=sealed(seal(dict(found.data))) if found.data else None,
        metadata=None if found.metadata is None else sealed(seal(dict(found.metadata))),
    )
