"""Delegations: giving a stack a credential of its user, and revoking every credential that no stack has.

A delegation is stored before Keystone is asked, as a row of the table of credentials with a key of its own.
Keystone keeps the key with the credential.  The transaction that stores the stack stores the credential and
deletes the delegation's row.  If the stack cannot be stored the credential is revoked at once.  If the
process dies before, or Keystone does not answer, a duty finds the row, asks Keystone for the credentials
with its key, and revokes them.

One compare-and-swap of the row decides who confirms and who revokes: a request that continues after its
delegation counts as lost cannot store its stack any more.
"""

import contextlib
import logging
import typing
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import credentials, stacks
from ..db.engine import Database
from ..db.errors import NotFound, Unavailable
from ..db.ids import StackId
from ..resources.contract.cloud import Trustor
from ..sealing.sealer import Sealer
from ..shapes import Json
from ..template.residual import ARGS, sealed
from .delegated_auth import CredentialGone, DelegationRefused, KeystoneUnavailable, NoAnswer, TrustProvider

if typing.TYPE_CHECKING:
    from keystoneauth1.session import Session

LOG = logging.getLogger(__name__)
MARK = "mark"
LOST_AFTER = 600.0
"""Seconds after which a delegation that was not confirmed counts as lost: longer than any request takes."""
LATER = 60.0
"""Seconds after which a duty revokes a credential that a request failed to revoke."""


@dataclass(frozen=True)
class Delegation:
    """A delegation that is not confirmed yet.

    :ivar root_id: the root stack that gets the credential.
    :ivar key: the key of its row, and the mark at Keystone.
    :ivar until: the moment from which it counts as lost; seconds since the epoch, a whole number.
    :ivar credential: the credential in clear.
    :ivar user_id: the user whose rights it gives.
    """

    root_id: StackId
    key: StackId
    until: float
    credential: Json
    user_id: str


class Delegations:
    """Makes, stores and revokes credentials.  Thread-safe.

    :param clock: seconds since the epoch, UTC.
    """

    def __init__(
        self, *, database: Database, sealer: Sealer, trusts: TrustProvider, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._trusts = trusts
        self._clock = clock

    @contextlib.contextmanager
    def begin(self, root_id: StackId, who: Trustor) -> Iterator[Delegation | None]:
        """Create a credential, to be confirmed within the block; after an error it is revoked unless it was.

        :param root_id: id of the stack that gets the credential, which has no parent.
        :param who: the user that delegates rights; where trusts are not enabled there is no delegation.
        :raises DelegationRefused: Keystone refuses the delegation.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        delegation = self._begun(root_id, who) if self._trusts.enabled else None
        stored = False
        try:
            yield delegation
            stored = True
        finally:
            if delegation is not None and not stored:
                self._withdraw(delegation)

    def confirm(self, conn: Connection, delegation: Delegation | None) -> None:
        """Store the credential of a delegation, if there is one, as that of its stack.

        :raises KeystoneUnavailable: the delegation counts as lost.
        """
        if delegation is None:
            return
        if not credentials.confirm(conn, delegation.key, delegation.until):
            raise KeystoneUnavailable("its answer came too late; try again")
        body = self._seal(delegation.root_id, delegation.credential)
        credentials.put(conn, delegation.root_id, body, self._clock(), user_id=delegation.user_id)

    def renew(self, root_id: StackId, who: Trustor | None) -> None:
        """Give a stack a credential of the user, if it has none or Keystone does not accept its own any more.

        A stack that is deleted meanwhile, or renewed by another request, stays as it is.

        :raises DelegationRefused: Keystone refuses the delegation.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        if who is None or not self._trusts.enabled:
            return
        old = self._database.read(lambda conn: credentials.of_stack(conn, root_id))
        if old is not None and self._trusts.is_good(self._open(root_id, old)):
            return
        with contextlib.suppress(_Changed), self.begin(root_id, who) as delegation:
            self._database.write(lambda conn: self._replace(conn, delegation, root_id, old))

    def provide(self, root_id: StackId, project_id: str, who: Trustor | None) -> None:
        """Give a stack that has no credential one of the user, as one that was imported without.

        :param project_id: project of the stack; the rights that users delegate are for their own.
        :raises DelegationRefused: Keystone refuses the delegation.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        if who is None or not self._trusts.enabled or who.project_id != project_id:
            return
        if self._database.read(lambda conn: credentials.of_stack(conn, root_id)) is None:
            self.renew(root_id, who)

    def session(self, root_id: StackId) -> "Session":
        """Return a session with the rights of the user whose credential a root stack has.

        :raises CredentialGone: the stack has no credential, or Keystone does not accept it any more.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        :raises SealError: the stored credential cannot be opened.
        """
        body = self._database.read(lambda conn: credentials.of_root(conn, root_id))
        if body is None:
            raise CredentialGone("the stack has no credential of a user; an update by one gives it one")
        return self._trusts.session(self._open(root_id, body))

    def revoke(self, root_id: StackId, body: Json) -> None:
        """Revoke a stored credential, or the credentials that a lost delegation has created.

        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        :raises SealError: the stored document cannot be opened.
        """
        document = self._open(root_id, body)
        lost = isinstance(document, dict) and MARK in document
        for credential in self._trusts.marked(document[MARK]) if lost else [document]:
            self._trusts.revoke(credential)

    # -- inside ------------------------------------------------------------------------------------

    def _begun(self, root_id: StackId, who: Trustor) -> Delegation:
        key = StackId(str(uuid.uuid4()))
        now = self._clock()
        until = float(int(now + LOST_AFTER))
        body = self._seal(key, {MARK: key})
        self._database.write(lambda conn: credentials.intend(conn, key, body, until, now))
        try:
            return Delegation(root_id, key, until, self._trusts.delegate(who, key), who.user_id)
        except NoAnswer:
            raise  # Keystone may have created a credential: the row stays, so that a duty revokes it.
        except (DelegationRefused, KeystoneUnavailable):
            with contextlib.suppress(Unavailable):
                self._database.write(lambda conn: credentials.forget(conn, key))
            raise

    def _replace(self, conn: Connection, delegation: Delegation | None, root_id: StackId, old: Json) -> None:
        try:
            root = stacks.lock(conn, root_id)
        except NotFound as error:
            raise _Changed from error
        if root.deleted_at is not None or credentials.of_stack(conn, root_id) != old:
            raise _Changed
        self.confirm(conn, delegation)

    def _withdraw(self, delegation: Delegation) -> None:
        """Revoke a delegation, unless its stack has the credential.

        A commit may succeed and still report an error.
        """
        key = delegation.key
        now = self._clock()
        body = self._seal(key, delegation.credential)

        def hand_to_duty(conn: Connection) -> bool:
            # This order matters: the first statement waits for a commit that is still in progress.
            credentials.withdraw(conn, key, body, now + LATER, now)
            if stored := self._is_stored(conn, delegation):
                credentials.forget(conn, key)
            return not stored

        try:
            if self._database.write(hand_to_duty):
                self._trusts.revoke(delegation.credential)
                self._database.write(lambda conn: credentials.forget(conn, key))
        except (KeystoneUnavailable, Unavailable) as error:
            LOG.warning(
                "Credential of stack %s, which was not stored, is revoked later: %s",
                delegation.root_id,
                error,
            )

    def _is_stored(self, conn: Connection, delegation: Delegation) -> bool:
        stored = credentials.of_stack(conn, delegation.root_id)
        return stored is not None and self._open(delegation.root_id, stored) == delegation.credential

    def _seal(self, key: StackId, credential: Json) -> Json:
        return sealed(self._sealer.of_credential(key).seal(credential))

    def _open(self, key: StackId, body: Json) -> Json:
        return self._sealer.of_credential(key).open(body[ARGS][0])


class _Changed(Exception):
    """The stack was deleted, or got another credential, meanwhile."""
