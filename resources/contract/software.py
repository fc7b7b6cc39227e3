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
    :ivar waits: the deployment is in progress until the guest has signalled; else it is complete at once.
    """

    server_id: str
    action: str
    key: str
    derived: ConfigSpec
    input_values: JsonMap = field(default_factory=dict)
    waits: bool = True


@dataclass(frozen=True)
class DeploymentState:
    """A deployment as it is now.

    :ivar derived: the config that the guest reads.
    :ivar generation: generation of the step's own resource, as in Sibling; read before the rest.
    """

    status: str
    reason: str
    outputs: JsonMap
    derived: ConfigSpec
    generation: int


class Software(typing.Protocol):
    """Calls for software configs and deployments of the stack's project, which a conductor offers to steps.

    A secret in a value that is read is a secret in the step, too.
    """

    def config(self, config_id: str) -> ConfigSpec | None:
        """Return a config; None: the project has no such config."""

    def create_config(self, config_id: str, spec: ConfigSpec, *, made_of: Json = None) -> None:
        """Store a config of the step's resource; one that a lost attempt has stored stays as it is.

        :param made_of: values that it was made of.  Where a secret in them cannot be found in the config,
            because it is encoded there, the whole config is a secret.
        :raises PermanentError: the project has as many as it may have.
        """

    def delete_config(self, config_id: str) -> None:
        """Delete a config; one that does not exist is ignored.

        :raises PermanentError: a deployment refers to it.
        """

    def deploy(self, deployment_id: str, spec: DeploymentSpec) -> None:
        """Store a deployment of the step's resource, or bring the present one to another action.

        An action that a lost attempt has stored already stays as it is.

        :raises PermanentError: the project has as many as it may have.
        """

    def deployment(self, deployment_id: str) -> DeploymentState | None:
        """Return a deployment; None: it does not exist."""

    def delete_deployment(self, deployment_id: str) -> None:
        """Delete a deployment with its derived config; one that does not exist is ignored."""
