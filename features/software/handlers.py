"""The handlers and the routes of software configs and deployments."""

import typing
from collections.abc import Callable

from sqlalchemy.engine import Connection

from ...api.described import USUAL, Description
from ...api.errors import Fault
from ...api.operations import Handler, Operation, Request, Routes
from ...api.paths import TENANT
from ...api.reply import Reply
from ...db import software
from ...db.errors import NotFound
from ...db.software import ListedDeployment, StoredConfig, StoredDeployment
from ...shapes import Json
from . import operations
from .operations import DeploymentValues, NewConfig
from .schemas import NEW_CONFIG, NEW_DEPLOYMENT, UPDATED_DEPLOYMENT
from .views import config_summary, config_view, deployment_summary, deployment_view

T = typing.TypeVar("T")


def index_configs(request: Request) -> Reply:
    """Answer GET /software_configs."""
    of_all = request.flag("global_tenant")
    if of_all:
        request.auth.authorize(request.caller, "software_configs:global_index")
    project_id = None if of_all else request.caller.project_id

    def read(conn: Connection) -> list[dict[str, Json]]:
        marker = request.one("marker") or None
        configs = software.list_configs(conn, project_id, limit=request.limit(), marker=marker)
        return [config_summary(config, with_project=of_all) for config in configs]

    return Reply({"software_configs": request.read(read)})


def show_config(request: Request) -> Reply:
    """Answer GET /software_configs/ID."""
    return Reply({"software_config": config_view(_config(request), request.services.sealer)})


def create_config(request: Request) -> Reply:
    """Answer POST /software_configs."""
    body = request.valid(NEW_CONFIG)
    new = NewConfig(
        name=body.get("name"),
        tool=body.get("group"),
        config=body.get("config"),
        inputs=body.get("inputs") or [],
        outputs=body.get("outputs") or [],
        options=body.get("options") or {},
    )
    config = operations.create_config(request.services.context, request.caller.project_id, new)
    return Reply({"software_config": config_view(config, request.services.sealer)})


def delete_config(request: Request) -> Reply:
    """Answer DELETE /software_configs/ID."""
    operations.delete_config(request.services.context, _config(request))
    return Reply(None, 204)


def index_deployments(request: Request) -> Reply:
    """Answer GET /software_deployments."""
    server_id = request.one("server_id") or None

    def read(conn: Connection) -> list[ListedDeployment]:
        marker = request.one("marker") or None
        project_id = request.caller.project_id
        return software.list_deployments(conn, project_id, server_id, limit=request.limit(), marker=marker)

    return Reply({"software_deployments": [deployment_summary(row) for row in request.read(read)]})


def metadata(request: Request) -> Reply:
    """Answer GET /software_deployments/metadata/SERVER: the configs that are deployed to the server."""
    server_id = request.path["server_id"]

    def read(conn: Connection) -> list[StoredConfig]:
        return software.deployed_configs(conn, request.caller.project_id, server_id)

    return Reply(
        {"metadata": [config_view(config, request.services.sealer) for config in request.read(read)]}
    )


def show_deployment(request: Request) -> Reply:
    """Answer GET /software_deployments/ID."""
    return _view(request, _deployment(request))


def create_deployment(request: Request) -> Reply:
    """Answer POST /software_deployments."""
    body = request.valid(NEW_DEPLOYMENT)
    deployment = operations.create_deployment(
        request.services.context, request.caller.project_id, body["server_id"], _values(body)
    )
    return _view(request, deployment)


def update_deployment(request: Request) -> Reply:
    """Answer PUT /software_deployments/ID."""
    body = request.valid(UPDATED_DEPLOYMENT)
    return _view(
        request, operations.update_deployment(request.services.context, _deployment(request), _values(body))
    )


def delete_deployment(request: Request) -> Reply:
    """Answer DELETE /software_deployments/ID."""
    operations.delete_deployment(request.services.context, _deployment(request))
    return Reply(None, 204)


def _values(body: Json) -> DeploymentValues:
    names = ("config_id", "input_values", "output_values", "action", "status")
    return DeploymentValues(
        **{name: body.get(name) for name in names},
        reason=None if body.get("status_reason") is None else str(body["status_reason"]),
    )


def _view(request: Request, deployment: StoredDeployment) -> Reply:
    return Reply({"software_deployment": deployment_view(deployment, request.services.sealer)})


def _config(request: Request) -> StoredConfig:
    return _of_path(request, "config_id", software.get_config, "Software config")


def _deployment(request: Request) -> StoredDeployment:
    return _of_path(request, "deployment_id", software.get_deployment, "Deployment")


def _of_path(
    request: Request, parameter: str, get: Callable[[Connection, str, str | None], T], noun: str
) -> T:
    """Return the config or deployment that the path names.

    :raises Fault: 404: the caller's project has no such one.
    """
    key = request.path[parameter]
    project_id = request.caller.visible_project
    try:
        return request.read(lambda conn: get(conn, key, project_id))
    except NotFound as error:
        raise Fault(404, "NotFound", f"{noun} with id {key} not found") from error


def _operation(handler: Handler, rule: str, description: Description = USUAL) -> Operation:
    return Operation(handler, rule, description=description, name=f"software_{handler.__name__}")


_NO_CONTENT = Description(statuses=(204,))
_CONFIGS = f"{TENANT}/software_configs"
_DEPLOYMENTS = f"{TENANT}/software_deployments"
ROUTES: Routes = {
    _CONFIGS: {
        "GET": _operation(
            index_configs,
            "software_configs:index",
            Description(query=frozenset({"limit", "marker", "global_tenant"})),
        ),
        "POST": _operation(create_config, "software_configs:create", Description(NEW_CONFIG)),
    },
    f"{_CONFIGS}/{{config_id}}": {
        "GET": _operation(show_config, "software_configs:show"),
        "DELETE": _operation(delete_config, "software_configs:delete", _NO_CONTENT),
    },
    _DEPLOYMENTS: {
        "GET": _operation(
            index_deployments,
            "software_deployments:index",
            Description(query=frozenset({"limit", "marker", "server_id"})),
        ),
        "POST": _operation(create_deployment, "software_deployments:create", Description(NEW_DEPLOYMENT)),
    },
    f"{_DEPLOYMENTS}/{{deployment_id}}": {
        "GET": _operation(show_deployment, "software_deployments:show"),
        "PUT": _operation(update_deployment, "software_deployments:update", Description(UPDATED_DEPLOYMENT)),
        "DELETE": _operation(delete_deployment, "software_deployments:delete", _NO_CONTENT),
    },
    f"{_DEPLOYMENTS}/metadata/{{server_id}}": {"GET": _operation(metadata, "software_deployments:metadata")},
}
