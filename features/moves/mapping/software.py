"""Software configs and deployments as rows of both.  Heat stores their contents in clear."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ....db.ids import ConfigId, DeploymentId
from ....db.rows import Resource
from ....db.software import StoredConfig, StoredDeployment
from ....resources.contract.plugin import ResourceType
from ....resources.heat.software_configs import ConfigType
from ....resources.heat.software_deployments import SoftwareDeployment
from ....sealing import software
from ....sealing.sealer import BoundSealer
from ....shapes import Json
from ....template.budget import json_size
from ..heat.rows import HeatConfig, HeatDeployment
from .columns import CONFIG, DEPLOYMENT

SIGNED_INPUTS = ("deploy_signal_id", "deploy_auth_url", "deploy_password")
"""Inputs that Heat adds to the config of a deployment, whose values are secrets."""
Secret = Callable[[Json], Collection[str]]
"""Returns the secrets of a resource that are in a value."""


@dataclass(frozen=True)
class SoftwareOwner:
    """A resource with the configs and deployments that are moved with it.

    :ivar row: the resource that has made them; None: they are the project's own.
    :ivar secrets: finds the secrets of the resource.
    """

    row: Resource | None = None
    secrets: Secret = field(default=lambda value: (), repr=False)


NOBODY = SoftwareOwner()


def makes_software(plugin: ResourceType) -> bool:
    """Return whether the resources of a type are configs or deployments."""
    return isinstance(plugin, ConfigType | SoftwareDeployment)


def stored_config(config: HeatConfig, sealer: BoundSealer, owner: SoftwareOwner) -> StoredConfig:
    """Return a config of Heat's as Stoker stores it.

    :param sealer: sealer of the project's software.
    """
    content = config.config
    body = software.config_body(
        content.get("config"),
        content.get("inputs") or (),
        content.get("outputs") or (),
        content.get("options") or {},
    )
    return StoredConfig(
        id=ConfigId(config.id),
        body=software.stored(sealer, body, {*_signed(body["inputs"]), *owner.secrets(body)}),
        size=json_size(body),
        stack_id=None if owner.row is None else owner.row.stack_id,
        resource_id=None if owner.row is None else owner.row.id,
        **CONFIG.to_stoker(config),
    )


def heat_config(config: StoredConfig, sealer: BoundSealer) -> HeatConfig:
    """Return a config of Stoker's as Heat stores it.

    :param sealer: sealer of the project's software.
    """
    body = software.opened(sealer, config.body).value or {}
    return HeatConfig(id=config.id, config=body, **CONFIG.to_heat(config))


def stored_deployment(
    deployment: HeatDeployment, sealer: BoundSealer, owner: SoftwareOwner
) -> StoredDeployment:
    """Return a deployment of Heat's as Stoker stores it; see stored_config for the parameters."""
    return StoredDeployment(
        id=DeploymentId(deployment.id),
        config_id=ConfigId(deployment.config_id),
        input_values=_stored(deployment.input_values, sealer, owner),
        output_values=_stored(deployment.output_values, sealer, owner),
        input_size=_size(deployment.input_values),
        output_size=_size(deployment.output_values),
        stack_id=None if owner.row is None else owner.row.stack_id,
        resource_id=None if owner.row is None else owner.row.id,
        **DEPLOYMENT.to_stoker(deployment),
    )


def heat_deployment(deployment: StoredDeployment, sealer: BoundSealer) -> HeatDeployment:
    """Return a deployment of Stoker's as Heat stores it; see heat_config for the sealer."""
    return HeatDeployment(
        id=deployment.id,
        config_id=deployment.config_id,
        input_values=software.opened(sealer, deployment.input_values).value or {},
        output_values=software.opened(sealer, deployment.output_values).value or {},
        **DEPLOYMENT.to_heat(deployment),
    )


def _stored(values: Json, sealer: BoundSealer, owner: SoftwareOwner) -> Json:
    """Return values as they are stored; Heat keeps no values as an empty object."""
    return software.stored(sealer, values, owner.secrets(values)) if values else None


def _size(values: Json) -> int:
    return json_size(values) if values else 0


def _signed(inputs: Collection[Json]) -> list[str]:
    """Return the values of inputs that are addresses with a signature, or passwords."""
    values = [item.get("value") for item in inputs if item.get("name") in SIGNED_INPUTS]
    return [str(value) for value in values if value]
