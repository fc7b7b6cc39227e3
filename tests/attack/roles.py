"""Attacks of users with each role: every operation, with a real token, below their own and a foreign project.

What must come is the table of tests/simulation/policy_matrix.txt, which is made of the routes and the policy.
"""

import uuid
from collections.abc import Mapping

from attack.cases import case
from attack.target import Party, Target, Unexpected, expect
from harness.policy_requests import WORDS, PolicyRequest, permissions, policy_requests

MOST = 10
"""Wrong answers that a report names."""
REFUSED = "-"
FOUND_NOTHING = (400, 404)
"""Statuses of a request that the policy lets pass, with ids that the project does not have."""
IDS = ("stack_id", "event_id", "snapshot_id", "config_id", "deployment_id", "server_id", "project_id")


def _is_by_id(request: PolicyRequest) -> bool:
    return any(f"{{{name}}}" in request.path for name in ("stack_id", "config_id", "deployment_id"))


def _asked(target: Target, request: PolicyRequest, party: Party, values: Mapping[str, str]) -> str:
    """Return the word of the table for the answer; the number in its place where it must be another one."""
    answer = target.send(request.method, request.filled(values), request.sent, party)
    expect(answer, *range(100, 500))
    word = WORDS.get(answer.status_code, "yes")
    if word == "yes" and _is_by_id(request) and answer.status_code not in FOUND_NOTHING:
        return str(answer.status_code)
    return word


def _report(wrong: list[str]) -> None:
    if wrong:
        raise Unexpected(f"{len(wrong)} answers are wrong: {'; '.join(wrong[:MOST])}")


@case(
    "roles",
    "each operation with a token of each role, and the victim's ids below the own project",
    "the table",
)
def operations_by_role(target: Target) -> None:
    callers = target.needs_callers()
    table = permissions()
    nobodys = {name: str(uuid.uuid4()) for name in IDS}
    wrong = []
    for request in policy_requests():
        for name, party in callers.of_roles.items():
            # An operator may see what is the victim's, and could change it.
            values = {**target.names, **(nobodys if name == "operator" else {}), "tenant_id": party.project}
            if (word := _asked(target, request, party, values)) != table[request.name][name]:
                wrong.append(f"{request.name}: {word} for {name}, not {table[request.name][name]}")
    _report(wrong)
    target.check_victim()


@case(
    "roles",
    "each operation below the victim's project with the token of each role of another one",
    "403; 401",
)
def foreign_projects_by_role(target: Target) -> None:
    callers = target.needs_callers()
    values = {**target.names, "tenant_id": target.victim.project}
    wrong = []
    for request in policy_requests():
        if "{tenant_id}" not in request.path:
            continue
        for name, party in callers.of_roles.items():
            refusal = "401" if name == "nobody" else REFUSED
            if name != "operator" and (word := _asked(target, request, party, values)) != refusal:
                wrong.append(f"{request.name}: {word} for {name}")
    _report(wrong)
    target.check_victim()


@case("roles", "each operation with an admin's token for the whole system, or for a domain", "403")
def tokens_without_a_project(target: Target) -> None:
    callers = target.needs_callers()
    wrong = []
    for request in policy_requests():
        for scope, party in callers.unscoped.items():
            for project in (target.attacker.project, target.victim.project):
                values = {**target.names, "tenant_id": project}
                if (word := _asked(target, request, party, values)) != REFUSED:
                    wrong.append(f"{request.name}: {word} for {scope}")
    _report(wrong)
    target.check_victim()
