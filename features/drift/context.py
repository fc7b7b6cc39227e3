"""The context in which types read lists and compare: calls with the rights of the stacks' users."""

import typing
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from ...conductor.steps.endpoints import Endpoints
from ...conductor.steps.shared_reads import SharedReads
from ...db.engine import Database
from ...db.ids import StackId
from ...keystone.delegated_auth import CredentialGone, KeystoneUnavailable
from ...observe.recorder import SILENT, Recorder
from ...resources.contract.cloud import RemoteCloud
from ...resources.contract.context import CloudCalls
from ...resources.contract.errors import PermanentError, RetryableError
from ...resources.registry import ResourceRegistry
from ...sealing.sealer import Sealer, SealError
from ...shapes import Json

T = typing.TypeVar("T")

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session


@dataclass(frozen=True)
class DriftServices:
    """The collaborators of all observations.

    :ivar clock: seconds since the epoch, UTC, as the database has them.
    :ivar session: returns a session with the rights of a root stack's user; see Delegations.session.
    :ivar host: name of the conductor, for events.
    """

    database: Database
    registry: ResourceRegistry
    sealer: Sealer
    clock: Callable[[], float]
    session: "Callable[[StackId], Session]"
    host: str
    endpoints: Endpoints = field(default_factory=Endpoints)
    shared: SharedReads = field(default_factory=SharedReads)
    recorder: Recorder = SILENT


class ObservationContext(CloudCalls):
    """The calls of one observation, by which types read lists and compare their members.

    :param root_id: the root of a tree of stacks, with whose rights the services are called.
    """

    def __init__(self, project_id: str, root_id: StackId, services: DriftServices) -> None:
        self._project_id = project_id
        self._root_id = root_id
        self._services = services

    def now(self) -> float:
        return self._services.clock()

    def checkpoint(self) -> None:
        """Do nothing: an observation is not cancelled, and a list has bounds."""

    def session(self) -> "Session":
        """Return a session with the rights of the user whose credential the stack has.

        :raises PermanentError: the stack has no credential that Keystone takes.
        :raises RetryableError: Keystone is unavailable.
        """
        try:
            return self._services.session(self._root_id)
        except (CredentialGone, SealError) as error:
            raise PermanentError(f"the stack's credential is of no use: {error}") from error
        except KeystoneUnavailable as error:
            raise RetryableError(f"Keystone: {error}") from error

    def adapter(self, service: str, version: str, microversion: str | None = None) -> "Adapter":
        return self._services.endpoints.adapter(self.session(), service, version, microversion)

    def remote_adapter(
        self, cloud: RemoteCloud, service: str, version: str, credential: Callable[[], Json]
    ) -> "Adapter":
        """Refuse: other clouds are not observed.

        :raises PermanentError: always.
        """
        raise PermanentError("an observation asks no other cloud")

    def shared(
        self, key: Hashable, make: Callable[[], T], max_age: float, *, checked_by_use: bool = False
    ) -> T:
        """Return the value that all observations of the project share under this key."""
        return self._services.shared.get((self._project_id, key), make, max_age)
