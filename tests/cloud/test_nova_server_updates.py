"""Updates of servers on a real cloud: in place, replaced, or refused; and what a crash may leave."""

import dataclasses
import typing
import uuid
from collections.abc import Callable

import pytest
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.site import BIGGER, FLAVOR, Site
from harness.step_driver import Driven
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.steps import Done, Poll, Step
from stoker.resources.contract.views import ReplacementView, ResourceView

Json = typing.Any
REPLACED: Json = {
    "availability_zone": "nova",
    "block_device_mapping": [{"device_name": "vdb", "volume_id": "v"}],
    "block_device_mapping_v2": [{"volume_id": "v", "boot_index": -1}],
    "config_drive": True,
    "diskConfig": "MANUAL",
    "key_name": "key",
    "personality": {"/etc/motd": "a"},
    "admin_user": "ec2-user",
    "reservation_id": "r",
    "scheduler_hints": {"group": "g"},
    "security_groups": ["web"],
    "user_data": "#!/bin/sh",
    "user_data_format": "RAW",
    "image": None,
}
"""Properties whose change replaces a server, each with another value."""
ACCEPTED: Json = {
    "deployment_swift_data": {"container": "c", "object": "o"},
    "flavor_update_policy": "REPLACE",
    "image_update_policy": "REPLACE",
    "software_config_transport": "POLL_TEMP_URL",
    "user_data_update_policy": "IGNORE",
}
"""Properties whose change changes nothing of a server, each with another value."""
CHANGED = {"admin_pass", "flavor", "image", "metadata", "name", "networks", "tags"}
"""Properties whose change changes the server; a test below for each."""


@pytest.fixture
def site(project: Project) -> Site:
    return Site(project)


def test_each_property_is_in_the_table(site: Site) -> None:
    assert {*REPLACED, *ACCEPTED, *CHANGED} == {*site.server().plugin.properties_schema}


def test_changes_in_place_and_changes_that_replace(site: Site) -> None:
    server = site.server(metadata={"a": "1", "b": "2"}, tags=["blue"]).create()
    disk = {"image": None, "block_device_mapping_v2": [{"volume_id": "v"}]}
    for name, value in REPLACED.items():
        properties = disk if name == "image" else {name: value}
        assert server.update(**properties) == "replace", name
    assert server.update(flavor=BIGGER, flavor_update_policy="REPLACE") == "replace"
    assert server.update(image="another", image_update_policy="REPLACE") == "replace"

    assert server.update(name="renamed") == "updated"
    assert server.update(metadata={"b": 3, "c": {"d": 4}}) == "updated"
    assert server.update(tags=["green", "red"]) == "updated"
    assert server.update(admin_pass="another word") == "updated"
    remote = site.server_view(server)
    assert (remote.name, remote.metadata) == ("renamed", {"b": "3", "c": '{"d": 4}'})
    assert server.attribute("tags") == ["green", "red"]
    assert server.attribute("name") == "renamed"
    assert server.plugin.find_created(server.target.creation_key, server.target, site.context) == server.id

    for name, value in ACCEPTED.items():
        assert server.update(**{name: value}) == "updated", name
    assert server.update(user_data="#!/bin/sh") == "updated"  # It is ignored, as the policy says now.
    assert server.update(name=None, tags=None, metadata=None) == "updated"
    remote = site.server_view(server)
    assert remote.name.startswith(f"{server.target.stack.name}-srv-")
    assert (remote.metadata, server.attribute("tags")) == ({}, [])
    server.delete()
    assert site.servers() == []


def test_another_flavor_resizes_and_confirms(site: Site) -> None:
    server = site.server().create()
    assert server.update(flavor=BIGGER) == "updated"
    remote = site.server_view(server)
    assert (remote.status, remote.flavor["original_name"]) == ("ACTIVE", BIGGER)
    flavor = site.connection.compute.find_flavor(BIGGER)
    assert server.update(flavor=flavor.id) == "updated"  # The same by its id: nothing to do.
    assert not [event for event in _actions(site, server) if event == "resize"][1:]


def test_a_resize_without_room_fails_and_keeps_the_server(site: Site) -> None:
    compute = site.project.admin.compute
    huge = compute.create_flavor(name=f"huge-{uuid.uuid4()}", ram=2**30, vcpus=1, disk=1)
    try:
        server = site.server().create()
        with pytest.raises(PermanentError, match=f"Resizing to '{huge.id}' failed, status 'ACTIVE'"):
            server.update(flavor=huge.id)
        assert site.server_view(server).flavor["original_name"] == FLAVOR
        assert not server.plugin.needs_replace_failed(server.target, site.context)
        assert server.update(flavor=FLAVOR) in ("same", "updated")
    finally:
        compute.delete_flavor(huge)


@pytest.mark.parametrize("policy", ["REBUILD", "REBUILD_PRESERVE_EPHEMERAL"])
def test_another_image_rebuilds(site: Site, policy: str) -> None:
    image = site.connection.image.create_image(
        name="other", data=b"x", disk_format="raw", container_format="bare"
    )
    server = site.server(image_update_policy=policy).create()
    if policy == "REBUILD":
        assert server.update(image="other", metadata={"a": "b"}, admin_pass="word") == "updated"
        remote = site.server_view(server)
        assert (remote.status, remote.image.id, remote.metadata) == ("ACTIVE", image.id, {"a": "b"})
    else:  # This hypervisor cannot, and says so.
        with pytest.raises(PermanentError, match=r"status 'ERROR': Message: .*preserv"):
            server.update(image="other")


def test_new_user_data_can_rebuild(site: Site) -> None:
    server = site.server(user_data="a", user_data_update_policy="REBUILD").create()
    assert server.update(user_data="b") == "updated"
    assert "rebuild" in _actions(site, server)
    assert site.server_view(server).status == "ACTIVE"


def test_interfaces_are_added_kept_and_removed(site: Site) -> None:
    site.make_network("other", "10.8.0.0/24")
    foreign_port = site.make_port(name="mine")
    server = site.server(networks=[{"network": "net"}]).create()
    [first] = site.addresses(server)

    def change(*networks: Json) -> list[str]:
        assert server.update(networks=list(networks)) == "updated"
        addresses = site.addresses(server)
        reported = {address for entries in server.attribute("networks").values() for address in entries}
        assert reported == set(addresses)
        return addresses

    fixed = {"subnet": "other-subnet", "fixed_ip": "10.8.0.40"}
    assert change({"network": "net"}, fixed) == sorted([first, "10.8.0.40"])
    assert change({"network": site.network.id}, fixed, {"port": "mine"})[:1] is not None
    assert site.connection.network.get_port(foreign_port.id).device_id == server.id
    assert len(site.ports()) == 3
    assert change({"port": "mine"}) == [foreign_port.fixed_ips[0]["ip_address"]]
    assert site.ports() == ["mine"]  # Those of the server's own are gone with their interfaces.
    assert change({"network": "other"}, {"network": "net"})[0].startswith("10.7.")
    assert site.connection.network.get_port(foreign_port.id).device_id == ""
    assert change({"allocate_network": "none"}) == []
    server.delete()
    assert site.ports() == ["mine"]


def test_extra_properties_and_floating_ip_change_in_place(site: Site) -> None:
    network = site.connection.network
    public = network.find_network("public")
    router = network.create_router(name="router", external_gateway_info={"network_id": public.id})
    network.add_interface_to_router(router, subnet_id=network.find_subnet("net-subnet").id)
    first, second = (network.create_ip(floating_network_id=public.id) for _ in range(2))
    entry = {"subnet": "net-subnet", "port_extra_properties": {"port_security_enabled": True}}
    server = site.server(networks=[{**entry, "floating_ip": first.id}]).create()
    [port] = network.ports(device_id=server.id)
    open_port = {**entry, "port_extra_properties": {"port_security_enabled": True, "admin_state_up": False}}
    assert server.update(networks=[{**open_port, "floating_ip": second.id}]) == "updated"
    [same] = network.ports(device_id=server.id)
    assert (same.id, same.is_admin_state_up) == (port.id, False)
    assert (network.get_ip(first.id).port_id, network.get_ip(second.id).port_id) == (None, port.id)


def test_an_update_that_a_crash_interrupts_anywhere_makes_nothing_twice(site: Site) -> None:
    server = site.server(networks=[{"network": "net"}]).create()
    old = server.target.properties
    key = str(uuid.uuid4())
    goal = site.server(networks=[{"subnet": "net-subnet", "fixed_ip": "10.7.0.60"}], flavor=BIGGER)
    server.target = dataclasses.replace(
        server.target, properties=goal.target.properties, previous=old, key=key
    )
    step: Step = server.plugin.handle_update(server.target, frozenset({"networks", "flavor"}), site.context)
    for attempt in range(2, 60):
        assert isinstance(step, Poll)
        server.target = dataclasses.replace(server.target, attempt=attempt)
        lost = _polled(server, step)  # The answer of this step is never stored.
        del lost
        step = _polled(server, step)
        if isinstance(step, Done):
            break
        site.context.pause(min(step.after, 1.0))
    remote = site.server_view(server)
    assert (remote.status, remote.flavor["original_name"]) == ("ACTIVE", BIGGER)
    assert site.addresses(server) == ["10.7.0.60"]
    assert len(site.ports()) == 1
    assert _actions(site, server).count("resize") == 1


def test_a_replacement_gets_the_ports_and_addresses_and_returns_them(site: Site) -> None:
    foreign_port = site.make_port(name="mine")
    networks = [{"port": "mine"}, {"subnet": "net-subnet", "fixed_ip": "10.7.0.70"}, {"network": "net"}]
    old = site.server(networks=networks).create()
    for _ in range(2):  # The second time nothing is left to do.
        _call_until_done(old, old.plugin.prepare_for_replace)
    assert len(site.addresses(old)) == 1
    new = site.server(networks=networks)
    new.target = dataclasses.replace(new.target, stack=old.target.stack)
    new.create()
    assert "10.7.0.70" in site.addresses(new)
    assert site.connection.network.get_port(foreign_port.id).device_id == new.id

    site.context.replaced_by = ReplacementView("OS::Nova::Server", new.target.key, new.id)
    for _ in range(2):
        _call_until_done(old, old.plugin.restore_after_replace)
    assert site.connection.network.get_port(foreign_port.id).device_id == old.id
    assert "10.7.0.70" in {
        address["ip_address"]
        for port in site.connection.network.ports(device_id=old.id)
        for address in port.fixed_ips
    }
    new.delete()
    old.delete()
    assert site.ports() == ["mine"]


def test_a_replacement_in_error_returns_its_port(site: Site, cloud: Cloud) -> None:
    """Nova still counts the port among those of the broken server, though Neutron does not."""
    foreign_port = site.make_port(name="mine")
    networks = [{"port": "mine"}]
    old = site.server(networks=networks).create()
    _call_until_done(old, old.plugin.prepare_for_replace)
    new = site.server(networks=networks)
    new.target = dataclasses.replace(new.target, stack=old.target.stack)
    new.create()
    cloud.admin.compute.reset_server_state(new.id, "error")
    site.connection.network.update_port(foreign_port, device_id="", device_owner="")

    site.context.replaced_by = ReplacementView("OS::Nova::Server", new.target.key, new.id)
    _call_until_done(old, old.plugin.restore_after_replace)
    assert site.connection.network.get_port(foreign_port.id).device_id == old.id
    assert [server.id for server in site.connection.compute.servers()] == [old.id]
    new.delete()
    old.delete()
    assert site.ports() == ["mine"]


def test_what_others_have_changed_is_seen(site: Site) -> None:
    server = site.server(metadata={"a": 1}, tags=["b", "a"], name="one").create()
    same = server.plugin.live_properties(server.target, site.context)
    properties = server.target.properties
    assert all(same[name] == properties[name] for name in ("name", "flavor", "image", "metadata", "tags"))
    assert same["networks"] == [{"network": site.network.id}]
    foreign_port = site.make_port(name="mine")
    compute = site.connection.compute
    compute.update_server(server.id, name="two")
    compute.set_server_metadata(server.id, c="d")
    compute.create_server_interface(server.id, port_id=foreign_port.id)
    live = server.plugin.live_properties(server.target, site.context)
    assert (live["name"], live["metadata"]) == ("two", {"a": "1", "c": "d"})
    assert live["networks"] == [{"network": site.network.id}, {"port": foreign_port.id}]


def _call_until_done(server: Driven, operation: Callable[[ResourceView, StepContext], Poll | None]) -> None:
    """Call as a conductor does: later again, as long as it says so."""
    while True:
        try:
            waits = operation(server.target, server.context)
        except RetryableError as error:
            server.context.pause(min(error.after or 1.0, 1.0))
            server.target = dataclasses.replace(server.target, attempt=server.target.attempt + 1)
        else:
            if waits is None:
                return
            server.context.pause(waits.after)


def _polled(server: Driven, step: Poll) -> Step:
    return server.plugin.check_update_complete(server.target, step.progress, server.context)


def _actions(site: Site, server: Driven) -> list[str]:
    return [item.action for item in site.connection.compute.server_actions(server.id)]
