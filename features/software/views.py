"""Views of software configs and deployments, in Heat's shapes; secrets of templates are masked."""

from ...db.software import ListedConfig, ListedDeployment, StoredConfig, StoredDeployment
from ...observe.instants import iso
from ...sealing.sealer import Sealer
from ...sealing.software import SoftwareValue, opened
from ...shapes import Json


def config_summary(config: ListedConfig, *, with_project: bool = False) -> dict[str, Json]:
    """Return the view of a config in a list.

    :param with_project: configs of all projects are listed.
    """
    view: dict[str, Json] = {
        "id": config.id,
        "name": config.name,
        "group": config.tool,
        "creation_time": iso(config.created_at),
    }
    return {**view, "project": config.project_id} if with_project else view


def config_view(config: StoredConfig, sealer: Sealer) -> dict[str, Json]:
    """Return the view of a config."""
    return {**config_summary(config), **_body_of(sealer, config).masked()}


def guest_config_view(config: StoredConfig, sealer: Sealer) -> dict[str, Json]:
    """Return a config as the guest that applies it reads it: with its secrets."""
    return {**config_summary(config), **_body_of(sealer, config).value}


def deployment_summary(deployment: ListedDeployment) -> dict[str, Json]:
    """Return the view of a deployment in a list, without its values."""
    summary: dict[str, Json] = {
        "id": deployment.id,
        "server_id": deployment.server_id,
        "action": deployment.action,
        "status": deployment.status,
        "status_reason": deployment.reason,
        "config_id": deployment.config_id,
        "creation_time": iso(deployment.created_at),
    }
    if deployment.updated_at is not None:
        summary["updated_time"] = iso(deployment.updated_at)
    return summary


def deployment_view(deployment: StoredDeployment, sealer: Sealer) -> dict[str, Json]:
    """Return the view of a deployment."""
    input_values, output_values = _values_of(sealer, deployment)
    values = {"input_values": input_values.masked(), "output_values": output_values.masked()}
    return {**deployment_summary(deployment), **values}


def _body_of(sealer: Sealer, config: StoredConfig) -> SoftwareValue:
    """Return the body of a config; see `config_body`."""
    return opened(sealer.of_software(config.project_id), config.body)


def _values_of(sealer: Sealer, deployment: StoredDeployment) -> tuple[SoftwareValue, SoftwareValue]:
    """Return the values of a deployment's inputs and outputs; NOTHING: it has none."""
    project_sealer = sealer.of_software(deployment.project_id)
    return opened(project_sealer, deployment.input_values), opened(project_sealer, deployment.output_values)
