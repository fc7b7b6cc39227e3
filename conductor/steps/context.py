"""The context of a running step: the calls that its resource type may make."""

import functools
import threading
import typing
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from ...db import credentials, resources
from ...db.errors import NotFound
from ...db.queries.deletions import open_deletions
from ...db.states import TaskKind
from ...db.work.claim import Claim
from ...engine.nested_stacks import NestedStacks
from ...engine.signal_urls import SignalAddresses
from ...keystone.delegated_auth import NO_TRUSTS, CredentialGone, KeystoneUnavailable, TrustProvider
from ...resources.contract.children import Children
from ...resources.contract.cloud import RemoteCloud
from ...resources.contract.context import StepContext
from ...resources.contract.errors import Cancelled, PermanentError, RetryableError
from ...resources.contract.guests import GuestAccess, Presigned, StackUser
from ...resources.contract.software import Software
from ...resources.contract.views import (
    DeletionView,
    ReferencedResource,
    ReplacementView,
    Sibling,
    StackFacts,
)
from ...sealing.sealer import Sealer
from ...sealing.secrets import Secrets
from ...sealing.stored import in_clear, metadata_in_clear
from ...shapes import Json
from .claimed_writes import StepDatabase
from .computing import Computing
from .endpoints import KEPT, Endpoints
from .shared_reads import SharedReads
from .software import SoftwareAccess, SoftwareLimits, StepSoftware

T = typing.TypeVar("T")
DELETIONS_KEPT = 0.5
"""Seconds for which the list of a stack's deletions is shared by the steps of a conductor."""

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session


@dataclass(frozen=True)
class StepServices:
    """The collaborators that the steps of all claims share.

    :ivar clock: seconds since the epoch, UTC.
    :ivar quota_wait: seconds for which a quota is waited for; 0: it is not waited for.
    """

    database: StepDatabase
    clock: Callable[[], float]
    addresses: SignalAddresses
    sealer: Sealer
    nested: NestedStacks
    quota_wait: float
    trusts: TrustProvider = NO_TRUSTS
    endpoints: Endpoints = field(default_factory=Endpoints)
    shared: SharedReads = field(default_factory=SharedReads)
    computing: Computing = field(default_factory=Computing)
    software: SoftwareLimits = SoftwareLimits()


class RunningStepContext(StepContext):
    """Implements the three parts of StepContext for one step of one claim.

    :param secrets: gets the values that the step may use, and must not show.
    :param children: makes the nested stacks that the step may change.
    :param stop: set when the step is to end.
    """

    def __init__(
        self,
        claim: Claim,
        secrets: Secrets,
        *,
        services: StepServices,
        stop: threading.Event,
        children: Callable[[], Children],
    ) -> None:
        self._claim = claim
        self._secrets = secrets
        self._services = services
        self._stop = stop
        self._make_children = children
        self._unchecked: set[Hashable] = set()

    # -- calls to the cloud ------------------------------------------------------------------------

    def now(self) -> float:
        return self._services.clock()

    def checkpoint(self) -> None:
        if self._stop.is_set():
            raise Cancelled

    def session(self) -> "Session":
        stack_id = self._claim.task.stack_id
        stored = self._services.database.read(lambda conn: credentials.of_stack(conn, stack_id))
        if stored is None:
            raise PermanentError("The stack has no credential of a user; an update by one gives it one")
        try:
            return self._services.trusts.session(self._opened(stored))
        except CredentialGone as error:
            raise PermanentError(
                f"Keystone does not take the stack's credential any more: {error}"
            ) from error
        except KeystoneUnavailable as error:
            raise RetryableError(f"Keystone: {error}") from error

    def adapter(self, service: str, version: str, microversion: str | None = None) -> "Adapter":
        # The stack's end waits for a refresh, which fails nothing, and which no event shows.
        is_hurried = self._claim.task.kind == TaskKind.REFRESH
        endpoints = self._services.endpoints
        return endpoints.adapter(self.session(), service, version, microversion, is_hurried=is_hurried)

    def remote_adapter(
        self, cloud: RemoteCloud, service: str, version: str, credential: Callable[[], Json]
    ) -> "Adapter":
        session = self.session()
        interface = (service, version)
        hide = self._secrets.add
        make = functools.partial(self._services.endpoints.remote, session, cloud, interface, credential, hide)
        if cloud.credential_secret_id is None:
            return make()[1]
        # Other stacks of the same user may have it, too, for this user may read the secret.
        key = ("remote", session.get_user_id(), cloud, service)
        secrets, adapter = self.shared(key, make, KEPT, checked_by_use=True)
        self._secrets.add(secrets)
        return adapter

    def shared(
        self, key: Hashable, make: Callable[[], T], max_age: float, *, checked_by_use: bool = False
    ) -> T:
        project_key = (self._claim.project_id, key)
        if not checked_by_use:
            return self._services.shared.get(project_key, make, max_age)
        self._unchecked.add(project_key)

        def made_now() -> T:
            self._unchecked.discard(project_key)
            return make()

        return self._services.shared.get(project_key, made_now, max_age)

    def forget_unchecked(self) -> bool:
        """Forget the kept values that are checked by use; return whether the step has used any."""
        unchecked = self._unchecked
        self._unchecked = set()
        for key in unchecked:
            self._services.shared.forget(key)
        return bool(unchecked)

    # -- reads of the stack ------------------------------------------------------------------------

    def sibling(self, name: str) -> Sibling:
        stack_id = self._claim.task.stack_id
        try:
            row = self._services.database.read(lambda conn: resources.by_name(conn, stack_id, name))
        except NotFound as error:
            raise PermanentError(f"The stack has no resource {name}") from error
        return Sibling(
            id=row.id,
            name=row.name,
            physical_id=row.physical_id,
            metadata=metadata_in_clear(row, self._secrets.open),
            generation=row.generation,
        )

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        stack_id = self._claim.task.stack_id
        read = functools.partial(resources.with_physical_id, stack_id=stack_id, physical_id=physical_id)
        row = self._services.database.read(read)
        if row is None:
            return None
        return ReferencedResource(row.plugin, self._secrets.open_value(row.data) or {}, row.name)

    def replacement(self) -> ReplacementView | None:
        resource = self._claim.resource
        other_id = resource.replaces if resource.reinstated else resource.replaced_by
        if other_id is None:
            return None
        replacement = self._services.database.read(lambda conn: resources.by_ids(conn, [other_id])).get(
            other_id
        )
        if replacement is None:
            return None
        data = self._secrets.open_value(replacement.data) or {}
        return ReplacementView(replacement.plugin, str(replacement.key), replacement.physical_id, data)

    def deletions(self) -> Sequence[DeletionView]:
        traversal = self._claim.task.traversal

        def read() -> Sequence[DeletionView]:
            rows = self._services.database.read(lambda conn: open_deletions(conn, traversal))
            return [
                DeletionView(row.task_id, row.plugin, row.physical_id, row.successors, row.is_certain)
                for row in rows
            ]

        return self._services.shared.get(("deletions", traversal), read, DELETIONS_KEPT)

    @functools.cached_property
    def children(self) -> Children:
        """Return the nested stacks; made late, for most resources have none."""
        return self._make_children()

    # -- addresses for guests and signals ----------------------------------------------------------

    def signal_url(self, resource_name: str) -> str:
        return self._services.addresses.native(self._stack, resource_name)

    def presigned(self) -> Presigned:
        """Return the address for signals that needs no token; its signature is a secret."""
        resource = self._claim.resource
        address = self._services.addresses.presigned(self._stack, resource.name, resource.id)
        self._secrets.add(address.signature)
        return address

    def signal_user(self) -> StackUser:
        """Return the account whose token is for signals; its password is a secret."""
        resource = self._claim.resource
        user = self._services.addresses.signal_user(self._stack, resource.name, resource.id)
        self._secrets.add(user.password)
        return user

    def guest_access(self) -> GuestAccess:
        resource = self._claim.resource
        access = self._services.addresses.guest_access(self._stack, resource.name, resource.id)
        self._secrets.add(access.secret_key)
        self._secrets.add(access.presigned.signature)
        return access

    # -- of a step only ----------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        if self._stop.wait(max(0.0, seconds)):
            raise Cancelled

    @functools.cached_property
    def software(self) -> Software:
        """Return the software configs and deployments of the stack's project."""
        services = self._services
        sealer = services.sealer.of_software(self._claim.project_id)
        access = SoftwareAccess(services.database, services.clock, sealer, services.software)
        return StepSoftware(self._claim, access, self._secrets)

    # -- inside ------------------------------------------------------------------------------------

    def _opened(self, credential: Json) -> Json:
        sealer = self._services.sealer.of_credential(self._claim.root_id)
        opened = in_clear(credential, sealer.open)
        self._secrets.add(opened)
        return opened

    @property
    def _stack(self) -> StackFacts:
        claim = self._claim
        return StackFacts(id=claim.task.stack_id, name=claim.stack_name, project_id=claim.project_id)
