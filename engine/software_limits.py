"""Limits of the software configs and deployments of one project."""

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import software
from ..template.errors import LimitExceeded


@dataclass(frozen=True)
class SoftwareLimits:
    """How many a project may have of each; 0: no limit."""

    configs: int = 0
    deployments: int = 0

    def check_configs(self, conn: Connection, project_id: str) -> None:
        """Check that a project may have one more config.

        :raises LimitExceeded: it has as many as it may have.
        """
        if self.configs and software.count_configs(conn, project_id) >= self.configs:
            raise LimitExceeded(_text("configs", self.configs))

    def check_deployments(self, conn: Connection, project_id: str) -> None:
        """Check that a project may have one more deployment.

        :raises LimitExceeded: it has as many as it may have.
        """
        if self.deployments and software.count_deployments(conn, project_id) >= self.deployments:
            raise LimitExceeded(_text("deployments", self.deployments))


def _text(what: str, most: int) -> str:
    reached = f"You have reached the maximum software {what} per tenant, {most}."  # prose: Heat's words
    return f"Request limit exceeded: {reached} Please delete some {what}."
