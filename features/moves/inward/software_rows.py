"""Software configs and deployments of Heat's as rows of Stoker's; pure."""

from collections.abc import Collection

from ....db.ids import ConfigId, DeploymentId
from ....db.software import StoredConfig, StoredDeployment
from ....sealing import software
from ....sealing.sealer import BoundSealer
from ....shapes import Json
from ....template.budget import json_size
from ..heat.rows import HeatConfig, HeatDeployment
from .project_software import SoftwareOwner

SIGNED_INPUTS = ("deploy_signal_id", "deploy_auth_url", "deploy_password")
"""Inputs that Heat adds to the config of a deployment, whose values are secrets."""


def config_row(config: HeatConfig, sealer: BoundSealer, owner: SoftwareOwner) -> StoredConfig:
    """Return a config.

    :param sealer: sealer of the project's software.
    """
    stored = config.config
    body = software.config_body(
        stored.get("config"),
        stored.get("inputs") or (),
        stored.get("outputs") or (),
        stored.get("options") or {},
    )
    return StoredConfig(
        id=ConfigId(config.id),
        project_id=config.project_id,
        name=config.name,
        tool=config.group,
        created_at=config.created_at,
        body=software.stored(sealer, body, {*_secrets(body["inputs"]), *owner.secrets(body)}),
        size=json_size(body),
        stack_id=None if owner.row is None else owner.row.stack_id,
        resource_id=None if owner.row is None else owner.row.id,
    )


def deployment_row(deployment: HeatDeployment, sealer: BoundSealer, owner: SoftwareOwner) -> StoredDeployment:
    """Return a deployment; see config_row for the parameters."""
    return StoredDeployment(
        id=DeploymentId(deployment.id),
        project_id=deployment.project_id,
        server_id=deployment.server_id,
        config_id=ConfigId(deployment.config_id),
        action=deployment.action,
        status=deployment.status,
        reason=deployment.reason,
        created_at=deployment.created_at,
        updated_at=deployment.updated_at,
        input_values=_stored(deployment.input_values, sealer, owner),
        output_values=_stored(deployment.output_values, sealer, owner),
        input_size=_size(deployment.input_values),
        output_size=_size(deployment.output_values),
        stack_id=None if owner.row is None else owner.row.stack_id,
        resource_id=None if owner.row is None else owner.row.id,
    )


def _stored(values: Json, sealer: BoundSealer, owner: SoftwareOwner) -> Json:
    """Return values as they are stored; Heat keeps no values as an empty object."""
    return software.stored(sealer, values, owner.secrets(values)) if values else None


def _size(values: Json) -> int:
    return json_size(values) if values else 0


def _secrets(inputs: Collection[Json]) -> list[str]:
    """Return the values of inputs that are addresses with a signature, or passwords."""
    values = [item.get("value") for item in inputs if item.get("name") in SIGNED_INPUTS]
    return [str(value) for value in values if value]
