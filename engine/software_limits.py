"""Limits of the software configs and deployments of one project."""

import typing
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import projects, software
from ..template.budget import json_size
from ..template.errors import LimitExceeded

Json = typing.Any
SIGNALLING = 65536
"""Bytes of the inputs of a derived config that say how to signal."""


@dataclass(frozen=True)
class SoftwareLimits:
    """How much a project may have of each; 0: no limit.

    :ivar configs: number of configs, with those that deployments have made.
    :ivar deployments: number of deployments.
    :ivar config_bytes: of one config, as JSON.
    :ivar deployment_bytes: of the values of one deployment's inputs, as JSON; likewise of its outputs, if a
        user gives them.  Those that its server signals have the limits of signals.
    :ivar server_bytes: of all configs that are deployed to one server: its guest reads them at once.
    :ivar total_bytes: of all configs, and of the values of all deployments.
    """

    configs: int = 0
    deployments: int = 0
    config_bytes: int = 0
    deployment_bytes: int = 0
    server_bytes: int = 0
    total_bytes: int = 0

    def size_of_config(self, body: Json) -> int:
        """Return the bytes of a config.

        :raises LimitExceeded: it is too large.
        """
        return _checked(body, "The config", "max_software_config", self.config_bytes)

    def size_of_derived(self, body: Json) -> int:
        """Return the bytes of a config that a deployment has made, with the values of its inputs.

        :raises LimitExceeded: it is too large.
        """
        limits = (self.config_bytes, self.deployment_bytes)
        most = sum(limits) + SIGNALLING if all(limits) else 0
        return _checked(body, "The config with its inputs", "max_software_config", most)

    def size_of_values(self, values: Json, kind: str) -> int:
        """Return the bytes of the values of a deployment's inputs or outputs.

        :param kind: ``input_values`` or ``output_values``.
        :raises LimitExceeded: they are too large.
        """
        return _checked(values, kind, "max_software_deployment", self.deployment_bytes)

    def check_config(self, conn: Connection, project_id: str) -> None:
        """Check that a project has no more than it may have, with a config that was stored just now.

        It is the last thing that the transaction does.  From here to its end no other one of the project
        counts, so of two requests at the same moment only one gets the last place.

        :raises LimitExceeded: it has more; the transaction must not be committed.
        """
        projects.lock(conn, project_id)
        if self.configs and software.count_configs(conn, project_id) > self.configs:
            raise LimitExceeded(_text("configs", self.configs))
        self.check_total(conn, project_id)

    def check_deployment(
        self, conn: Connection, deployment: software.StoredDeployment, *, is_new: bool = False
    ) -> None:
        """Check that a project and a server have no more than they may have, with a deployment as it is now.

        It is the last thing that the transaction does; see check_config.

        :raises LimitExceeded: they have more; the transaction must not be committed.
        """
        project_id = deployment.project_id
        projects.lock(conn, project_id)
        if is_new and self.deployments and software.count_deployments(conn, project_id) > self.deployments:
            raise LimitExceeded(_text("deployments", self.deployments))
        self.check_total(conn, project_id)
        if not self.server_bytes:
            return
        size = software.server_bytes(conn, project_id, deployment.server_id)
        if size > self.server_bytes:
            raise LimitExceeded(
                f"The configs that are deployed to the server {deployment.server_id} would have {size} "
                f"bytes; [stacks] max_software_of_server is {self.server_bytes}"
            )

    def check_total(self, conn: Connection, project_id: str) -> None:
        """Check that the configs and deployments of a project are no larger than they may be.

        It is the last thing that the transaction does; see check_config.

        :raises LimitExceeded: they are; the transaction must not be committed.
        """
        if not self.total_bytes:
            return
        projects.lock(conn, project_id)
        size = software.total_bytes(conn, project_id)
        if size > self.total_bytes:
            raise LimitExceeded(
                f"The software configs and deployments of the project would have {size} bytes; "
                f"[stacks] max_software_of_project is {self.total_bytes}. Please delete some configs."
            )


def _checked(value: Json, kind: str, option: str, most: int) -> int:
    size = json_size(value)
    if most and size > most:
        raise LimitExceeded(f"{kind} has {size} bytes, above the limit of {most} ([stacks] {option})")
    return size


def _text(kind: str, most: int) -> str:
    reached = f"You have reached the maximum software {kind} per tenant, {most}."  # prose: Heat's words
    return f"Request limit exceeded: {reached} Please delete some {kind}."
