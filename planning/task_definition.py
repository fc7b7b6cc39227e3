"""The definition that a task carries: the part of the template that its worker needs; pure."""

import typing
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..db.ids import TaskId
from ..template.language import ResourceDefinition

Json = typing.Any


@dataclass(frozen=True)
class TaskDefinition:
    """The definition of one resource.

    :ivar type: as written in the template; `plugin`: what the environment makes of it.
    :ivar properties: residuals; see template/residual.py.
    :ivar insists: a permanent failure is retried too, because no user would see it.
    :ivar wanted: the requested attributes, see ResourceDefinition; the key is stored, so its name stays.
    :ivar retain: a deletion keeps the physical resource.
    """

    type: str = ""
    plugin: str = ""
    properties: Mapping[str, Json] = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    deletion_policy: str = "Delete"
    external_id: Json = None
    description: str = ""
    retain: bool = False
    insists: bool = False
    wanted: Sequence[Sequence[str | int]] = field(default_factory=list)

    @classmethod
    def of(cls, definition: ResourceDefinition) -> "TaskDefinition":
        """Return the definition of a resource of a compiled template."""
        return cls(
            type=definition.declared_type,
            plugin=definition.type,
            properties=definition.properties,
            metadata=definition.metadata,
            update_policy=definition.update_policy,
            deletion_policy=definition.deletion_policy,
            external_id=definition.external_id,
            description=definition.description,
            wanted=[list(parts) for parts in definition.requested_attributes],
        )

    def to_json(self) -> Json:
        """Return the definition as it is stored: without fields that have their default value."""
        plain = TaskDefinition()
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in fields.items() if value != getattr(plain, name)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Json] | None) -> "TaskDefinition":
        """Return a definition from its stored form."""
        return cls(**(stored or {}))


def task_key(task_id: TaskId) -> str:
    """Return the idempotency key of a task's action: the same for every attempt."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"stoker-task-{task_id}"))
