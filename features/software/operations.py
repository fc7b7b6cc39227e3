"""Software configs and deployments: the operations of the API.

Objects of other projects do not exist for it; a user who may see all projects names one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ...db import software
from ...db.errors import NotFound
from ...db.rows import ReadyTasks
from ...db.software import StoredConfig, StoredDeployment
from ...engine.context import EngineContext, announce
from ...engine.deployment_results import wake_waiting
from ...engine.errors import ConfigInUse, UnknownConfig
from ...engine.quotas import QuotaName
from ...resources.heat.software_io import declared_inputs, declared_outputs
from ...sealing.software import config_body, stored
from ...shapes import Json, JsonMap


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
        woken = _wake_resource(conn, deployment, now)
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
        woken = _wake_resource(conn, deployment, now)
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


def _lock_config(conn: Connection, project_id: str, config_id: str | None) -> StoredConfig:
    """Keep a config that a deployment is to refer to from being deleted, and return it.

    :raises UnknownConfig: the project has no such config.
    """
    try:
        return software.get_config(conn, config_id or "", project_id, lock=True)
    except NotFound as error:
        raise UnknownConfig(config_id) from error


def _wake_resource(conn: Connection, deployment: StoredDeployment, now: float) -> ReadyTasks:
    """Wake the tasks that wait for a deployment's resource, in the transaction that changes the deployment.

    The resource's row is locked before the deployment's, as by the tasks.
    """
    return ReadyTasks() if deployment.resource_id is None else wake_waiting(conn, deployment.resource_id, now)
