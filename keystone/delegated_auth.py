"""Rights that a user hands over to a stack, for the work that is done when his token has expired."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass, field

if typing.TYPE_CHECKING:
    from keystoneauth1.session import Session

Json = typing.Any


@dataclass(frozen=True)
class Trustor:
    """Who asks for something to be done.

    :ivar token: his, valid now.
    :ivar roles: that he has in the project.
    """

    user_id: str
    project_id: str
    roles: Sequence[str]
    token: str = field(repr=False)


class DelegationRefused(Exception):
    """Keystone does not let the user hand his rights over; the text says why."""


class CredentialGone(Exception):
    """Keystone does not know the credential any more, or whom it is from."""


class KeystoneAway(Exception):
    """Keystone gives no answer, or an error of its own."""


class NoAnswer(KeystoneAway):
    """Keystone was asked for a credential and did not answer: perhaps it has made one."""


class Deferral(typing.Protocol):
    """One way to hand rights over.  Thread-safe.

    A credential is JSON, stored sealed: once for each stack that has no parent.
    """

    @property
    def wanted(self) -> bool:
        """Whether stacks get a credential."""

    def delegate(self, who: Trustor, mark: str) -> Json:
        """Make a credential.

        :param mark: is stored with it at Keystone, for `marked`.
        :raises DelegationRefused: see there; there is no credential.
        :raises NoAnswer: see there.
        :raises KeystoneAway: see there; there is no credential.
        """

    def marked(self, mark: str) -> Sequence[Json]:
        """Return the credentials that Keystone has with this mark: at most one.

        :raises KeystoneAway: see there.
        """

    def session(self, credential: Json) -> "Session":
        """A session of keystoneauth's with these rights; it has a token, and gets others when that expires.

        :raises CredentialGone: see there.
        :raises KeystoneAway: see there.
        """

    def is_good(self, credential: Json) -> bool:
        """Whether Keystone takes it now.

        :raises KeystoneAway: see there.
        """

    def revoke(self, credential: Json) -> None:
        """Take the rights back; no error if they are gone.

        :raises KeystoneAway: see there.
        """


class NoDeferral:
    """Implements Deferral for an installation that hands no rights over."""

    wanted = False

    def delegate(self, who: Trustor, mark: str) -> Json:
        """Never called."""
        raise DelegationRefused("[stacks] deferred_auth_method is none")

    def marked(self, mark: str) -> Sequence[Json]:
        """Nothing is known of any."""
        return ()

    def session(self, credential: Json) -> "Session":
        """No credential is good."""
        raise CredentialGone("[stacks] deferred_auth_method is none")

    def is_good(self, credential: Json) -> bool:
        """No credential is."""
        return False

    def revoke(self, credential: Json) -> None:
        """Nothing is known of it, and it is of no use any more."""


NO_DEFERRAL = NoDeferral()
