"""The users of all roles at a Keystone, each with one token that is reused."""

import dataclasses
import typing
from collections.abc import Mapping

from attack.target import Party
from harness.keystone import PASSWORD, Keystone
from harness.policy_requests import CALLERS

Json = typing.Any
ADMINS = "admin"
"""The name of Keystone's first user, and of the project of the admins."""


@dataclasses.dataclass(frozen=True)
class Callers:
    """The users of an installation with Keystone.

    :ivar attacker, victim: members of two projects.
    :ivar of_roles: a user of each column of the policy's table, of the attacker's project; the operator is of
        the admins' project.
    :ivar unscoped: users with the role admin whose tokens are for no project, by their scope.
    """

    attacker: Party
    victim: Party
    of_roles: Mapping[str, Party]
    unscoped: Mapping[str, Party]


def make_callers(keystone: Keystone, run: str) -> Callers:
    """Make two projects, and the users of all roles.

    :param run: part of the names.
    """
    existing = {role["name"] for role in keystone.roles_of_all()}
    own, foreign = (f"attack-{letter}-{run}" for letter in "ab")
    ids = {name: keystone.make("project", name=name, domain_id="default") for name in (own, foreign)}

    def user(caller: str, project: str) -> Party:
        name = f"{caller}-{run}-{project}"
        made = keystone.make("user", name=name, domain_id="default", password=PASSWORD)
        for role in CALLERS[caller]:
            if role not in existing:
                keystone.make("role", name=role)
                existing.add(role)
            keystone.grant(made, ids[project], role)
        return _party(keystone.token(name, project), ids[project])

    of_roles = {caller: user(caller, own) for caller in CALLERS if caller not in ("nobody", "operator")}
    of_roles["nobody"] = Party(ids[own])
    admins = keystone.id_of("project", ADMINS)
    of_roles["operator"] = _party(keystone.token(ADMINS, ADMINS), admins)
    keystone.grant_in_domain(keystone.id_of("user", ADMINS), "admin")
    unscoped = {
        "the system": {"system": {"all": True}},
        "a domain": {"domain": {"id": "default"}},
    }
    return Callers(
        of_roles["member"],
        user("member", foreign),
        of_roles,
        {name: _party(keystone.scoped_token(ADMINS, scope), ids[own]) for name, scope in unscoped.items()},
    )


def _party(token: str, project: str) -> Party:
    return Party(project, lambda: token)
