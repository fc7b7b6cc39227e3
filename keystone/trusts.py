"""Keystone's trusts: the service's account may act for a user, in one project, with some of their roles."""

import contextlib
import functools
import time
from collections.abc import Callable, Sequence

from keystoneauth1 import exceptions
from keystoneauth1.plugin import AUTH_INTERFACE
from keystoneauth1.session import Session

from ..resources.contract.cloud import Trustor
from ..shapes import Json
from .delegated_auth import CredentialGone, DelegationRefused, KeystoneUnavailable, NoAnswer, unanswered

KEPT = 1024
"""Sessions that are kept with their tokens, those used last."""
IDENTITY = {"service_type": "identity", "interface": AUTH_INTERFACE, "min_version": "3"}
MARK = "stoker_delegation"
"""Attribute of a trust that names its delegation.  Keystone keeps attributes that it does not know."""
PAUSES = (0.25, 0.5, 1.0, 2.0)
"""Seconds before each repetition of a trust's creation."""
REFUSALS = 2
"""Repetitions of a creation that is refused by 403 or 404, as a Keystone under load may refuse any."""
_DOUBTFUL = (exceptions.Forbidden, exceptions.NotFound)
_REFUSED = (exceptions.Unauthorized, exceptions.Forbidden, exceptions.BadRequest, exceptions.NotFound)


class KeystoneTrusts:
    """Implements delegated_auth.TrustProvider.

    As in Heat the trust impersonates the user: services see the user act.  It ends with the stack, the user,
    or the user's roles.

    :param make_session: a session of the service's own account; with a trust's id, scoped to that.
    :param roles: names of the roles that are delegated; empty: all that the user has.
    :param redelegation: a trust allows others to be made with it, as far as Keystone's configuration does.
    """

    enabled = True

    def __init__(
        self,
        make_session: Callable[[str | None], Session],
        *,
        roles: Sequence[str],
        redelegation: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._roles = roles
        self._redelegation = redelegation
        self._sleep = sleep
        self._make = make_session
        self._own_session = functools.cache(lambda: make_session(None))
        self._session = functools.lru_cache(KEPT)(make_session)

    def delegate(self, who: Trustor, mark: str) -> Json:
        """Create a trust of the user's, and return its id as the credential.

        A creation that fails is repeated for some seconds.  Where Keystone did not answer it may have made
        the trust: that is found by its mark.
        """
        if missing := sorted({*self._roles} - {*who.roles}):
            raise DelegationRefused(f"you do not have the roles {', '.join(missing)} in the project")
        try:
            session = self._own_session()
            trust = {
                "trustor_user_id": who.user_id,
                "trustee_user_id": session.get_user_id(),
                "project_id": who.project_id,
                "impersonation": True,
                "allow_redelegation": self._redelegation,
                "roles": [{"name": name} for name in self._roles or who.roles],
                MARK: mark,
            }
        except exceptions.ClientException as error:
            raise unanswered(error, account="the service's own account") from error
        tries = 0
        may_exist = False
        while True:
            try:
                return {"trust": self._create(session, trust, who.token)}
            except exceptions.ClientException as error:
                may_exist = may_exist or not isinstance(error, _REFUSED)
                if tries >= _repetitions(error):
                    if may_exist:
                        raise unanswered(error, NoAnswer) from error
                    raise DelegationRefused(str(error)) from error
            self._sleep(PAUSES[tries])
            tries += 1
            with contextlib.suppress(KeystoneUnavailable):
                if may_exist and (trusts := self.marked(mark)):
                    return trusts[0]

    @staticmethod
    def _create(session: Session, trust: Json, token: str) -> str:
        answer = session.post(
            "/OS-TRUST/trusts",
            json={"trust": trust},
            endpoint_filter=IDENTITY,
            authenticated=False,
            headers={"X-Auth-Token": token},
        )
        return str(answer.json()["trust"]["id"])

    def marked(self, mark: str) -> Sequence[Json]:
        """Return the trusts that Keystone has with this mark: at most one.

        Keystone can only list all trusts of the service's account.
        """
        return [{"trust": trust["id"]} for trust in self._listed() if trust.get(MARK) == mark]

    def _listed(self) -> Sequence[Json]:
        try:
            session = self._own_session()
            query = {"trustee_user_id": session.get_user_id()}
            answer = session.get("/OS-TRUST/trusts", params=query, endpoint_filter=IDENTITY)
        except exceptions.ClientException as error:
            raise unanswered(error, account="the service's own account") from error
        trusts: Sequence[Json] = answer.json()["trusts"]
        return trusts

    def held(self) -> frozenset[str]:
        """Return the ids of all trusts whose trustee is the service's own account.

        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        return frozenset(self.trustors())

    def trustors(self) -> dict[str, str]:
        """Return the user that has made each trust of the service's own account, by the trust's id.

        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        return {str(trust["id"]): str(trust["trustor_user_id"]) for trust in self._listed()}

    def session(self, credential: Json) -> Session:
        """Return a session that is scoped to the trust; it has a token, and renews it."""
        return self._checked(self._session(credential["trust"]))

    def is_good(self, credential: Json) -> bool:
        """Return whether Keystone accepts the trust now."""
        try:
            self._checked(self._make(credential["trust"]))
        except CredentialGone:
            return False
        return True

    def revoke(self, credential: Json) -> None:
        """Delete the trust; no error if it is gone."""
        trust = credential["trust"]
        try:
            # A cached session may have a token that Keystone has revoked already, so this one is new.
            session = self._checked(self._make(trust))
            session.delete(f"/OS-TRUST/trusts/{trust}", endpoint_filter=IDENTITY)
        except CredentialGone:
            return  # Keystone deletes a trust with its user, their roles or the project.
        except exceptions.ClientException as error:
            raise unanswered(error) from error

    def _checked(self, session: Session) -> Session:
        """Return the session once it has a token.

        :raises CredentialGone: Keystone does not accept the credential any more.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        try:
            session.get_token()
            return session
        except _REFUSED as error:
            refused = str(error)
        except exceptions.ClientException as error:
            raise unanswered(error) from error
        try:
            self._own_session().get_token()
        except exceptions.ClientException as error:
            raise unanswered(error, account="the service's own account") from error
        raise CredentialGone(refused)


def _repetitions(error: exceptions.ClientException) -> int:
    """Return how often a trust's creation is repeated that ends so."""
    if isinstance(error, _DOUBTFUL):
        return REFUSALS
    return 0 if isinstance(error, _REFUSED) else len(PAUSES)
