"""Software configs and deployments for steps."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...shapes import Json, JsonMap


@dataclass(frozen=True)
class ConfigSpec:
    """A software config.

    :ivar inputs, outputs: declarations as in heat/software_io.py; inputs of derived configs have values.
    """

    name: str | None = None
    group: str | None = None
    config: Json = None
    inputs: Sequence[JsonMap] = ()
    outputs: Sequence[JsonMap] = ()
    options: JsonMap = field(default_factory=dict)


@dataclass(frozen=True)
class DeploymentSpec:
    """The goal to which one action brings a deployment.

    :ivar key: key of the action, the same for each of its attempts.
    :ivar derived: the config with the inputs' values, which the server's guest reads.
    :ivar waits: whether the deployment is in progress until the guest has signalled; otherwise it is complete
        at once.
    """

    server_id: str
    action: str
    key: str
    derived: ConfigSpec
    input_values: JsonMap = field(default_factory=dict)
    waits: bool = True


@dataclass(frozen=True)
class DeploymentState:
    """The present state of a deployment.

    :ivar derived: the config that the guest reads.
    :ivar generation: the generation of the step's own resource, as in `Sibling`; it is read before the rest.
    """

    status: str
    reason: str
    outputs: JsonMap
    derived: ConfigSpec
    generation: int


class Software(typing.Protocol):
    """Calls for software configs and deployments of the stack's project, which a conductor offers to steps.

    If a value that a step reads is a secret, the step treats it as a secret, too.

    Configs and deployments belong to the resource that has made or adopted them.  A step changes and deletes
    those of its own resource only, whatever ids its properties, its data and its physical id name.
    """

    def config(self, config_id: str) -> ConfigSpec | None:
        """Return a config; None: the project has no such config."""

    def create_config(self, config_id: str, spec: ConfigSpec, *, made_of: Json = None) -> None:
        """Store a config of the step's resource; a config that a lost attempt has stored stays as it is.

        :param made_of: the values of which the config was made.  If the config does not show a secret of
            these values, because it is encoded there, the whole config is a secret.
        :raises PermanentError: the project has reached its quota of configs.
        """

    def has_config(self, config_id: str) -> bool:
        """Return whether a config belongs to the step's resource."""

    def adopt_config(self, config_id: str) -> None:
        """Give the step's resource a config that belongs to nobody.

        :raises PermanentError: the project has no such config, or it belongs to another resource.
        """

    def delete_configs(self) -> None:
        """Delete the configs of the step's resource.

        :raises PermanentError: a deployment refers to one.
        """

    def deploy(self, deployment_id: str, spec: DeploymentSpec) -> None:
        """Store a deployment of the step's resource, or bring the present one to another action.

        An action that a lost attempt has stored already stays as it is.

        :raises PermanentError: the project has reached its quota of deployments, or the id is another one's.
        """

    def deployment(self, deployment_id: str) -> DeploymentState | None:
        """Return a deployment; None: it does not exist, or does not belong to the step's resource."""

    def adopt_deployment(self, deployment_id: str) -> None:
        """Give the step's resource a deployment that belongs to nobody, with its derived config.

        :raises PermanentError: the project has no such deployment, or it belongs to another resource.
        """

    def delete_deployments(self) -> None:
        """Delete the deployments of the step's resource with their derived configs."""
