"""Servers on a real cloud: how they are created and deleted, and what prevents it."""

import base64
import dataclasses
import typing
import uuid

import pytest
from harness.cloud.project import Project
from harness.cloud.site import FLAVOR, IMAGE, Site
from harness.cloud.stacks import WITHIN
from harness.step_driver import Driven
from harness.waiting import wait_for
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.openstack.nova.interfaces import ServerPorts, nics_of
from stoker.resources.openstack.service import QUOTA_PAUSE

Json = typing.Any


@pytest.fixture
def site(project: Project) -> Site:
    return Site(project)


def test_a_server_of_an_image_and_a_flavor_by_name(site: Site) -> None:
    server = site.server(networks=[{"network": "net"}]).create()
    remote = site.server_view(server)
    assert (remote.status, remote.flavor["original_name"]) == ("ACTIVE", FLAVOR)
    assert remote.image.id == site.connection.image.find_image(IMAGE).id
    assert remote.name == server.attribute("name") == server.attribute("show")["name"]
    assert remote.name.startswith(f"{server.target.stack.name}-srv-")
    [entry] = remote.addresses["net"]
    [port] = site.connection.network.ports(device_id=server.id)
    address = entry["addr"]
    assert server.attribute("networks") == {"net": [address], site.network.id: [address]}
    assert server.attribute("first_address") == address
    [detailed] = server.attribute("addresses")["net"]
    assert (detailed["port"], detailed["addr"], detailed["network"]["name"]) == (port.id, address, "net")
    assert [subnet["cidr"] for subnet in detailed["subnets"]] == ["10.7.0.0/24"]
    assert server.attribute("addresses")[site.network.id] == [detailed]
    assert "adminPass" not in str(server.target.data)
    server.act("check")
    server.delete()
    server.delete()  # A deletion may be repeated.
    assert (site.servers(), site.ports()) == ([], [])


def test_all_that_is_given_arrives(site: Site) -> None:
    c = site.connection
    c.compute.create_keypair(name="key")
    group = c.network.create_security_group(name="web")
    servers = c.compute.create_server_group(name="group", policy="soft-anti-affinity")
    server = site.server(
        name="one",
        key_name="key",
        availability_zone="nova",
        metadata={"text": "a", "number": 1, "map": {"b": []}},
        tags=["blue", "green"],
        security_groups=["web", "default"],
        config_drive=True,
        diskConfig="MANUAL",
        user_data="#!/bin/sh\n",
        user_data_format="RAW",
        scheduler_hints={"group": servers.id},
        admin_pass="secret word",
        software_config_transport="POLL_SERVER_HEAT",
        deployment_swift_data={"container": "c", "object": "o"},
        reservation_id="ignored",
    ).create()
    remote = site.server_view(server)
    assert (remote.key_name, remote.availability_zone, remote.disk_config) == ("key", "nova", "MANUAL")
    assert remote.metadata == {"text": "a", "number": "1", "map": '{"b": []}'}
    assert remote.has_config_drive
    assert server.attribute("tags") == ["blue", "green"]
    assert sorted(server.attribute("show")["tags"]) == ["blue", "green"]
    [port] = c.network.ports(device_id=server.id)
    default = next(iter(c.network.security_groups(project_id=site.project.id, name="default")))
    assert sorted(port.security_group_ids) == sorted([group.id, default.id])
    assert c.compute.get_server_group(servers.id).member_ids == [server.id]
    by_operator = site.project.admin.compute.get_server(server.id)
    assert base64.b64decode(by_operator.user_data) == b"#!/bin/sh\n"
    assert "secret word" not in str((server.target.data, server.attribute("show")))


def test_files_are_taken_by_an_older_version_of_the_interface(site: Site) -> None:
    server = site.server(personality={"/etc/motd": "hello"}, tags=["blue"]).create()
    assert server.attribute("tags") == ["blue"]


def test_each_form_of_a_network(site: Site) -> None:
    extras = {"port_security_enabled": False}
    forms: list[tuple[Json, str]] = [
        ([{"network": "net", "fixed_ip": "10.7.0.50"}], "10.7.0.50"),
        ([{"uuid": "net", "fixed_ip": "10.7.0.51", "tag": "first"}], "10.7.0.51"),
        ([{"subnet": "net-subnet", "network": "net", "fixed_ip": "10.7.0.52"}], "10.7.0.52"),
        ([{"network": "net", "port_extra_properties": extras}], "10.7.0."),
        ([{"allocate_network": "auto"}], "10.7.0."),
        ([], "10.7.0."),
        ([{"allocate_network": "none"}], ""),
    ]
    servers = [site.server(f"form{number}", networks=form) for number, (form, _) in enumerate(forms)]
    for server, (form, expected) in zip(site.create_all(servers), forms, strict=True):
        addresses = site.addresses(server)
        assert len(addresses) == (expected != ""), form
        assert server.attribute("first_address").startswith(expected), form
    for server in servers:
        server.delete()
    assert site.ports() == []


def test_a_port_of_somebody_else_stays_and_one_of_its_own_goes(site: Site) -> None:
    group = site.connection.network.create_security_group(name="web")
    own_server = site.server(networks=[{"subnet": "net-subnet"}], security_groups=["web"]).create()
    [port] = site.connection.network.ports(device_id=own_server.id)
    assert port.security_group_ids == [group.id]
    foreign_port = site.make_port(name="mine")
    server = site.server(networks=[{"port": "mine", "tag": "eth"}]).create()
    assert site.connection.network.get_port(foreign_port.id).device_id == server.id
    own_server.delete()
    server.delete()
    assert site.ports() == ["mine"]
    assert site.connection.network.get_port(foreign_port.id).device_id == ""


def test_a_port_of_its_own_has_the_extra_properties(site: Site) -> None:
    extras = {
        "mac_address": "fa:16:3e:00:00:07",
        "allowed_address_pairs": [{"ip_address": "10.9.0.0/24"}],
        "value_specs": {"extra_dhcp_opts": [{"opt_name": "mtu", "opt_value": "1400"}], "description": "x"},
    }
    server = site.server(networks=[{"network": "net", "port_extra_properties": extras}]).create()
    [port] = site.connection.network.ports(device_id=server.id)
    assert (port.mac_address, port.extra_dhcp_opts[0]["opt_name"]) == ("fa:16:3e:00:00:07", "mtu")
    assert [pair["ip_address"] for pair in port.allowed_address_pairs] == ["10.9.0.0/24"]
    server.delete()  # A description of the user's does not hide the port from the deletion.
    assert site.ports() == []


def test_a_floating_ip_is_associated_with_the_port(site: Site) -> None:
    network = site.connection.network
    public = network.find_network("public")
    router = network.create_router(name="router", external_gateway_info={"network_id": public.id})
    subnet = network.find_subnet("net-subnet")
    network.add_interface_to_router(router, subnet_id=subnet.id)
    address = network.create_ip(floating_network_id=public.id)
    server = site.server(networks=[{"subnet": subnet.id, "floating_ip": address.id}]).create()
    [port] = network.ports(device_id=server.id)
    assert network.get_ip(address.id).port_id == port.id


def test_disks_of_volumes_images_and_snapshots(site: Site) -> None:
    c = site.connection.block_storage
    image = site.connection.image.find_image(IMAGE)
    volume = c.create_volume(size=1, name="root", image_id=image.id)
    c.wait_for_status(volume, "available", interval=0.2)
    source = c.create_volume(size=1, name="source")
    c.wait_for_status(source, "available", interval=0.2)
    snapshot = c.create_snapshot(volume_id=source.id, name="snapshot")
    c.wait_for_status(snapshot, "available", interval=0.2)
    server = site.server(
        image=None,
        block_device_mapping_v2=[
            {"volume_id": "root"},
            {"snapshot_id": "snapshot", "boot_index": 1, "delete_on_termination": True},
            {"image": IMAGE, "volume_size": 2, "boot_index": 2, "delete_on_termination": True},
        ],
    ).create()
    attached = list(site.connection.compute.volume_attachments(server.id))
    assert len(attached) == 3
    assert volume.id in [item.volume_id for item in attached]
    sizes = sorted(c.get_volume(item.volume_id).size for item in attached)
    assert sizes == [1, 1, 2]
    server.delete()
    names = {item.name for item in c.volumes(details=False)}
    assert {"root", "source"} <= names
    assert len(names) <= 4  # Cinder deletes the other two within a moment.


def test_disks_in_the_older_form(site: Site) -> None:
    c = site.connection.block_storage
    image = site.connection.image.find_image(IMAGE)
    volume = c.create_volume(size=1, name="root", image_id=image.id)
    c.wait_for_status(volume, "available", interval=0.2)
    disk = {"device_name": "vda", "volume_id": volume.id, "delete_on_termination": False}
    server = site.server(image=None, block_device_mapping=[disk]).create()
    [attached] = site.connection.compute.volume_attachments(server.id)
    assert attached.volume_id == volume.id


def test_a_lost_creation_is_found_and_nothing_is_made_twice(site: Site) -> None:
    server = site.server(networks=[{"subnet": "net-subnet"}, {"network": "net"}])
    _lose_creation(server)
    [lost] = site.servers()
    physical_id = server.plugin.find_created(server.target.key, server.target, site.context)
    assert physical_id == lost
    server.target = dataclasses.replace(server.target, physical_id=physical_id, attempt=2)
    server.create()
    assert (server.id, site.servers()) == (lost, [lost])
    server.delete()
    assert (site.servers(), site.ports()) == ([], [])


def test_the_ports_of_a_lost_creation_are_used(site: Site) -> None:
    server = site.server(networks=[{"subnet": "net-subnet"}])
    first = _port_for(site, server)
    server.target = dataclasses.replace(server.target, attempt=2)
    server.create()
    assert [port.id for port in site.connection.network.ports(device_id=server.id)] == [first]
    server.delete()
    assert site.ports() == []


def test_the_ports_of_a_creation_that_never_ended_are_deleted(site: Site) -> None:
    server = site.server(networks=[{"subnet": "net-subnet"}])
    _port_for(site, server)
    server.delete()
    assert site.ports() == []


def test_a_double_that_appears_late_is_deleted_with_the_server(site: Site) -> None:
    server = site.server()
    first = server.target
    server.target = dataclasses.replace(first, attempt=2)
    server.create()
    # The call of the first attempt, which was lost, is carried out only now.
    server.plugin.handle_create(first, server.context)
    assert len(site.servers()) == 2
    server.delete()
    # The double is deleted without waiting for it.
    wait_for(lambda: site.servers() == [], WITHIN, lambda: str(site.servers()))


BAD: list[tuple[Json, str]] = [
    ({"image": "no such image"}, r"Image \(no such image\) could not be found"),
    ({"image": str(uuid.UUID(int=1))}, "compute 400: Can not find requested image"),
    ({"flavor": "no such flavor"}, r"Flavor \(no such flavor\) could not be found"),
    ({"networks": [{"network": "no such net"}]}, r"network \(no such net\) could not be found"),
    ({"networks": [{"port": str(uuid.UUID(int=1))}]}, "compute 400: Port id .* could not be found"),
    ({"networks": [{"subnet": str(uuid.UUID(int=1))}]}, r"subnet \(.*\) could not be found"),
    ({"key_name": "no such key"}, "compute 400: Invalid key_name"),
    ({"security_groups": ["no such group"]}, "compute 400: .*no such group"),
    ({"availability_zone": "nowhere"}, "compute 400: The requested availability zone"),
    (
        {"networks": [{"subnet": "net-subnet"}], "key_name": "no such key"},
        "compute 400: Invalid key_name",
    ),
    (
        {"networks": [{"subnet": "net-subnet", "fixed_ip": "10.8.0.9"}]},
        "network 400: .*10.8.0.9",
    ),
]


def test_what_does_not_exist_is_named_and_nothing_is_left(site: Site) -> None:
    for properties, words in BAD:
        server = site.server(**properties)
        with pytest.raises(PermanentError, match=words):
            server.create()
        assert (site.servers(), site.ports()) == ([], []), properties
        server.delete()


def test_a_port_of_another_project_is_refused(site: Site, other: Project) -> None:
    port = Site(other).make_port(name="theirs")
    server = site.server(networks=[{"port": port.id}])
    with pytest.raises(PermanentError, match="compute 400: Port id .* could not be found"):
        server.create()
    assert other.connection.network.get_port(port.id).device_id == ""


def test_a_quota_is_waited_for(site: Site) -> None:
    site.project.admin.set_compute_quotas(site.project.id, instances=0)
    server = site.server(networks=[{"subnet": "net-subnet"}])
    with pytest.raises(RetryableError, match="over the quota: compute 403: Quota exceeded") as error:
        server.plugin.handle_create(server.target, site.context)
    assert error.value.after == QUOTA_PAUSE
    site.project.admin.set_compute_quotas(site.project.id, instances=10)
    server.target = dataclasses.replace(server.target, attempt=2)
    server.create()
    assert len(site.ports()) == 1


def test_a_server_for_which_there_is_no_room_fails_with_the_services_words(site: Site) -> None:
    compute = site.project.admin.compute
    huge = compute.create_flavor(name=f"huge-{uuid.uuid4()}", ram=2**30, vcpus=1, disk=1)
    try:
        server = site.server(flavor=huge.id)
        with pytest.raises(PermanentError) as error:
            server.create()
        assert error.value.kind == "ResourceInError"
        words = 'Went to status ERROR due to "Message: No valid host was found.'
        assert str(error.value).startswith(words)
        assert str(error.value).endswith(f', Code: 500"; the server asked for flavor {huge.id}, image cirros')
        assert server.plugin.needs_replace_failed(server.target, site.context)
        server.delete()
    finally:
        compute.delete_flavor(huge)
    assert (site.servers(), site.ports()) == ([], [])


def test_what_was_deleted_behind_our_back_is_missed(site: Site) -> None:
    server = site.server(networks=[{"subnet": "net-subnet"}]).create()
    remote = site.server_view(server)
    site.connection.compute.delete_server(remote)
    site.connection.compute.wait_for_delete(remote, interval=0.2, wait=WITHIN)
    with pytest.raises(PermanentError, match=f"compute 404: Instance {server.id} could not be found"):
        server.act("check")
    with pytest.raises(PermanentError, match="compute 404"):
        server.update(name="other")
    assert server.plugin.needs_replace_failed(server.target, site.context)
    server.delete()
    assert site.ports() == []


def _lose_creation(server: Driven) -> None:
    """Create the server, and forget the answer, as a conductor that is killed."""
    server.plugin.handle_create(server.target, server.context)


def _port_for(site: Site, server: Driven) -> str:
    """Make the port of a server's only entry, as a creation that is killed before it calls Nova."""
    ports = ServerPorts.of(server.target, site.context)
    nics = ports.with_ports(nics_of(server.target.properties["networks"], site.context), ())
    return str(nics[0].port)
