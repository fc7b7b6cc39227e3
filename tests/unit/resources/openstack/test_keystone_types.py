"""Types of the identity service on scripted answers."""

import dataclasses
import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PropertyError, RetryableError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.openstack.marks import mark_of

RESOURCE_TYPES = types_of("openstack.keystone")

Json = typing.Any
KEY = "11111111-2222-4333-8444-555555555555"
GROUP = RESOURCE_TYPES["OS::Keystone::Group"]()
USER = RESOURCE_TYPES["OS::Keystone::User"]()
PROJECT = RESOURCE_TYPES["OS::Keystone::Project"]()
ROLES = RESOURCE_TYPES["OS::Keystone::UserRoleAssignment"]()
ROLE, PLACE, OWNER = (f"{number}" * 32 for number in (1, 2, 3))
ENTRY = {"role": ROLE, "project": PLACE}
PATH = f"/projects/{PLACE}/users/{OWNER}/roles/{ROLE}"


@pytest.fixture
def has_default_domain(scripted: ScriptedService) -> None:
    scripted.answers["GET /domains/default"] = Answer(200, {"domain": {"id": "default"}})


@pytest.mark.usefixtures("has_default_domain")
@pytest.mark.parametrize(("mark", "is_deleted"), [(mark_of(KEY), True), ("another", False)])
def test_what_a_lost_creation_made_gives_its_name_to_a_replacement(
    scripted: ScriptedService, context: ScriptedContext, mark: str, *, is_deleted: bool
) -> None:
    projects = [{"id": "p", "name": "web", "stoker": mark}]
    scripted.answers["GET /projects?name=web&domain_id=default"] = Answer(200, {"projects": projects})
    scripted.answers["DELETE /projects/p"] = Answer(204)
    failed = target_of(PROJECT, {"name": "web"}, key="update", creation_key=KEY)
    assert PROJECT.needs_replace_failed(failed, context)
    assert ("DELETE /projects/p" in scripted.requests) is is_deleted


@pytest.mark.usefixtures("has_default_domain")
def test_a_password_is_stored_nowhere(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers["POST /users"] = Answer(201, {"user": {"id": "u", "name": "n"}})
    target = run(USER, "create", target_of(USER, {"password": "hush"}), context)
    assert scripted.sent[-1]["user"]["password"] == "hush"
    assert "hush" not in str(target.data)
    assert USER.properties_schema["password"].sensitive


def test_grants_that_were_there_before_are_never_taken_away(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    before = {"role": {"id": ROLE}, "scope": {"project": {"id": PLACE}}}
    inherited = {
        "role": {"id": ROLE},
        "scope": {"domain": {"id": PLACE}, "OS-INHERIT:inherited_to": "projects"},
    }
    answer = Answer(200, {"role_assignments": [before, inherited]})
    scripted.answers[f"GET /role_assignments?user.id={OWNER}"] = answer
    domain = f"/domains/{PLACE}/users/{OWNER}/roles/{ROLE}"
    for path in (PATH, domain):
        scripted.answers[f"PUT {path}"] = scripted.answers[f"DELETE {path}"] = Answer(204)
    entry = {"role": ROLE, "domain": PLACE}
    scripted.answers[f"GET /domains/{PLACE}"] = Answer(200, {"domain": {"id": PLACE}})
    target = target_of(ROLES, {"user": OWNER, "roles": [ENTRY, entry]})
    step = ROLES.handle_create(target, context)
    assert not [line for line in scripted.requests if line.startswith("PUT")], (
        "first it is stored what is new"
    )
    assert ROLES.handle_delete(target_of(ROLES, target.properties, creation_key=KEY), context)
    assert not [line for line in scripted.requests if line.startswith("DELETE")]
    target = dataclasses.replace(target, data=step.data or {})
    run(ROLES, "create", target, context)
    run(ROLES, "delete", target, context)
    assert [line for line in scripted.requests if line.startswith("DELETE")] == [f"DELETE {domain}"]


@pytest.mark.parametrize(
    ("data", "revoked"),
    [
        pytest.param({}, [f"DELETE {PATH}"], id="Heat's document"),
        pytest.param({"owner": OWNER, "given": []}, [], id="Stoker's document: nothing was new"),
    ],
)
def test_an_adopted_assignment_takes_its_grants_away(
    scripted: ScriptedService, context: ScriptedContext, data: Json, revoked: list[str]
) -> None:
    assignment = {"role": {"id": ROLE}, "scope": {"project": {"id": PLACE}}}
    scripted.answers[f"GET /role_assignments?user.id={OWNER}"] = Answer(
        200, {"role_assignments": [assignment]}
    )
    scripted.answers[f"DELETE {PATH}"] = Answer(204)
    target = target_of(ROLES, {"user": OWNER, "roles": [ENTRY]}, creation_key=KEY, data=data)
    target = run(ROLES, "adopt", target, context)
    run(ROLES, "delete", target, context)
    assert [line for line in scripted.requests if line.startswith("DELETE")] == revoked


def test_an_owner_gives_its_roles_to_the_next_one(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    other = "4" * 32
    no_roles = Answer(200, {"role_assignments": []})
    scripted.answers[f"GET /role_assignments?user.id={other}"] = no_roles
    path = PATH.replace(OWNER, other)
    scripted.answers[f"PUT {path}"] = scripted.answers[f"DELETE {PATH}"] = Answer(204)
    data = {"owner": OWNER, "given": [["projects", PLACE, ROLE]]}
    target = target_of(ROLES, {"user": other, "roles": [ENTRY]}, data=data)
    target = run(ROLES, "update", target, context, changed=frozenset({"user"}))
    changes = [line for line in scripted.requests if not line.startswith("GET")]
    assert changes == [f"DELETE {PATH}", f"PUT {path}"]
    assert target.data == {"owner": other, "given": [["projects", PLACE, ROLE]]}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"role": "r"}, "Either project or domain must be specified for role r"),
        ({"role": "r", "project": "p", "domain": "d"}, "same time: project, domain"),
    ],
)
def test_a_role_has_one_place(entry: Json, why: str) -> None:
    for plugin, more in ((GROUP, {}), (USER, {}), (ROLES, {"user": "u"})):
        properties = resolve_properties(plugin.properties_schema, {**more, "roles": [entry]})
        with pytest.raises(PropertyError, match=why):
            plugin.validate(properties)


def test_a_project_is_deleted_with_its_default_security_group(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    groups = [{"id": "g"}]
    scripted.answers["GET /security-groups?project_id=p&name=default"] = Answer(
        200, {"security_groups": groups}
    )
    scripted.answers["DELETE /security-groups/g"] = scripted.answers["DELETE /projects/p"] = Answer(204)
    run(PROJECT, "delete", target_of(PROJECT, physical_id="p"), context)
    changes = [line for line in scripted.requests if not line.startswith("GET")]
    assert changes == ["DELETE /security-groups/g", "DELETE /projects/p"]
    scripted.answers["DELETE /projects/p"] = Answer(409, {"error": {"message": "in use"}})
    with pytest.raises(RetryableError, match="still in use"):
        PROJECT.handle_delete(target_of(PROJECT, physical_id="p"), context)
