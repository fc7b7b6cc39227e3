"""Results of software deployments, which guests signal."""

from sqlalchemy.engine import Connection

from ..db import resources, software
from ..db.errors import NotFound
from ..db.ids import ResourceId, WaitsOn
from ..db.rows import ReadyTasks
from ..db.software import OwningResource
from ..db.work import due_tasks
from ..resources.heat.software_io import result_of
from ..sealing.redaction import redacted
from ..sealing.software import opened, stored
from ..shapes import JsonMap
from ..template.budget import json_size
from ..template.errors import LimitExceeded
from .context import EngineContext

IN_PROGRESS = "IN_PROGRESS"
"""Status of a deployment that waits for its signal."""
LONGEST_REASON = 65536
"""Characters of a deployment's reason, which names the outputs that are errors."""


def wake_waiting(conn: Connection, resource_id: ResourceId, now: float) -> ReadyTasks:
    """Lock a resource, and wake the tasks that wait for it; those that are about to park see a change."""
    resources.advance_generation(conn, resource_id)
    return due_tasks.wake(conn, WaitsOn.resource(resource_id), now=now)


def store_result(
    conn: Connection, context: EngineContext, owned: tuple[OwningResource, str], details: JsonMap, now: float
) -> str | None:
    """Store the result that a guest has signalled; return the text of its event.

    None: the deployment waits for none, and nothing is stored.  The deployment fails if the project has no
    room for its outputs: nobody would signal them again.

    :param owned: the resource to which the signal came, and the id of its deployment.
    """
    owner, deployment_id = owned
    current = software.deployment_of(conn, owner, deployment_id, lock=True)
    if current is None or current.status != IN_PROGRESS:
        return None
    try:
        config = software.get_config(conn, current.config_id, owner.project_id)
    except NotFound:
        return None
    sealer = context.sealer.of_software(current.project_id)
    derived = opened(sealer, config.body)
    outputs = opened(sealer, current.output_values)
    result = result_of(derived.value["outputs"], outputs.value or {}, details)
    changes = {
        "status": result.status,
        "reason": redacted(result.reason, derived.secrets)[:LONGEST_REASON],
        "output_values": stored(sealer, result.outputs, derived.secrets | outputs.secrets),
        "output_size": json_size(result.outputs),
    }
    changed = software.change_deployment(conn, current, changes, now)
    try:
        context.settings.software.check_bytes(conn, current.project_id)
    except LimitExceeded as error:
        failure = {"status": "FAILED", "reason": f"The outputs are not stored: {error}"}
        before_it = {"output_values": current.output_values, "output_size": current.output_size}
        software.change_deployment(conn, changed, {**failure, **before_it}, now)
        return f"deployment {current.id} failed: its outputs are not stored"
    return f"deployment {current.id} {result.event}"
