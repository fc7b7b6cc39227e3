"""Software configs and deployments for the steps of one claim."""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ...db import resources, software
from ...db.errors import IdTaken, NotFound
from ...db.ids import ConfigId
from ...db.software import OwningResource, StoredConfig, StoredDeployment
from ...db.states import DELETING
from ...db.work.claim import Claim
from ...engine.errors import ConfigInUse
from ...engine.quotas import QuotaName
from ...engine.quotas import SoftwareLimits as SoftwareLimits
from ...resources.contract.errors import PermanentError
from ...resources.contract.software import ConfigSpec, DeploymentSpec, DeploymentState, Software
from ...sealing.sealer import BoundSealer, SealError
from ...sealing.secrets import Secrets
from ...sealing.software import config_body, opened, stored
from ...shapes import Json
from ...template.errors import LimitExceeded
from .claimed_writes import StepDatabase

LOG = logging.getLogger(__name__)
WAITS = ("IN_PROGRESS", "Deploy data available")
ENDED = ("COMPLETE", "Not waiting for outputs signal")
"""Status and reason of a deployment, in Heat's words."""
GROWING = ("CREATE", "UPDATE")
"""Actions that may need more room than a project has."""


@dataclass(frozen=True)
class SoftwareAccess:
    """The collaborators of StepSoftware.

    :ivar sealer: of the project's configs and deployments.
    """

    database: StepDatabase
    clock: Callable[[], float]
    sealer: BoundSealer
    limits: SoftwareLimits


class StepSoftware(Software):
    """Implements resources.contract.software.Software for one step of one claim."""

    def __init__(self, claim: Claim, access: SoftwareAccess, secrets: Secrets) -> None:
        self._is_deleting = claim.task.kind in DELETING
        self._owner = OwningResource(claim.resource.id, claim.task.stack_id, claim.project_id)
        self._access = access
        self._secrets = secrets
        self._sealer = access.sealer
        self._writes = access.database.writes_of(claim)

    def config(self, config_id: str) -> ConfigSpec | None:
        config = self._access.database.read(lambda conn: self._config(conn, config_id))
        try:
            return None if config is None else self._spec(config)
        except SealError as error:
            if not self._is_deleting:
                raise
            # Else nobody could delete the stack.  There is nothing that its server could do at the deletion.
            LOG.warning(
                "Software config %s cannot be read while its deployment is deleted: %s", config_id, error
            )
            return None

    def create_config(self, config_id: str, spec: ConfigSpec, *, made_of: Json = None) -> None:
        with _refusals():
            size = self._access.limits.size_of_config(_body(spec))
        secrets = self._secrets.found_in(_body(spec))
        if self._secrets.found_in(made_of) - secrets:
            self._secrets.add(spec.config)
            secrets = self._secrets.found_in(_body(spec))
        config = self._row(software.config_made_by(config_id), spec, secrets, size)

        def store(conn: Connection) -> None:
            if not software.has_config(conn, self._owner, config_id):
                software.insert_config(conn, config)
                self._access.limits.check_config(conn, config.project_id)

        self._write(store)

    def has_config(self, config_id: str) -> bool:
        return self._access.database.read(lambda conn: software.has_config(conn, self._owner, config_id))

    def adopt_config(self, config_id: str) -> None:
        self._write(lambda conn: software.adopt_config(conn, self._owner, config_id))

    def delete_configs(self) -> None:
        def delete(conn: Connection) -> None:
            for config in software.configs_of(conn, self._owner):
                if software.is_deployed(conn, config):
                    raise ConfigInUse(config.id)
                software.delete_config(conn, config)

        self._write(delete)

    def deploy(self, deployment_id: str, spec: DeploymentSpec) -> None:
        own_id = software.deployment_made_by(deployment_id)
        config_id = software.derived_config_id(own_id, spec.key)
        limits = self._access.limits
        values = dict(spec.input_values)
        with _refusals():
            size = limits.size_of_derived(_body(spec.derived))
            input_size = limits.size_of_values(values, "input_values")
        derived = self._row(config_id, spec.derived, self._secrets.found_in(_body(spec.derived)), size)
        status, reason = WAITS if spec.waits else ENDED
        changes: dict[str, Json] = {
            "config_id": config_id,
            "input_values": stored(self._sealer, values, self._secrets.found_in(values)),
            "input_size": input_size,
            "action": spec.action,
            "status": status,
            "reason": reason,
        }

        deployment = StoredDeployment(
            id=own_id,
            project_id=derived.project_id,
            stack_id=derived.stack_id,
            resource_id=derived.resource_id,
            server_id=spec.server_id,
            created_at=derived.created_at,
            **changes,
        )

        def store(conn: Connection) -> None:
            previous = software.deployment_of(conn, self._owner, deployment_id, lock=True)
            if previous is not None and previous.config_id == config_id:
                return
            if not software.has_config(conn, self._owner, config_id):
                software.insert_config(conn, derived)
            if previous is None:
                software.insert_deployment(conn, deployment)
            else:
                software.change_deployment(conn, previous, changes, derived.created_at)
                for config in software.configs_of(conn, self._owner):
                    self._delete_derived(conn, config)
            if spec.action in GROWING:  # A project that has too much can still delete it.
                new = (QuotaName.SOFTWARE_CONFIGS, QuotaName.SOFTWARE_DEPLOYMENTS) if previous is None else ()
                limits.check_deployment(conn, deployment, *new)

        self._write(store)

    def deployment(self, deployment_id: str) -> DeploymentState | None:
        resource_id = self._owner.id

        def read(conn: Connection) -> tuple[int, StoredDeployment | None, StoredConfig | None]:
            # The generation is read first: who changes the deployment advances it.
            resource = resources.by_ids(conn, [resource_id]).get(resource_id)
            deployment = software.deployment_of(conn, self._owner, deployment_id)
            config = None if deployment is None else self._config(conn, deployment.config_id)
            return (0 if resource is None else resource.generation), deployment, config

        generation, deployment, config = self._access.database.read(read)
        if deployment is None:
            return None
        outputs = opened(self._sealer, deployment.output_values)
        for secret in outputs.secrets:
            self._secrets.add(secret)
        return DeploymentState(
            status=deployment.status or "",
            reason=deployment.reason,
            outputs=outputs.value or {},
            derived=ConfigSpec() if config is None else self._spec(config),
            generation=generation,
        )

    def adopt_deployment(self, deployment_id: str) -> None:
        self._write(lambda conn: software.adopt_deployment(conn, self._owner, deployment_id))

    def delete_deployments(self) -> None:
        def delete(conn: Connection) -> None:
            for deployment in software.deployments_of(conn, self._owner):
                software.delete_deployment(conn, deployment, self._access.clock())
            for config in software.configs_of(conn, self._owner):
                self._delete_derived(conn, config)

        self._write(delete)

    def _delete_derived(self, conn: Connection, config: StoredConfig) -> None:
        """Delete a config that was made for a deployment, unless another deployment refers to it, too."""
        if not software.is_deployed(conn, config):
            software.delete_config(conn, config)

    def _config(self, conn: Connection, config_id: str) -> StoredConfig | None:
        """Return a config of the stack's project; None: it has no such config."""
        try:
            return software.get_config(conn, config_id, self._owner.project_id)
        except NotFound:
            return None

    def _row(
        self, config_id: ConfigId, spec: ConfigSpec, secrets: Collection[str], size: int
    ) -> StoredConfig:
        if self._secrets.found_in(spec.group):
            raise PermanentError(
                "the group of a config must not hold a hidden value, because it is not secret"
            )
        return StoredConfig(
            id=config_id,
            project_id=self._owner.project_id,
            name=spec.name,
            tool=spec.group,
            body=stored(self._sealer, _body(spec), secrets),
            size=size,
            stack_id=self._owner.stack_id,
            resource_id=self._owner.id,
            created_at=self._access.clock(),
        )

    def _spec(self, config: StoredConfig) -> ConfigSpec:
        body = opened(self._sealer, config.body)
        for secret in body.secrets:
            self._secrets.add(secret)
        return ConfigSpec(config.name, config.tool, **body.value)

    def _write(self, transaction: Callable[[Connection], None]) -> None:
        with _refusals():
            self._writes.write(transaction)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn refusals inside into errors of the step.

    A config or a deployment of another owner does not exist for the step.

    :raises PermanentError: something is refused.
    """
    try:
        yield
    except (NotFound, IdTaken) as error:
        raise PermanentError(f"{error.kind} with id {error.key} not found", kind="NotFound") from error
    except (LimitExceeded, ConfigInUse) as error:
        kind = "RequestLimitExceeded" if isinstance(error, LimitExceeded) else "InvalidRestrictedAction"
        raise PermanentError(str(error), kind=kind) from error


def _body(spec: ConfigSpec) -> Json:
    return config_body(spec.config, spec.inputs, spec.outputs, spec.options)
