"""Software configs and deployments as rows of Heat's; pure.  Heat stores their contents in clear."""

from ....db.software import StoredConfig, StoredDeployment
from ....sealing import software
from ....sealing.sealer import BoundSealer
from ..heat.rows import HeatConfig, HeatDeployment


def heat_config(config: StoredConfig, sealer: BoundSealer) -> HeatConfig:
    """Return a config.

    :param sealer: sealer of the project's software.
    """
    body = software.opened(sealer, config.body).value or {}
    return HeatConfig(config.id, config.project_id, config.name, config.tool, body, config.created_at)


def heat_deployment(deployment: StoredDeployment, sealer: BoundSealer) -> HeatDeployment:
    """Return a deployment; see heat_config for the sealer."""
    return HeatDeployment(
        id=deployment.id,
        project_id=deployment.project_id,
        config_id=deployment.config_id,
        server_id=deployment.server_id,
        action=deployment.action,
        status=deployment.status,
        reason=deployment.reason,
        created_at=deployment.created_at,
        updated_at=deployment.updated_at,
        input_values=software.opened(sealer, deployment.input_values).value or {},
        output_values=software.opened(sealer, deployment.output_values).value or {},
    )
