"""Handlers of software configs and deployments."""

import typing
from collections.abc import Callable

from sqlalchemy.engine import Connection

from ...db import software
from ...db.errors import NotFound
from ...db.software import ListedDeployment, StoredConfig, StoredDeployment
from ...engine.software import DeploymentValues, NewConfig
from ..context import Request
from ..errors import Fault
from ..request import Reply
from ..schemas import NEW_CONFIG, NEW_DEPLOYMENT, UPDATED_DEPLOYMENT
from ..views.software import config_summary, config_view, deployment_summary, deployment_view

Json = typing.Any
Row = typing.TypeVar("Row", StoredConfig, StoredDeployment)


def index_configs(call: Request) -> Reply:
    """Answer GET /software_configs."""
    of_all = call.flag("global_tenant")
    if of_all:
        call.auth.authorize(call.caller, "software_configs:global_index")
    project_id = None if of_all else call.caller.project_id

    def read(conn: Connection) -> list[dict[str, Json]]:
        marker = call.one("marker") or None
        configs = software.list_configs(conn, project_id, limit=call.limit(), marker=marker)
        return [config_summary(config, with_project=of_all) for config in configs]

    return Reply({"software_configs": call.read(read)})


def show_config(call: Request) -> Reply:
    """Answer GET /software_configs/ID."""
    return Reply({"software_config": config_view(_config(call), call.services.sealer)})


def create_config(call: Request) -> Reply:
    """Answer POST /software_configs."""
    body = call.valid(NEW_CONFIG)
    new = NewConfig(
        name=body.get("name"),
        tool=body.get("group"),
        config=body.get("config"),
        inputs=body.get("inputs") or [],
        outputs=body.get("outputs") or [],
        options=body.get("options") or {},
    )
    made = call.services.software.create_config(call.caller.project_id, new)
    return Reply({"software_config": config_view(made, call.services.sealer)})


def delete_config(call: Request) -> Reply:
    """Answer DELETE /software_configs/ID."""
    call.services.software.delete_config(_config(call))
    return Reply(None, 204)


def index_deployments(call: Request) -> Reply:
    """Answer GET /software_deployments."""
    server_id = call.one("server_id") or None

    def read(conn: Connection) -> list[ListedDeployment]:
        marker = call.one("marker") or None
        project_id = call.caller.project_id
        return software.list_deployments(conn, project_id, server_id, limit=call.limit(), marker=marker)

    return Reply({"software_deployments": [deployment_summary(row) for row in call.read(read)]})


def metadata(call: Request) -> Reply:
    """Answer GET /software_deployments/metadata/SERVER: the configs that are deployed to the server."""
    server_id = call.path["server_id"]

    def read(conn: Connection) -> list[StoredConfig]:
        return software.deployed_configs(conn, call.caller.project_id, server_id)

    return Reply({"metadata": [config_view(config, call.services.sealer) for config in call.read(read)]})


def show_deployment(call: Request) -> Reply:
    """Answer GET /software_deployments/ID."""
    return _shown(call, _deployment(call))


def create_deployment(call: Request) -> Reply:
    """Answer POST /software_deployments."""
    body = call.valid(NEW_DEPLOYMENT)
    made = call.services.software.create_deployment(call.caller.project_id, body["server_id"], _values(body))
    return _shown(call, made)


def update_deployment(call: Request) -> Reply:
    """Answer PUT /software_deployments/ID."""
    body = call.valid(UPDATED_DEPLOYMENT)
    return _shown(call, call.services.software.update_deployment(_deployment(call), _values(body)))


def delete_deployment(call: Request) -> Reply:
    """Answer DELETE /software_deployments/ID."""
    call.services.software.delete_deployment(_deployment(call))
    return Reply(None, 204)


def _values(body: Json) -> DeploymentValues:
    names = ("config_id", "input_values", "output_values", "action", "status")
    return DeploymentValues(
        **{name: body.get(name) for name in names},
        reason=None if body.get("status_reason") is None else str(body["status_reason"]),
    )


def _shown(call: Request, deployment: StoredDeployment) -> Reply:
    return Reply({"software_deployment": deployment_view(deployment, call.services.sealer)})


def _config(call: Request) -> StoredConfig:
    key = call.path["config_id"]
    return _visible(call, lambda conn: software.get_config(conn, key), f"Software config with id {key}")


def _deployment(call: Request) -> StoredDeployment:
    key = call.path["deployment_id"]
    return _visible(call, lambda conn: software.get_deployment(conn, key), f"Deployment with id {key}")


def _visible(call: Request, get: Callable[[Connection], Row], what: str) -> Row:
    """Return a row that exists for the caller.

    :raises Fault: 404.
    """
    try:
        found = call.read(get)
    except NotFound:
        found = None
    if found is None or not call.caller.may_see(found.project_id):
        raise Fault(404, "NotFound", f"{what} not found")
    return found
