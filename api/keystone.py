"""Identifies users by Keystone, and authorizes them by policy."""

import typing
from collections.abc import Mapping
from dataclasses import replace

from oslo_policy import policy

from ..keystone.caller import CallerAccess
from ..resources.contract.cloud import Trustor
from .context import USER_LENGTH, RequestContext
from .errors import Fault
from .policy import IS_ADMIN, TYPE_RULE


class KeystoneAuthentication:
    """Implements Authenticator for requests that have passed keystonemiddleware's auth_token.

    The middleware checks the token and replaces the headers that are read here.  It also passes requests
    without a valid token, which are refused here.

    :param enforcer: knows the rules of `policy.list_rules`.
    """

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer

    def identify(self, project_id: str | None, headers: Mapping[str, str]) -> RequestContext:
        """Return the caller that a token names.  Without a project in the path no token is needed.

        A token is for one project, and the path must name the same; an admin's (rule ``context_is_admin``)
        may name any.

        :param project_id: the project of the path; None: the token's own.
        :raises Fault: 401, the token is missing or invalid, or 403, it is for another project.
        """
        if project_id == "":
            return RequestContext(project_id="")
        if headers.get("X-IDENTITY-STATUS") != "Confirmed":
            raise Fault(401, "Unauthorized", "Authentication required: send a valid token of Keystone's")
        project = headers.get("X-PROJECT-ID")
        caller = RequestContext(
            project_id=project or "",
            user=headers.get("X-USER-NAME", "")[:USER_LENGTH] or None,
            roles=frozenset(role.strip() for role in headers.get("X-ROLES", "").split(",") if role.strip()),
            credentials=_credentials(headers),
        )
        if not project:
            raise Fault(403, "Forbidden", "The token is for no project, but stacks belong to one")
        everywhere = bool(self._enforcer.enforce(IS_ADMIN, {}, dict(caller.credentials)))
        if project_id not in (None, project) and not everywhere:
            raise Fault(
                403,
                "Forbidden",
                f"You are not authorized to use project {project_id}: the token is for {project}",
            )
        return replace(
            caller, everywhere=everywhere, trustor=_trustor(caller, headers), access=_access(caller, headers)
        )

    def authorize(self, caller: RequestContext, rule: str) -> None:
        """Check that the policy allows the caller the operation of a rule."""
        if not self._allows(caller, rule):
            raise Fault(403, "Forbidden", f"You are not authorized to do {rule}")

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        """Return whether the caller may have resources of a type.

        A type without a rule, here or in the operator's file, is for everybody.
        """
        self._enforcer.load_rules()
        rules = [rule for rule in _type_rules(type_name) if rule in self._enforcer.rules]
        return all(self._allows(caller, rule) for rule in rules)

    def _allows(self, caller: RequestContext, rule: str) -> bool:
        target = {"project_id": caller.project_id}
        try:
            return bool(self._enforcer.enforce(rule, target, dict(caller.credentials)))
        except policy.InvalidScope:
            return False


def _type_rules(type_name: str) -> list[str]:
    """Return the rules of a type: ``OS::Keystone::User`` has its own, and that of ``OS::Keystone::*``."""
    family, separator, _ = type_name.rpartition("::")
    return [f"{TYPE_RULE}{type_name}", *([f"{TYPE_RULE}{family}::*"] if separator else [])]


def _trustor(caller: RequestContext, headers: Mapping[str, str]) -> Trustor:
    return Trustor(
        user_id=headers.get("X-USER-ID", ""),
        project_id=caller.project_id,
        roles=sorted(caller.roles),
        token=headers.get("X-AUTH-TOKEN", ""),
    )


def _access(caller: RequestContext, headers: Mapping[str, str]) -> CallerAccess:
    return CallerAccess(
        token=headers.get("X-AUTH-TOKEN", ""),
        user_id=headers.get("X-USER-ID", ""),
        project_id=caller.project_id,
        catalog_text=headers.get("X-SERVICE-CATALOG"),
    )


def _credentials(headers: Mapping[str, str]) -> dict[str, typing.Any]:
    """Return the credentials in the words of policy rules, as oslo.context names them."""
    return {
        "user_id": headers.get("X-USER-ID"),
        "user_domain_id": headers.get("X-USER-DOMAIN-ID"),
        "project_id": headers.get("X-PROJECT-ID"),
        "project_domain_id": headers.get("X-PROJECT-DOMAIN-ID"),
        "domain_id": headers.get("X-DOMAIN-ID"),
        "system_scope": headers.get("X-OPENSTACK-SYSTEM-SCOPE"),
        # Keystone sends the header only where it is false.
        "is_admin_project": headers.get("X-IS-ADMIN-PROJECT", "true").lower() == "true",
        "roles": [role.strip().lower() for role in headers.get("X-ROLES", "").split(",") if role.strip()],
    }
