"""Types of the identity service on a real Keystone."""

import dataclasses
import json
import typing
import uuid
from collections.abc import Callable, Iterator

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.step_driver import Driven
from openstack import exceptions
from openstack.identity.v3._proxy import Proxy
from stoker.resources.contract.errors import PermanentError

Json = typing.Any
Make = Callable[..., Driven]


@pytest.fixture
def identity(operator: Project) -> Proxy:
    proxy: Proxy = operator.connection.identity
    return proxy


@pytest.fixture
def keystone(make_as_operator: Maker) -> Iterator[Make]:
    """Creates resources by the last parts of their types' names; what a test leaves is deleted."""
    created: list[Driven] = []

    def make(kind: str, /, **properties: Json) -> Driven:
        driven = make_as_operator.new(f"OS::Keystone::{kind}", **properties)
        created.append(driven)
        return driven.create()

    yield make
    for driven in reversed(created):
        driven.delete()


@pytest.fixture
def name() -> str:
    return f"keystone-{uuid.uuid4().hex[:8]}"


def lose(driven: Driven) -> Driven:
    """The resource whose answer was lost, in its second attempt."""
    driven.target = dataclasses.replace(driven.target, physical_id=None, data={}, attempt=2)
    return driven


def test_a_project_with_a_user_in_a_group_with_roles(keystone: Make, identity: Proxy, name: str) -> None:
    project = keystone("Project", name=name, tags=["blue"])
    role = keystone("Role")
    group = keystone("Group", roles=[{"role": role.id, "project": name}])
    roles = [{"role": "member", "project": project.id}, {"role": "reader", "domain": "default"}]
    user = keystone(
        "User", password="p-1", email="a@b.test", default_project=name, groups=[group.id], roles=roles
    )
    remote = identity.get_user(user.id)
    assert (remote.name, remote.email, remote.default_project_id) == (
        user.target.physical_name,
        "a@b.test",
        project.id,
    )
    assert [item.id for item in identity.user_groups(user.id)] == [group.id]
    granted = {
        (item.scope.get("project", {}).get("id"), item.role["id"])
        for item in identity.role_assignments(user_id=user.id)
    }
    member, reader = (identity.find_role(each).id for each in ("member", "reader"))
    assert granted == {(project.id, member), (None, reader)}
    assert [item.role["id"] for item in identity.role_assignments(group_id=group.id)] == [role.id]
    assert identity.get_project(project.id).tags == ["blue"]
    assert (project.attribute("name"), project.attribute("is_domain")) == (name, False)
    assert "stoker" not in user.attribute("show")

    assert user.update(groups=[], roles=roles[:1], description="new", password="p-2") == "updated"
    assert list(identity.user_groups(user.id)) == []
    [left] = identity.role_assignments(user_id=user.id)
    assert left.role["id"] == member
    assert identity.get_user(user.id).description == "new"
    assert project.update(name=f"{name}-2", enabled=False, tags=["red"]) == "updated"
    assert (project.attribute("name"), project.attribute("enabled")) == (f"{name}-2", False)
    assert role.update(name=f"{name}-role") == "updated"
    assert identity.get_role(role.id).name == f"{name}-role"
    assert role.update(domain="default") == project.update(parent=user.id) == "replace"
    for driven in (user, group, role, project):
        driven.act("check")
        driven.delete()
        driven.delete()
        with pytest.raises(PermanentError, match="identity 404"):
            driven.act("check")


def test_roles_of_somebody_else_stay(keystone: Make, identity: Proxy, project: Project) -> None:
    reader = identity.find_role("reader").id
    before = {"role": "member", "project": project.id}
    added = {"role": "reader", "project": project.id}

    def granted() -> set[str]:
        return {item.role["id"] for item in identity.role_assignments(user_id=project.user_id)}

    member = granted()
    roles = keystone("UserRoleAssignment", user=project.name, roles=[before, added])
    assert granted() == {*member, reader}
    roles.act("check")
    assert roles.update(roles=[before]) == "updated"
    assert granted() == member
    assert roles.update(roles=[added]) == "updated"
    assert granted() == {*member, reader}, "what was there before stays, though the template has it no more"
    identity.unassign_project_role_from_user(project.id, project.user_id, reader)
    with pytest.raises(PermanentError, match="has no role"):
        roles.act("check")
    roles.delete()
    assert granted() == member


def test_roles_of_a_stack_that_heat_had_are_taken_away_with_it(
    operator_stacks: Stacks, identity: Proxy, project: Project
) -> None:
    """Heat's document has no data of the resource."""
    roles = [{"role": "reader", "project": project.id}]
    assignment = {
        "type": "OS::Keystone::UserRoleAssignment",
        "properties": {"user": project.name, "roles": roles},
    }
    template = {"heat_template_version": "2018-08-31", "resources": {"assignment": assignment}}
    first = operator_stacks.create("before", template)
    document = operator_stacks.call("DELETE", f"{first.path}/abandon").body
    document["resources"]["assignment"]["resource_data"] = {}
    adopted = {"stack_name": "after", "adopt_stack_data": json.dumps(document), "timeout_mins": 60}
    answer = operator_stacks.call("POST", "/stacks", adopted)
    second = Stack(operator_stacks, f"/stacks/after/{answer.body['stack']['id']}")
    second.wait("ADOPT_COMPLETE")
    reader = identity.find_role("reader").id
    assert reader in {item.role["id"] for item in identity.role_assignments(user_id=project.user_id)}
    second.delete()
    assert reader not in {item.role["id"] for item in identity.role_assignments(user_id=project.user_id)}


def test_a_group_gets_roles(keystone: Make, identity: Proxy, project: Project) -> None:
    group = keystone("Group")
    roles = keystone("GroupRoleAssignment", group=group.id, roles=[{"role": "member", "project": project.id}])
    [one] = identity.role_assignments(group_id=group.id)
    assert one.scope["project"]["id"] == project.id
    roles.delete()
    assert list(identity.role_assignments(group_id=group.id)) == []


def test_a_domain_that_can_be_used_is_deleted(keystone: Make, identity: Proxy, name: str) -> None:
    domain = keystone("Domain", name=name, description="d")
    user = keystone("User", name="somebody", domain=name)
    assert identity.get_user(user.id).domain_id == domain.id
    user.delete()
    assert domain.update(description="other") == "updated"
    domain.delete()
    with pytest.raises(exceptions.NotFoundException):
        identity.get_domain(domain.id)


def test_a_service_catalog(keystone: Make, identity: Proxy, name: str) -> None:
    region = keystone("Region", id=f"{name} one", description="d")
    inner = keystone("Region", parent_region=region.id)
    assert identity.get_region(inner.id).parent_region_id == f"{name} one"
    service = keystone("Service", name=name, type="weather")
    endpoint = keystone(
        "Endpoint", service=name, region=region.id, interface="public", url="http://w.test", enabled=False
    )
    remote = identity.get_endpoint(endpoint.id)
    assert (remote.service_id, remote.region_id, remote.is_enabled) == (service.id, region.id, False)
    assert endpoint.update(url="http://x.test", interface="internal") == "updated"
    assert identity.get_endpoint(endpoint.id).url == "http://x.test"
    assert service.update(type="climate") == region.update(description="e") == "updated"
    assert identity.get_service(service.id).type == "climate"
    for driven in (endpoint, service, inner, region):
        driven.act("check")
        driven.delete()
        driven.delete()


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("Project", {}),
        ("User", {}),
        ("Group", {"name": "lost-group"}),
        ("Role", {}),
        ("Domain", {}),
        ("Region", {}),
        ("Service", {"type": "weather"}),
    ],
)
def test_a_lost_creation_is_found_again(keystone: Make, kind: str, properties: Json) -> None:
    driven = keystone(kind, **properties)
    physical_id = driven.id
    lost = lose(driven)
    assert lost.plugin.find_created(lost.target.key, lost.target, lost.context) == physical_id
    assert lost.plugin.find_created(str(uuid.uuid4()), lost.target, lost.context) is None
    if kind == "Service":  # Several may have one name, so the service does not refuse a second one.
        lost.target = dataclasses.replace(lost.target, physical_id=physical_id)
    lost.create()
    assert lost.id == physical_id


def test_what_has_the_name_already_is_left_alone(keystone: Make, identity: Proxy, name: str) -> None:
    foreign = identity.create_project(name=name, domain_id="default")
    with pytest.raises(PermanentError, match="identity 409"):
        keystone("Project", name=name)
    assert identity.get_project(foreign.id).name == name
    identity.delete_project(foreign)


def test_who_is_no_admin_is_refused(make: Maker) -> None:
    with pytest.raises(PermanentError, match="identity 403"):
        make("OS::Keystone::Project", name="mine")
