"""Quotas: limits of the objects of one project; and the limits of single software configs.

A default comes from the options; an admin may set another limit for a project.  A transaction that stores one
more object checks the limit as its last step, under the project's lock: requests at the same moment cannot
exceed it.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ..db import projects, software
from ..db.rows import Stack
from ..settings import Bytes, setting
from ..shapes import Json
from ..template.budget import json_size
from ..template.errors import LimitExceeded

UNLIMITED = -1
LARGEST = 2**53 - 1
"""The largest limit: browsers read larger numbers wrongly."""


class QuotaName(enum.StrEnum):
    """The quantities that quotas limit."""

    STACKS = "stacks"
    RESOURCES = "resources"
    SNAPSHOTS = "snapshots"
    GOAL_BYTES = "goal_bytes"
    SOFTWARE_CONFIGS = "software_configs"
    SOFTWARE_DEPLOYMENTS = "software_deployments"
    SOFTWARE_BYTES = "software_bytes"


@dataclass(frozen=True)
class _Kind:
    """A kind of quantity that a quota limits.

    :ivar noun: plural of the objects, as Heat calls them in the text of the error.
    :ivar deleted: plural of the objects that a user may delete for room.
    :ivar unit: unit of a quantity that is no number of objects; "" for a number.
    """

    noun: str
    deleted: str
    unit: str = ""


_KINDS: Mapping[QuotaName, _Kind] = {
    QuotaName.STACKS: _Kind("stacks", "stacks"),
    QuotaName.RESOURCES: _Kind("stacks", "stacks", "resources"),
    QuotaName.SNAPSHOTS: _Kind("snapshots", "snapshots"),
    QuotaName.GOAL_BYTES: _Kind("stacks and snapshots", "of them", "bytes"),
    QuotaName.SOFTWARE_CONFIGS: _Kind("software configs", "configs"),
    QuotaName.SOFTWARE_DEPLOYMENTS: _Kind("software deployments", "deployments"),
    QuotaName.SOFTWARE_BYTES: _Kind("software configs and deployments", "of them", "bytes"),
}


@dataclass(frozen=True)
class Quotas:
    """The quotas of all projects.

    :ivar defaults: limits of a project for which no admin has set others; -1: no limit.
    """

    defaults: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(QuotaName, UNLIMITED))

    def check(self, conn: Connection, project_id: str, *names: QuotaName) -> None:
        """Check that a project has no more than it may have, with the rows that were stored just now.

        The check is the last step of the transaction.  From here to its end no other one of the project
        counts, so of two requests at the same moment only one gets the last place.

        :raises LimitExceeded: the project has more; the transaction must not be committed.
        """
        project = projects.lock(conn, project_id)
        limits = {**self.defaults, **project.quotas}
        for name in names:
            most = limits[name]
            used = project.usage[name]
            if most != UNLIMITED and used > most:
                raise _exceeded(_KINDS[name], used, most)

    def check_room(self, conn: Connection, project_id: str, name: QuotaName) -> None:
        """Check that a project may have one more; another request may take the place before this one.

        :raises LimitExceeded: the project has as many as it may have.
        """
        project = projects.get(conn, project_id)
        most = {**self.defaults, **project.quotas}[name]
        if most != UNLIMITED and project.usage[name] >= most:
            raise _exceeded(_KINDS[name], project.usage[name], most)

    def check_growth(self, conn: Connection, before: Stack, after: Stack) -> None:
        """Check that a stack's new goal, which was stored just now, has room; see `check`.

        A goal that needs no more than the one before is never refused.

        :raises LimitExceeded: the project has more than it may have; the transaction must not be committed.
        """
        grown = {
            QuotaName.RESOURCES: after.tree_resources > before.tree_resources,
            QuotaName.GOAL_BYTES: after.goal_size > before.goal_size,
        }
        if any(grown.values()):
            self.check(conn, after.project_id, *(name for name in grown if grown[name]))


@dataclass(frozen=True)
class ProjectLimits:
    """The quotas of a project for which no admin has set others."""

    stacks: int = setting(
        "max_stacks_per_project",
        512,
        "Maximum number of stacks of a project, without nested ones; one above it is refused. An admin may "
        "create more. 0 or -1: no limit. This, and each other maximum of a project, is the default of a "
        "quota: `stoker-manage quota set` gives a project another one.",
        least=-1,
        former="max_stacks_per_tenant",
    )
    resources: int = setting(
        "max_resources_per_project",
        100_000,
        "Maximum number of resources of a project's stacks, with those of nested stacks. A request for more "
        "is refused. A nested stack whose size the request could not know fails if it exceeds the limit. 0: "
        "no limit.",
        least=0,
    )
    snapshots: int = setting(
        "max_snapshots_per_project",
        1024,
        "Maximum number of snapshots of a project's stacks; one above it is refused. 0: no limit.",
        least=0,
    )
    goal_bytes: Bytes = setting(
        "max_goals_of_project",
        1024 * 1024 * 1024,
        "Maximum size in bytes of the templates, environments, files and parameters of a project's stacks "
        "and of their snapshots, as JSON. A request for more is refused. 0: no limit.",
        least=0,
    )
    software_configs: int = setting(
        "max_software_configs_per_project",
        4096,
        "Maximum number of software configs of a project, with those that its deployments have made; one "
        "above it is refused, or fails its resource; 0: no limit.",
        least=0,
    )
    software_deployments: int = setting(
        "max_software_deployments_per_project",
        4096,
        "Maximum number of software deployments of a project; one above it is refused, or fails its "
        "resource; 0: no limit.",
        least=0,
    )
    software_bytes: Bytes = setting(
        "max_software_of_project",
        256 * 1024 * 1024,
        "Maximum size in bytes of all software configs of a project with the values of its deployments. "
        "What is above it is refused, or fails its resource; 0: no limit.",
        least=0,
    )

    def quotas(self) -> Quotas:
        """Return the quotas of all projects."""
        limits = {name: getattr(self, name) for name in QuotaName}
        return Quotas({name: limit if limit > 0 else UNLIMITED for name, limit in limits.items()})


SIGNALLING = 65536
"""Bytes of the inputs of a derived config that say how to signal."""


@dataclass(frozen=True)
class SoftwareLimits:
    """Limits of the software configs and deployments.

    :ivar quotas: quotas of projects; None: projects have none.
    """

    config_bytes: Bytes = setting(
        "max_software_config",
        2 * 1024 * 1024,
        "Maximum size of a software config in bytes, as JSON with its inputs, outputs and options. A larger "
        "one is refused, or fails its resource; 0: no limit.",
        least=0,
    )
    deployment_bytes: Bytes = setting(
        "max_software_deployment",
        1024 * 1024,
        "Maximum size in bytes of the values of a software deployment's inputs, as JSON, and of its "
        "outputs, where a user gives them. max_signal_total limits outputs that servers signal. 0: no "
        "limit.",
        least=0,
    )
    server_bytes: Bytes = setting(
        "max_software_of_server",
        8 * 1024 * 1024,
        "Maximum size in bytes of all configs that are deployed to one server. Its agent reads them at "
        "once, and the API needs ten times as much memory for that. A deployment above it is refused, or "
        "fails its resource; 0: no limit.",
        least=0,
    )
    quotas: Quotas | None = None

    def size_of_config(self, body: Json) -> int:
        """Return the bytes of a config.

        :raises LimitExceeded: the config is too large.
        """
        return _checked(body, "The config", "max_software_config", self.config_bytes)

    def size_of_derived(self, body: Json) -> int:
        """Return the bytes of a config that a deployment has made, with the values of its inputs.

        :raises LimitExceeded: the config is too large.
        """
        limits = (self.config_bytes, self.deployment_bytes)
        most = sum(limits) + SIGNALLING if all(limits) else 0
        return _checked(body, "The config with its inputs", "max_software_config", most)

    def size_of_values(self, values: Json, kind: str) -> int:
        """Return the bytes of the values of a deployment's inputs or outputs.

        :param kind: ``input_values`` or ``output_values``.
        :raises LimitExceeded: the values are too large.
        """
        return _checked(values, kind, "max_software_deployment", self.deployment_bytes)

    def check_config(self, conn: Connection, project_id: str) -> None:
        """Check that a project has no more than it may have, with a config that was stored just now.

        :raises LimitExceeded: the project has more; the transaction must not be committed.
        """
        if self.quotas is not None:
            self.quotas.check(conn, project_id, QuotaName.SOFTWARE_CONFIGS, QuotaName.SOFTWARE_BYTES)

    def check_deployment(
        self, conn: Connection, deployment: software.StoredDeployment, *names: QuotaName
    ) -> None:
        """Check that a project and a server have no more than they may have, with a deployment as it is now.

        :param names: names of the quotas that the deployment needs, besides that of bytes.
        :raises LimitExceeded: project or server have more; the transaction must not be committed.
        """
        self.check_bytes(conn, deployment.project_id, *names)
        if not self.server_bytes:
            return
        size = software.server_bytes(conn, deployment.project_id, deployment.server_id)
        if size > self.server_bytes:
            raise LimitExceeded(
                f"The configs that are deployed to the server {deployment.server_id} would have {size} "
                f"bytes; [stacks] max_software_of_server is {self.server_bytes}"
            )

    def check_bytes(self, conn: Connection, project_id: str, *names: QuotaName) -> None:
        """Check that the configs and deployments of a project are no larger than they may be.

        :param names: names of further quotas to check.
        :raises LimitExceeded: the project has more; the transaction must not be committed.
        """
        if self.quotas is not None:
            self.quotas.check(conn, project_id, *names, QuotaName.SOFTWARE_BYTES)


def _checked(value: Json, kind: str, option: str, most: int) -> int:
    size = json_size(value)
    if most and size > most:
        raise LimitExceeded(f"{kind} has {size} bytes, above the limit of {most} ([stacks] {option})")
    return size


def _exceeded(kind: _Kind, used: int, most: int) -> LimitExceeded:
    if kind.unit:
        reached = f"The {kind.noun} of the project would have {used} {kind.unit}, above its quota of {most}."
    else:
        reached = f"You have reached the maximum {kind.noun} per tenant, {most}."  # prose: Heat's words
    return LimitExceeded(f"Request limit exceeded: {reached} Please delete some {kind.deleted}.")
