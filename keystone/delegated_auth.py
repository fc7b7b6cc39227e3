"""The rights that a user delegates to a stack, for work after the user's token has expired."""

import logging
import typing
from collections.abc import Sequence
from dataclasses import dataclass

from ..resources.contract.cloud import Trustor
from ..settings import setting
from ..shapes import Json

if typing.TYPE_CHECKING:
    from keystoneauth1.session import Session

LOG = logging.getLogger(__name__)


class DelegationRefused(Exception):
    """Keystone does not let the user delegate their rights; the text says why."""


class CredentialGone(Exception):
    """Keystone does not know the credential any more, or the user that it is from."""


class KeystoneUnavailable(Exception):
    """Keystone does not answer, or fails."""


class NoAnswer(KeystoneUnavailable):
    """Keystone was asked for a credential and did not answer: it may have created one."""


def unanswered(
    error: Exception, kind: type[KeystoneUnavailable] = KeystoneUnavailable, account: str = ""
) -> KeystoneUnavailable:
    """Return the error for users, who must not see addresses inside of the cloud; the log has the rest.

    :param account: the account whose request Keystone did not answer; "": the user's.
    """
    status = getattr(error, "http_status", None)
    reason = f"it answered {status}" if isinstance(status, int) else type(error).__name__
    LOG.info("Keystone is not available: %s%s", f"{account}: " if account else "", error)
    return kind(f"{account}: {reason}" if account else reason)


@dataclass(frozen=True)
class DelegationSettings:
    """The delegation of users' rights to Stoker."""

    method: str = setting(
        "deferred_auth_method",
        "trusts",
        "Method by which Stoker acts for a user after the user's token has expired. trusts: by a trust per "
        "stack, from its user to the account of [trustee], or of [keystone_authtoken] if [trustee] names "
        "none. none: resource types that need it cannot work. Entry points add other methods. Without "
        "Keystone, or while no installed resource type needs it, nothing is delegated and Keystone is not "
        "asked.",
    )
    roles: Sequence[str] = setting(
        "trusts_delegated_roles",
        (),
        "Names of the roles to delegate. Empty: all roles that the user has in the project. With fewer a "
        "stack may do less.",
    )
    allow_redelegation: bool = setting(
        "allow_trusts_redelegation",
        False,
        "Whether further trusts can be made with the trust of a stack, as deep as Keystone allows. Stacks "
        "in another region (`region_name` of OS::Heat::Stack) need it: the orchestration service there "
        "makes a trust of its own. So do alarms with queues, for which Aodh makes one. False: a service "
        "that gets a token of the trust cannot act longer than the token. Stacks that exist already keep "
        "their trusts.",
    )


class TrustProvider(typing.Protocol):
    """One way to delegate rights.  Thread-safe.

    A credential is JSON, stored sealed: once for each stack that has no parent.
    """

    @property
    def enabled(self) -> bool:
        """Return whether stacks get a credential."""

    def delegate(self, who: Trustor, mark: str) -> Json:
        """Create a credential.

        :param mark: text that Keystone stores with the credential, for `marked`.
        :raises DelegationRefused: Keystone refuses the delegation; there is no credential.
        :raises NoAnswer: Keystone did not answer; there may be a credential.
        :raises KeystoneUnavailable: Keystone does not answer, or fails; there is no credential.
        """

    def marked(self, mark: str) -> Sequence[Json]:
        """Return the credentials that Keystone has with this mark: at most one.

        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """

    def session(self, credential: Json) -> "Session":
        """Return a session of keystoneauth's with these rights; it has a token, and renews it.

        :raises CredentialGone: Keystone does not know the credential or its user any more.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """

    def is_good(self, credential: Json) -> bool:
        """Return whether Keystone accepts the credential now.

        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """

    def revoke(self, credential: Json) -> None:
        """Revoke the rights; no error if they are gone.

        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """


class NoTrusts:
    """Implements TrustProvider for an installation that delegates no rights."""

    enabled = False

    def delegate(self, who: Trustor, mark: str) -> Json:
        """Refuse: this is never called."""
        raise DelegationRefused("[stacks] deferred_auth_method is none")

    def marked(self, mark: str) -> Sequence[Json]:
        """Return nothing: no credential exists."""
        return ()

    def session(self, credential: Json) -> "Session":
        """Refuse every credential."""
        raise CredentialGone("[stacks] deferred_auth_method is none")

    def is_good(self, credential: Json) -> bool:
        """Return False: no credential is accepted."""
        return False

    def revoke(self, credential: Json) -> None:
        """Do nothing: the credential is of no use any more."""


NO_TRUSTS = NoTrusts()
