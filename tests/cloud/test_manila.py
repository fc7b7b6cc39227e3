"""Shares, their types and networks, and security services on a real Manila."""

import dataclasses
import typing
from collections.abc import Iterator

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.step_driver import Driven
from harness.waiting import wait_for
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.properties import changed, resolve_reported
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.service import Conflict

Json = typing.Any
pytestmark = pytest.mark.usefixtures("shares")
SHARE = "OS::Manila::Share"
TYPE = "OS::Manila::ShareType"
NETWORK = "OS::Manila::ShareNetwork"
SECURITY_SERVICE = "OS::Manila::SecurityService"
VERSION = "2.60"
READERS = {"access_type": "ip", "access_to": "192.0.2.0/24", "access_level": "ro"}
WRITER = {"access_type": "ip", "access_to": "192.0.2.1"}


@pytest.fixture
def kind(make_as_operator: Maker, operator: Project) -> Iterator[Driven]:
    """A type whose shares need no network."""
    kind = make_as_operator(TYPE, name=f"plain-{operator.name}", driver_handles_share_servers=False)
    yield kind
    operator.clean()
    kind.delete()


def get(project: Project, path: str, key: str) -> Json:
    """The part of the service's answer."""
    service = project.connection.shared_file_system
    answer = service.get(path, microversion=VERSION)
    assert answer.ok, answer.text
    return answer.json()[key]


def rules(project: Project, share: str) -> set[tuple[str, str, str]]:
    """The access rules that are in force."""
    listed = get(project, f"/share-access-rules?share_id={share}", "access_list")
    return {(each["access_to"], each["access_level"], each["state"]) for each in listed}


def changed_properties(driven: Driven, project: Project) -> set[str]:
    """The properties that an update with ``converge`` would set again; observed drift is a part of them."""
    schema = driven.plugin.properties_schema
    expected = driven.target.properties

    def differences(live: Json) -> set[str]:
        assert live
        return set(changed(schema, expected, resolve_reported(schema, live, expected)) & live.keys())

    listed = driven.plugin.collection().read(driven.context, project.id)[driven.id]
    observed = differences(driven.plugin.reported_properties(driven.target, listed, driven.context))
    present = differences(driven.plugin.live_properties(driven.target, driven.context))
    assert observed <= present
    return present


def test_a_share_type(make_as_operator: Maker, operator: Project) -> None:
    name = f"gold-{operator.name}"
    properties = {"name": name, "driver_handles_share_servers": False, "is_public": False}
    kind = make_as_operator(TYPE, **properties, extra_specs={"level": "gold", "old": 1})
    view = get(operator, f"/types/{kind.id}", "share_type")
    assert (view["name"], view["share_type_access:is_public"]) == (name, False)
    switches = {"driver_handles_share_servers": "False", "snapshot_support": "True"}
    assert view["extra_specs"] == {**switches, "level": "gold", "old": "1"}
    assert kind.attribute("show")["name"] == name
    assert changed_properties(kind, operator) == set()
    assert kind.update(extra_specs={"level": "silver", "new": True}) == "updated"
    view = get(operator, f"/types/{kind.id}", "share_type")
    assert view["extra_specs"] == {**switches, "level": "silver", "new": "True"}
    assert changed_properties(kind, operator) == set()
    assert kind.update(name="other") == "replace"
    kind.act("check")
    with pytest.raises(Conflict, match="already exists"):
        make_as_operator(TYPE, **properties)
    kind.delete()
    kind.delete()
    with pytest.raises(PermanentError, match="404"):
        kind.act("check")


def test_a_type_in_use_is_deleted_later(make_as_operator: Maker, kind: Driven) -> None:
    share = make_as_operator(SHARE, share_protocol="NFS", size=1, share_type=kind.id)
    with pytest.raises(RetryableError, match="still in use"):
        kind.plugin.handle_delete(kind.target, kind.context)
    share.delete()


def test_a_share(make_as_operator: Maker, operator: Project, kind: Driven) -> None:
    share = make_as_operator(
        SHARE,
        share_protocol="NFS",
        size=1,
        name="home",
        description="of all",
        metadata={"owner": "me", "floor": 3},
        share_type=kind.target.properties["name"],
        access_rules=[READERS, WRITER],
    )
    view = get(operator, f"/shares/{share.id}", "share")
    assert (view["status"], view["size"], view["share_proto"]) == ("available", 1, "NFS")
    assert (view["name"], view["description"], view["is_public"]) == ("home", "of all", False)
    assert {name: view["metadata"].get(name) for name in ("owner", "floor")} == {"owner": "me", "floor": "3"}
    assert rules(operator, share.id) == {
        ("192.0.2.0/24", "ro", "active"),
        ("192.0.2.1", "rw", "active"),
    }
    locations = get(operator, f"/shares/{share.id}/export_locations", "export_locations")
    assert share.attribute("export_locations") == [location["path"] for location in locations]
    assert share.attribute("status") == "available"
    assert share.attribute("project_id") == operator.id
    assert "stoker" not in share.attribute("show")["metadata"]
    assert changed_properties(share, operator) == set()

    changes = {"name": "attic", "description": None, "metadata": {"owner": "you"}, "is_public": True}
    only_writers = [{**READERS, "access_level": "rw"}]
    assert share.update(**changes, access_rules=only_writers) == "updated"
    view = get(operator, f"/shares/{share.id}", "share")
    assert (view["name"], view["description"], view["is_public"]) == ("attic", None, True)
    mark = f"stoker-{share.target.creation_key}"
    assert view["metadata"] == {"owner": "you", "stoker": mark}
    assert rules(operator, share.id) == {("192.0.2.0/24", "rw", "active")}
    assert changed_properties(share, operator) == set()
    assert share.update(access_rules=[]) == "updated"
    assert rules(operator, share.id) == set()
    assert share.update(size=2) == "replace"
    share.act("check")

    service = operator.connection.shared_file_system
    extension = {"extend": {"new_size": 2}}
    assert service.post(f"/shares/{share.id}/action", json=extension, microversion=VERSION).ok
    wait_for(lambda: get(operator, f"/shares/{share.id}", "share")["status"] == "available", 120)
    assert changed_properties(share, operator) == {"size"}
    share.delete()
    share.delete()
    assert operator.leftovers() == {}


def test_a_share_of_a_snapshot(make_as_operator: Maker, operator: Project) -> None:
    specs = {"create_share_from_snapshot_support": True}
    kind = make_as_operator(
        TYPE, name=f"copied-{operator.name}", driver_handles_share_servers=False, extra_specs=specs
    )
    properties = {"share_protocol": "NFS", "size": 1, "share_type": kind.id}
    source = make_as_operator(SHARE, **properties)
    service = operator.connection.shared_file_system
    body = {"snapshot": {"share_id": source.id, "name": "friday"}}
    snapshot = service.post("/snapshots", json=body, microversion=VERSION).json()["snapshot"]["id"]
    wait_for(lambda: get(operator, f"/snapshots/{snapshot}", "snapshot")["status"] == "available", 120)
    with pytest.raises(RetryableError, match="dependent snapshots"):
        source.plugin.handle_delete(source.target, source.context)
    copy = make_as_operator(SHARE, **properties, snapshot="friday")
    assert get(operator, f"/shares/{copy.id}", "share")["snapshot_id"] == snapshot
    assert changed_properties(copy, operator) == set()
    copy.delete()
    service.delete(f"/snapshots/{snapshot}")
    wait_for(lambda: operator.leftovers().keys() == {"shares"}, 120)
    source.delete()
    kind.delete()


def test_a_lost_share_is_found_again(make_as_operator: Maker, kind: Driven) -> None:
    share = make_as_operator.new(SHARE, share_protocol="NFS", size=1, share_type=kind.id)
    step = share.plugin.handle_create(share.target, share.context)
    assert isinstance(step, Poll)
    assert share.plugin.find_created(share.target.key, share.target, share.context) == step.physical_id
    share.take(step)
    share.create()
    share.delete()


def test_a_rule_that_the_driver_refuses(make_as_operator: Maker, operator: Project, kind: Driven) -> None:
    """Manila accepts it first; its driver lets users into CIFS shares only."""
    refused = {"access_type": "user", "access_to": "alice"}
    share = make_as_operator.new(
        SHARE, share_protocol="NFS", size=1, share_type=kind.id, access_rules=[refused]
    )
    with pytest.raises(PermanentError, match="access rule for user alice went to status error"):
        share.create()
    assert share.update(access_rules=[WRITER]) == "updated"
    assert rules(operator, share.id) == {("192.0.2.1", "rw", "active")}
    share.delete()


def test_a_share_that_no_backend_takes(make_as_operator: Maker, operator: Project) -> None:
    name = f"odd-{operator.name}"
    specs = {"share_backend_name": "none"}
    odd = make_as_operator(TYPE, name=name, driver_handles_share_servers=False, extra_specs=specs)
    share = make_as_operator.new(SHARE, share_protocol="NFS", size=1, share_type=name)
    with pytest.raises(PermanentError, match="Went to status ERROR due to .*Capabilities filter"):
        share.create()
    # The first answer may say so already; then the id is not stored, and a conductor would search for it.
    created = share.plugin.find_created(share.target.key, share.target, share.context)
    share.target = dataclasses.replace(share.target, physical_id=created)
    assert share.plugin.needs_replace_failed(share.target, share.context)
    share.delete()
    odd.delete()


def test_a_share_network_and_its_security_services(make: Maker, project: Project) -> None:
    network = make("Net", name="files")
    subnet = make("Subnet", network=network.id, cidr="10.8.0.0/24", name="files-subnet")
    ldap = make(SECURITY_SERVICE, type="ldap", name="users", user="admin", password="hidden", server="a.test")
    kerberos = make(SECURITY_SERVICE, type="kerberos", description="tickets")
    assert get(project, f"/security-services/{ldap.id}", "security_service")["password"] == "hidden"
    assert "hidden" not in str(ldap.target.data)
    assert ldap.update(server="b.test", description="people") == "updated"
    view = get(project, f"/security-services/{ldap.id}", "security_service")
    assert (view["server"], view["description"], view["user"]) == ("b.test", "people", "admin")
    view = get(project, f"/security-services/{kerberos.id}", "security_service")
    assert (view["type"], view["description"]) == ("kerberos", "tickets")
    assert ldap.update(type="kerberos") == "replace"

    place = make(NETWORK, name="place", neutron_subnet="files-subnet", security_services=["users"])
    view = get(project, f"/share-networks/{place.id}", "share_network")["share_network_subnets"][0]
    assert (view["neutron_net_id"], view["neutron_subnet_id"]) == (network.id, subnet.id)

    def services() -> set[str]:
        listed = get(project, f"/security-services?share_network_id={place.id}", "security_services")
        return {each["id"] for each in listed}

    assert services() == {ldap.id}
    with pytest.raises(RetryableError, match="still in use"):
        ldap.plugin.handle_delete(ldap.target, ldap.context)
    for driven in (place, ldap, kerberos):
        assert changed_properties(driven, project) == set()
    update = {"name": "site", "description": "of files", "security_services": [kerberos.id]}
    assert place.update(**update) == "updated"
    view = get(project, f"/share-networks/{place.id}", "share_network")
    assert (view["name"], view["description"]) == ("site", "of files")
    assert services() == {kerberos.id}
    other = make("Subnet", network=network.id, cidr="10.9.0.0/24")
    assert place.update(neutron_subnet=other.id) == "updated"
    view = get(project, f"/share-networks/{place.id}", "share_network")["share_network_subnets"][0]
    assert view["neutron_subnet_id"] == other.id
    for driven in (place, ldap, kerberos):
        driven.act("check")
        driven.delete()
        driven.delete()
    with pytest.raises(PermanentError, match="neutron_subnet does not belong to provided neutron_network"):
        make(NETWORK, neutron_subnet=subnet.id, neutron_network=make("Net").id)
    project.clean()


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        (NETWORK, {"name": "lost"}),
        (SECURITY_SERVICE, {"name": "lost", "type": "ldap"}),
        (TYPE, {"driver_handles_share_servers": False, "is_public": False}),
    ],
)
def test_lost_creations_are_found_again(
    make_as_operator: Maker, operator: Project, kind: str, properties: Json
) -> None:
    if kind == TYPE:
        properties = {**properties, "name": f"lost-{operator.name}"}
    driven = make_as_operator.new(kind, **properties)
    step = driven.plugin.handle_create(driven.target, driven.context)
    created = driven.plugin.find_created(driven.target.key, driven.target, driven.context)
    assert created == step.physical_id is not None
    driven.take(step)
    driven.delete()
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) is None


def resource(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def test_a_stack_with_a_share_on_a_network(operator_stacks: Stacks) -> None:
    """The share's server has ports in Neutron, which go some time after the share network."""

    def template(name: str) -> Json:
        resources = {
            "network": resource("Neutron::Net"),
            "subnet": resource("Neutron::Subnet", network={"get_resource": "network"}, cidr="10.11.0.0/24"),
            "ldap": resource("Manila::SecurityService", type="ldap", domain="cloud.test"),
            "type": resource(
                "Manila::ShareType",
                name=f"served-{operator_stacks.project.name}",
                driver_handles_share_servers=True,
            ),
            "place": resource(
                "Manila::ShareNetwork",
                neutron_network={"get_resource": "network"},
                neutron_subnet={"get_resource": "subnet"},
                security_services=[{"get_resource": "ldap"}],
            ),
            "share": resource(
                "Manila::Share",
                name=name,
                size=1,
                share_protocol="NFS",
                share_type={"get_resource": "type"},
                share_network={"get_resource": "place"},
                access_rules=[WRITER],
            ),
        }
        outputs = {
            "cidr": {"value": {"get_attr": ["place", "cidr"]}},
            "locations": {"value": {"get_attr": ["share", "export_locations"]}},
        }
        return {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs}

    stack = operator_stacks.create("files", template("first"))
    project = operator_stacks.project
    share = stack.physical_id("share")
    outputs = stack.outputs()
    assert outputs["cidr"] == "10.11.0.0/24"
    assert outputs["locations"]
    assert rules(project, share) == {("192.0.2.1", "rw", "active")}
    stack.update(template("second"))
    view = get(project, f"/shares/{share}", "share")
    assert (view["name"], view["share_network_id"]) == ("second", stack.physical_id("place"))
    stack.action("check")
    stack.delete()
    assert project.leftovers() == {}
