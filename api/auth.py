"""Identifies and authorizes callers: the seam between the API and an identity service."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..keystone.delegated_auth import Trustor
from .errors import Fault

USER_LENGTH = 255
_FOR_NOBODY = frozenset({"stacks:global_index"})


@dataclass(frozen=True)
class RequestContext:
    """The caller of a request, and the project that it is for.

    :ivar credentials: what policy rules may ask for.
    :ivar everywhere: may see and change other projects' stacks, by their ids.
    :ivar trustor: the user whose rights can be delegated; None: Keystone has not named the caller.
    """

    tenant: str
    user: str | None = None
    roles: frozenset[str] = frozenset()
    credentials: Mapping[str, object] = field(default_factory=dict)
    everywhere: bool = False
    trustor: Trustor | None = None

    def may_see(self, tenant: str) -> bool:
        """Return whether the project's stacks exist for the caller."""
        return self.everywhere or tenant == self.tenant


class Authenticator(typing.Protocol):
    """Identifies callers and says what they may do."""

    def identify(self, tenant: str, headers: Mapping[str, str]) -> RequestContext:
        """Return the caller that asks for the project of the path.

        :param headers: of the request, names in upper case.
        :raises Fault: 401 or 403.
        """

    def authorize(self, caller: RequestContext, rule: str) -> None:
        """Check that the caller may do what a rule allows; it has Heat's name, e.g. ``stacks:create``.

        :raises Fault: 403.
        """

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        """Return whether the caller may have resources of a type."""


class NoAuthentication:
    """Lets everybody do everything with the project of the path; for one trusted user, or a test.

    A project header, where one is given, must name the project of the path.  Nobody sees all projects at
    once, as with Heat's default policy.
    """

    def identify(self, tenant: str, headers: Mapping[str, str]) -> RequestContext:
        """Return the caller, with the name of a user where a header gives one."""
        project = headers.get("X-PROJECT-ID") or headers.get("X-TENANT-ID")
        if project is not None and project != tenant:
            raise Fault(
                403,
                "Forbidden",
                f"You are not authorized to use project {tenant}: the request's project is {project}",
            )
        user = headers.get("X-AUTH-USER") or headers.get("X-USER-NAME")
        if user is not None and len(user) > USER_LENGTH:
            raise Fault(400, "HTTPBadRequest", f"A user's name has {USER_LENGTH} characters or less")
        return RequestContext(tenant=tenant, user=user)

    def authorize(self, caller: RequestContext, rule: str) -> None:
        """Allow all rules but those for nobody."""
        if rule in _FOR_NOBODY:
            raise Fault(403, "Forbidden", f"You are not authorized to do {rule}")

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        """Return True: all types are for everybody."""
        return True
