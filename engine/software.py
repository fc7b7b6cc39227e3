"""Software configs and deployments: the operations of the API.

Objects of other projects do not exist for it; a user who may see all projects names one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ..db import resources, software
from ..db.errors import NotFound
from ..db.ids import ResourceId, WaitsOn
from ..db.rows import ReadyTasks
from ..db.software import OwningResource, StoredConfig, StoredDeployment
from ..db.work import due_tasks
from ..resources.heat.software_io import declared_inputs, declared_outputs, result_of
from ..sealing.redaction import redacted
from ..sealing.sealer import Sealer
from ..sealing.software import SoftwareValue, config_body, opened, stored
from ..shapes import Json, JsonMap
from ..template.budget import json_size
from ..template.errors import LimitExceeded
from .context import EngineContext, announce
from .errors import ConfigInUse, UnknownConfig
from .quotas import QuotaName

IN_PROGRESS = "IN_PROGRESS"
"""Status of a deployment that waits for its signal."""
LONGEST_REASON = 65536
"""Characters of a deployment's reason, which names the outputs that are errors."""


@dataclass(frozen=True)
class NewConfig:
    """A software config that a user creates."""

    name: str | None = None
    tool: str | None = None
    config: Json = None
    inputs: Sequence[Json] = ()
    outputs: Sequence[Json] = ()
    options: JsonMap = field(default_factory=dict)


@dataclass(frozen=True)
class DeploymentValues:
    """The values of a deployment that a user gives; None: not given."""

    config_id: str | None = None
    input_values: JsonMap | None = None
    output_values: JsonMap | None = None
    action: str | None = None
    status: str | None = None
    reason: str | None = None


def create_config(context: EngineContext, project_id: str, new: NewConfig) -> StoredConfig:
    """Store a config.

    :raises PropertyError: an input or an output is wrong.
    :raises LimitExceeded: the config is too large, or the project has as many as it may have.
    """
    limits = context.settings.software
    inputs = declared_inputs(new.inputs)
    outputs = declared_outputs(new.outputs)
    body = config_body(new.config, inputs, outputs, new.options)
    config = StoredConfig(
        id=software.new_config_id(),
        project_id=project_id,
        name=new.name,
        tool=new.tool,
        body=stored(context.sealer.of_software(project_id), body),
        size=limits.size_of_config(body),
        created_at=context.clock(),
    )

    def store(conn: Connection) -> StoredConfig:
        software.insert_config(conn, config)
        limits.check_config(conn, project_id)
        return config

    return context.database.write(store)


def delete_config(context: EngineContext, config: StoredConfig) -> None:
    """Delete a config; one that is gone already is ignored.

    :raises ConfigInUse: a deployment refers to it.
    """

    def delete(conn: Connection) -> None:
        try:
            current = software.get_config(conn, config.id, config.project_id, lock=True)
        except NotFound:
            return
        if software.is_deployed(conn, current):
            raise ConfigInUse(current.id)
        software.delete_config(conn, current)

    context.database.write(delete)


def create_deployment(
    context: EngineContext, project_id: str, server_id: str, values: DeploymentValues
) -> StoredDeployment:
    """Store a deployment.

    :raises UnknownConfig: the project has no such config.
    :raises LimitExceeded: the values are too large, or project or server has as much as it may have.
    """
    limits = context.settings.software
    sealer = context.sealer.of_software(project_id)
    input_values = dict(values.input_values or {})
    input_size = limits.size_of_values(input_values, "input_values")

    def store(conn: Connection) -> StoredDeployment:
        deployment = StoredDeployment(
            id=software.new_deployment_id(),
            project_id=project_id,
            server_id=server_id,
            config_id=_lock_config(conn, project_id, values.config_id).id,
            action="INIT" if values.action is None else values.action,
            status="COMPLETE" if values.status is None else values.status,
            reason=values.reason or "",
            input_values=stored(sealer, input_values),
            input_size=input_size,
            created_at=context.clock(),
        )
        software.insert_deployment(conn, deployment)
        limits.check_deployment(conn, deployment, QuotaName.SOFTWARE_DEPLOYMENTS)
        return deployment

    return context.database.write(store)


def update_deployment(
    context: EngineContext, deployment: StoredDeployment, values: DeploymentValues
) -> StoredDeployment:
    """Change a deployment; a task of its resource that waits for it reads it again.

    As in Heat, empty values change nothing.

    :raises UnknownConfig: the project has no such config.
    :raises NotFound: the deployment was deleted meanwhile.
    :raises LimitExceeded: the reasons of create_deployment.
    """
    limits = context.settings.software
    sealer = context.sealer.of_software(deployment.project_id)
    changes: dict[str, Json] = {
        name: value
        for name, value in (
            ("config_id", values.config_id),
            ("action", values.action),
            ("status", values.status),
            ("reason", values.reason),
        )
        if value
    }
    for name, size in (("input_values", "input_size"), ("output_values", "output_size")):
        if value := getattr(values, name):
            changes[name] = stored(sealer, dict(value))
            changes[size] = limits.size_of_values(value, name)

    def change(conn: Connection) -> tuple[StoredDeployment, ReadyTasks]:
        now = context.clock()
        woken = wake_resource(conn, deployment, now)
        current = software.get_deployment(conn, deployment.id, deployment.project_id, lock=True)
        if "config_id" in changes:
            _lock_config(conn, deployment.project_id, values.config_id)
        changed = software.change_deployment(conn, current, changes, now)
        if _grows(current, changed):
            limits.check_deployment(conn, changed)
        return changed, woken

    changed, woken = context.database.write(change)
    announce(context.hints, woken)
    return changed


def delete_deployment(context: EngineContext, deployment: StoredDeployment) -> None:
    """Delete a deployment; one that is gone already is ignored."""

    def delete(conn: Connection) -> ReadyTasks:
        now = context.clock()
        woken = wake_resource(conn, deployment, now)
        try:
            current = software.get_deployment(conn, deployment.id, deployment.project_id, lock=True)
        except NotFound:
            return woken
        software.delete_deployment(conn, current, now)
        return woken

    announce(context.hints, context.database.write(delete))


def _grows(before: StoredDeployment, after: StoredDeployment) -> bool:
    """Return whether a change of a deployment needs more room, of the project or of a server."""
    sizes = [deployment.input_size + deployment.output_size for deployment in (before, after)]
    return sizes[1] > sizes[0] or after.config_id != before.config_id


def wake_resource(conn: Connection, deployment: StoredDeployment, now: float) -> ReadyTasks:
    """Wake the tasks that wait for a deployment's resource, in the transaction that changes the deployment.

    The resource's row is locked before the deployment's, as by the tasks.
    """
    return ReadyTasks() if deployment.resource_id is None else wake_waiting(conn, deployment.resource_id, now)


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
    place = context.sealer.of_software(current.project_id)
    derived = opened(place, config.body)
    before = opened(place, current.output_values)
    result = result_of(derived.value["outputs"], before.value or {}, details)
    changes = {
        "status": result.status,
        "reason": redacted(result.reason, derived.secrets)[:LONGEST_REASON],
        "output_values": stored(place, result.outputs, derived.secrets | before.secrets),
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


def _lock_config(conn: Connection, project_id: str, config_id: str | None) -> StoredConfig:
    """Keep a config that a deployment is to refer to from being deleted, and return it.

    :raises UnknownConfig: the project has no such config.
    """
    try:
        return software.get_config(conn, config_id or "", project_id, lock=True)
    except NotFound as error:
        raise UnknownConfig(config_id) from error


def body_of(sealer: Sealer, config: StoredConfig) -> SoftwareValue:
    """Return the body of a config; see `config_body`."""
    return opened(sealer.of_software(config.project_id), config.body)


def deployment_values(sealer: Sealer, deployment: StoredDeployment) -> tuple[SoftwareValue, SoftwareValue]:
    """Return the values of a deployment's inputs and outputs; NOTHING: it has none."""
    place = sealer.of_software(deployment.project_id)
    return opened(place, deployment.input_values), opened(place, deployment.output_values)
