"""Stacks that cannot work: wrong names, others' things, quotas, what somebody has deleted or uses."""

import typing

import pytest
from harness.cloud.project import Project
from harness.cloud.stacks import WITHIN, Stack, Stacks
from harness.waiting import wait_for

Json = typing.Any
UNKNOWN = "9c6d1f7e-0000-4000-8000-00000000dead"


def template(**resources: Json) -> Json:
    """A network with a subnet, and these resources."""
    base = {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": thing("Neutron::Subnet", network=at("net"), cidr="10.1.0.0/24"),
    }
    return {"heat_template_version": "2018-08-31", "resources": {**base, **resources}}


def thing(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def at(name: str) -> Json:
    return {"get_resource": name}


def late(value: str) -> tuple[Json, Json]:
    """A resource with a value that is not known at the request, and what refers to it."""
    return thing("Heat::Value", value=value, type="string"), {"get_attr": ["late", "value"]}


def server(**properties: Json) -> Json:
    defaults = {"image": "cirros", "flavor": "m1.tiny", "networks": [{"network": at("net")}]}
    return thing("Nova::Server", **{**defaults, **properties})


def fails(stacks: Stacks, template_body: Json, name: str) -> str:
    """Create a stack that fails at one resource, and delete it, which must leave nothing; the reason."""
    stack = stacks.start("bad", template_body)
    stack.wait("CREATE_FAILED")
    [(failed, reason)] = stack.reasons().items()
    assert failed == name
    assert name in stack.show()["stack_status_reason"]
    stack.delete()
    assert stacks.project.leftovers() == {}
    return reason


def waits(stack: Stack, name: str, text: str) -> None:
    """Wait until the resource's reason has the text."""

    def reason() -> str:
        return str(stack.resource(name)["resource_status_reason"])

    wait_for(lambda: text in reason(), WITHIN, reason)


@pytest.mark.parametrize(
    ("kind", "properties", "why"),
    [
        ("Nova::Server", {"flavor": "x"}, "The Flavor (x) could not be found."),
        ("Nova::Server", {"image": "x"}, "The Image (x) could not be found."),
        ("Nova::Server", {"key_name": "x"}, "Invalid key_name"),
        ("Nova::Server", {"networks": [{"network": "x"}]}, "The network (x) could not be found."),
        ("Nova::Server", {"networks": [{"port": UNKNOWN}]}, f"Port id {UNKNOWN} could not be found"),
        ("Cinder::Volume", {"size": 1, "volume_type": "x"}, "The VolumeType (x) could not be found."),
        ("Neutron::Port", {"network": UNKNOWN}, "network 404"),
        ("Neutron::Port", {"network": at("net"), "security_groups": ["x"]}, "The security_group (x)"),
    ],
)
def test_what_a_step_does_not_find_is_named_and_nothing_is_left(
    stacks: Stacks, kind: str, properties: Json, why: str
) -> None:
    """The request cannot know these values yet, so that the services are asked by the steps."""
    (wrong,) = {value for value in _texts(properties) if value in ("x", UNKNOWN)}
    value, reference = late(wrong)
    values = _replaced(properties, wrong, reference)
    body = server(**values) if kind == "Nova::Server" else thing(kind, **values)
    assert why in fails(stacks, template(late=value, bad=body), "bad")


def _texts(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def _replaced(value: Json, old: str, new: Json) -> Json:
    if isinstance(value, dict):
        return {name: _replaced(part, old, new) for name, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, old, new) for part in value]
    return new if value == old else value


def test_things_of_another_project_are_refused_and_nothing_is_left(stacks: Stacks, operator: Project) -> None:
    net = operator.connection.network.create_network(name="other")
    volume = operator.connection.block_storage.create_volume(size=1, name="other")
    for kind, properties, why in (
        ("Neutron::Port", {"network": net.id}, "network 404"),
        ("Neutron::Subnet", {"network": net.id, "cidr": "10.2.0.0/24"}, "network 403"),
        ("Cinder::Volume", {"source_volid": volume.id}, "block-storage 404"),
    ):
        name = {*properties}.intersection({"network", "source_volid"}).pop()
        value, reference = late(properties[name])
        body = template(late=value, bad=thing(kind, **{**properties, name: reference}))
        reason = fails(stacks, body, "bad")
        assert why in reason
        assert "req-" in reason


def test_a_stack_over_the_quota_says_so_and_leaves_nothing_when_it_is_deleted(stacks: Stacks) -> None:
    project = stacks.project
    project.admin.network.update_quota(project.id, ports=0)
    project.admin.block_storage.update_quota_set(project.id, volumes=0)
    project.admin.compute.update_quota_set(project.id, instances=0)
    body = template(
        port=thing("Neutron::Port", network=at("net")),
        volume=thing("Cinder::Volume", size=1),
        server=server(),
    )
    stack = stacks.start("much", body)
    for name in ("port", "volume", "server"):
        waits(stack, name, "over the quota: ")
    stack.delete()
    assert project.leftovers() == {}


def test_what_somebody_has_deleted_is_found_by_a_check_and_made_again_by_an_update(stacks: Stacks) -> None:
    c = stacks.project.connection
    body = template(port=thing("Neutron::Port", network=at("net")), volume=thing("Cinder::Volume", size=1))
    stack = stacks.create("gone", body)
    port = stack.physical_id("port")
    volume = stack.physical_id("volume")
    c.network.delete_port(port)
    c.block_storage.delete_volume(volume)
    wait_for(lambda: not list(c.block_storage.volumes()), WITHIN, lambda: volume)
    stack.start_action("check")
    stack.wait("CHECK_FAILED")
    reasons = stack.reasons()
    assert f"network 404: Port {port} could not be found." in reasons["port"]
    assert f"block-storage 404: Volume {volume} could not be found." in reasons["volume"]
    stack.update(body)
    assert {item.id for item in c.network.ports(device_owner="")} == {stack.physical_id("port")}
    assert {item.id for item in c.block_storage.volumes()} == {stack.physical_id("volume")}
    c.network.delete_port(stack.physical_id("port"))
    stack.delete()
    assert stacks.project.leftovers() == {}


def test_who_uses_what_cannot_be_deleted_is_named(stacks: Stacks) -> None:
    """The things of somebody else are deleted at last, and so is the stack."""
    c = stacks.project.connection
    body = template(
        group=thing("Neutron::SecurityGroup"),
        volume=thing("Cinder::Volume", size=1),
        router=thing("Neutron::Router"),
        own=server(),
    )
    stack = stacks.create("used", body)
    ids = {name: stack.physical_id(name) for name in ("net", "subnet", "group", "volume", "router", "own")}
    snapshot = c.block_storage.create_snapshot(volume_id=ids["volume"])
    c.block_storage.wait_for_status(snapshot, "available", interval=0.2, wait=WITHIN)
    second_network = c.network.create_network(name="other")
    c.network.create_subnet(network_id=second_network.id, ip_version=4, cidr="10.3.0.0/24", name="other")
    subnet = c.network.find_subnet("other")
    c.network.add_interface_to_router(ids["router"], subnet=subnet.id)
    foreign_server = c.compute.create_server(
        name="theirs",
        image_id=c.image.find_image("cirros").id,
        flavor_id=c.compute.find_flavor("m1.tiny").id,
        networks=[{"uuid": ids["net"]}],
    )
    foreign_server = c.compute.wait_for_server(foreign_server, interval=0.2)
    [port] = c.network.ports(device_id=foreign_server.id)
    c.network.update_port(port, security_groups=[ids["group"]])
    [interface] = c.network.ports(device_id=ids["router"])
    stack.start_delete()
    used = f"still in use by server {foreign_server.id} (port {port.id}): network 409"
    for name, text in (
        ("group", used),
        ("subnet", used),
        ("router", f"still in use by router {ids['router']} (port {interface.id}): network 409"),
        ("volume", f"still in use by snapshot {snapshot.id}: block-storage 400"),
    ):
        waits(stack, name, text)
    c.compute.delete_server(foreign_server)
    c.network.remove_interface_from_router(ids["router"], subnet=subnet.id)
    c.block_storage.delete_snapshot(snapshot)
    stack.wait_deleted()
    assert {*stacks.project.leftovers()} == {"networks", "subnets"}
