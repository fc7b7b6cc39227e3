"""The seam between the API and an identity service, which identifies and authorizes callers."""

import typing
from collections.abc import Mapping

from .context import USER_LENGTH, RequestContext
from .errors import Fault

_FOR_NOBODY = frozenset({"stacks:global_index", "software_configs:global_index"})


class Authenticator(typing.Protocol):
    """Identifies callers, and decides about their rights."""

    def identify(self, project_id: str | None, headers: Mapping[str, str]) -> RequestContext:
        """Return the caller that asks for the project of the path.

        :param project_id: the project; empty: an anonymous caller may pass; None: the caller's own project.
        :param headers: the request's headers by name, in upper case.
        :raises Fault: 401, the caller is unknown, or 403, the project is not the caller's.
        """

    def authorize(self, caller: RequestContext, rule: str) -> None:
        """Check that the caller may do the operation of a rule with Heat's name, e.g. ``stacks:create``.

        :raises Fault: 403, the caller may not.
        """

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        """Return whether the caller may have resources of a type."""


class NoAuthentication:
    """Lets everybody do everything with the project of the path; for one trusted user, or a test.

    A project header, where one is given, must name the project of the path.  Nobody sees all projects at
    once, as with Heat's default policy.
    """

    def identify(self, project_id: str | None, headers: Mapping[str, str]) -> RequestContext:
        """Return the caller, with the name of a user where a header gives one."""
        project = headers.get("X-PROJECT-ID") or headers.get("X-TENANT-ID")
        project_id = project or "" if project_id is None else project_id
        if project is not None and project != project_id:
            raise Fault(
                403,
                "Forbidden",
                f"You are not authorized to use project {project_id}: the request's project is {project}",
            )
        user = headers.get("X-AUTH-USER") or headers.get("X-USER-NAME")
        if user is not None and len(user) > USER_LENGTH:
            raise Fault(400, "HTTPBadRequest", f"A user's name has {USER_LENGTH} characters or less")
        return RequestContext(project_id=project_id, user=user)

    def authorize(self, caller: RequestContext, rule: str) -> None:
        """Allow all rules but those for nobody."""
        if rule in _FOR_NOBODY:
            raise Fault(403, "Forbidden", f"You are not authorized to do {rule}")

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        """Return True: all types are for everybody."""
        return True


def is_allowed(auth: Authenticator, caller: RequestContext, rule: str) -> bool:
    """Return whether the policy allows a caller the operation of a rule."""
    try:
        auth.authorize(caller, rule)
    except Fault:
        return False
    return True
