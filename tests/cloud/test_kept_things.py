"""Updates on a real cloud: things are kept, repaired, or replaced while others use them."""

import typing

from harness.cloud.project import Project
from harness.cloud.site import FLAVOR, IMAGE
from harness.cloud.stacks import WITHIN, Stacks
from harness.waiting import wait_for

Json = typing.Any
VERSION = "2018-08-31"


def template(**resources: Json) -> Json:
    return {"heat_template_version": VERSION, "resources": resources}


def thing(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def at(name: str) -> Json:
    return {"get_resource": name}


def routed(public: str, net: str, subnet: str, group: str, **port: Json) -> Json:
    """A port with a floating IP, of which everything is named by these texts."""
    return template(
        address=thing("Neutron::FloatingIP", floating_network=public, port_id=at("port")),
        port=thing(
            "Neutron::Port", network=net, fixed_ips=[{"subnet": subnet}], security_groups=[group], **port
        ),
        router=thing("Neutron::Router", external_gateway_info={"network": public}),
        way=thing("Neutron::RouterInterface", router=at("router"), subnet=subnet),
        inner=thing("Neutron::Subnet", network=net, cidr="10.8.1.0/24"),
    )


def test_names_that_become_ids_keep_everything(stacks: Stacks, project: Project) -> None:
    network = project.connection.network
    net = network.create_network(name="office")
    subnet = network.create_subnet(network_id=net.id, ip_version=4, cidr="10.8.0.0/24", name="desks")
    group = network.create_security_group(name="doors")
    public = network.find_network("public")
    names = routed("public", "office", "desks", "doors")
    ids = routed(public.id, net.id, subnet.id, group.id)
    names["resources"]["address"]["depends_on"] = ids["resources"]["address"]["depends_on"] = "way"
    stack = stacks.create("kept", names)
    before = {name: stack.physical_id(name) for name in names["resources"]}
    fixed = network.get_port(before["port"]).fixed_ips
    for document in (ids, names):
        stack.update(document)
        assert {name: stack.physical_id(name) for name in before} == before
    # An empty list of addresses means none is given: the port keeps what it has.
    document = routed("public", "office", "desks", "doors")
    document["resources"]["address"]["depends_on"] = "way"
    document["resources"]["port"]["properties"]["fixed_ips"] = []
    stack.update(document)
    assert stack.physical_id("port") == before["port"]
    assert network.get_port(before["port"]).fixed_ips == fixed
    stack.delete()
    network.delete_subnet(subnet)
    network.delete_network(net)
    network.delete_security_group(group)
    assert project.leftovers() == {}


def test_defaults_of_neutron_and_cinder_return(stacks: Stacks, project: Project) -> None:
    network = project.connection.network

    def document(subnet: Json, port: Json, volume: Json) -> Json:
        return template(
            net=thing("Neutron::Net"),
            subnet=thing("Neutron::Subnet", network=at("net"), cidr="10.8.0.0/24", **subnet),
            port=thing("Neutron::Port", network=at("net"), **port),
            volume=thing("Cinder::Volume", size=1, availability_zone="", **volume),
        )

    pools = [{"start": "10.8.0.20", "end": "10.8.0.40"}]
    properties = (
        {"allocation_pools": pools, "gateway_ip": "10.8.0.9", "name": "a"},
        {"name": "b", "port_security_enabled": False},
    )
    stack = stacks.create("defaults", document(*properties, {"read_only": True, "name": "c"}))
    stack.update(document({}, {}, {}))
    subnet = network.get_subnet(stack.physical_id("subnet"))
    assert subnet.gateway_ip == "10.8.0.1"
    assert subnet.allocation_pools == [{"start": "10.8.0.2", "end": "10.8.0.254"}]
    port = network.get_port(stack.physical_id("port"))
    assert port.is_port_security_enabled
    assert port.name.startswith("defaults-port-")
    volume = project.connection.block_storage.get_volume(stack.physical_id("volume"))
    assert volume.metadata["readonly"] == "False"
    stack.delete()


def test_a_snapshot_that_is_being_made_is_deleted_with_its_volume(stacks: Stacks, project: Project) -> None:
    stack = stacks.create("copied", template(volume=thing("Cinder::Volume", size=1)))
    answer = stacks.call("POST", f"{stack.path}/snapshots", {"name": "first"})
    assert answer.status == 200, answer
    wait_for(lambda: list(project.connection.block_storage.backups()), WITHIN)
    stack.delete()
    assert project.leftovers() == {}


def test_a_server_that_is_stopped_is_found_by_a_check_and_started_by_an_update(
    stacks: Stacks, project: Project
) -> None:
    compute = project.connection.compute
    document = template(
        server=thing("Nova::Server", image=IMAGE, flavor=FLAVOR, networks=[{"allocate_network": "none"}])
    )
    stack = stacks.create("stopped", document)
    server = stack.physical_id("server")
    compute.stop_server(server)
    wait_for(lambda: compute.get_server(server).status == "SHUTOFF", WITHIN)
    stack.start_action("check")
    stack.wait("CHECK_FAILED")
    assert "expected 'ACTIVE', got 'SHUTOFF'" in stack.reasons()["server"]
    stack.update(document)
    assert (stack.physical_id("server"), compute.get_server(server).status) == (server, "ACTIVE")
    stack.delete()


def test_descriptions_of_rules_change(stacks: Stacks, project: Project) -> None:
    network = project.connection.network

    def document(first: str, second: str) -> Json:
        rule = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "description": first}
        return template(
            group=thing("Neutron::SecurityGroup", rules=[rule]),
            other=thing("Neutron::SecurityGroup"),
            rule=thing(
                "Neutron::SecurityGroupRule",
                security_group=at("other"),
                port_range_min=80,
                port_range_max=80,
                description=second,
            ),
        )

    stack = stacks.create("rules", document("one", "two"))
    stack.update(document("three", "four"))
    group = network.get_security_group(stack.physical_id("group"))
    assert {rule["description"] for rule in group.security_group_rules if rule["port_range_min"]} == {"three"}
    assert network.get_security_group_rule(stack.physical_id("rule")).description == "four"
    stack.delete()
    assert project.leftovers() == {}


def test_a_port_with_a_floating_ip_is_replaced_and_returns(stacks: Stacks, project: Project) -> None:
    network = project.connection.network

    def document(mac: str) -> Json:
        address = {"ip_address": "10.8.0.77"}
        return template(
            net=thing("Neutron::Net"),
            subnet=thing("Neutron::Subnet", network=at("net"), cidr="10.8.0.0/24"),
            router=thing("Neutron::Router", external_gateway_info={"network": "public"}),
            way=thing("Neutron::RouterInterface", router=at("router"), subnet=at("subnet")),
            port=thing("Neutron::Port", network=at("net"), mac_address=mac, fixed_ips=[address]),
            address=thing("Neutron::FloatingIP", floating_network="public", port_id=at("port")),
        )

    stack = stacks.create("public", document("fa:16:3e:00:00:51"))
    address = stack.physical_id("address")
    stack.update(document("fa:16:3e:00:00:52"))
    port = stack.physical_id("port")
    assert network.get_port(port).mac_address == "fa:16:3e:00:00:52"
    assert (network.get_ip(address).port_id, network.get_ip(address).tags) == (port, [])

    broken = document("fa:16:3e:00:00:53")
    broken["resources"]["wrong"] = {**thing("Heat::TestResource", fail=True), "depends_on": "address"}
    answer = stacks.call("PUT", stack.path, {"template": broken, "disable_rollback": False})
    assert answer.status == 202, answer
    stack.wait("ROLLBACK_COMPLETE")
    assert stack.physical_id("port") == port
    assert (network.get_ip(address).port_id, network.get_ip(address).tags) == (port, [])
    assert [item["ip_address"] for item in network.get_port(port).fixed_ips] == ["10.8.0.77"]
    stack.delete()
    assert project.leftovers() == {}


def test_a_server_that_boots_from_a_volume_is_replaced_and_returns(stacks: Stacks, project: Project) -> None:
    c = project.connection

    def document(**properties: Json) -> Json:
        disk = {"volume_id": at("volume"), "boot_index": 0}
        server = thing(
            "Nova::Server",
            flavor=FLAVOR,
            networks=[{"allocate_network": "none"}],
            block_device_mapping_v2=[disk],
            **properties,
        )
        return template(volume=thing("Cinder::Volume", size=1, image=IMAGE), server=server)

    def holders() -> list[str]:
        volume = stack.physical_id("volume")
        servers = [c.compute.get_server(server.id) for server in c.compute.servers(details=False)]
        return [item.id for item in servers if any(disk["id"] == volume for disk in item.attached_volumes)]

    stack = stacks.create("booted", document())
    first = stack.physical_id("server")
    wait_for(lambda: holders() == [first], WITHIN)
    stack.update(document(config_drive=True))
    second = stack.physical_id("server")
    assert second != first
    wait_for(lambda: holders() == [second], WITHIN)
    broken = document(config_drive=False)
    broken["resources"]["wrong"] = {**thing("Heat::TestResource", fail=True), "depends_on": "server"}
    answer = stacks.call("PUT", stack.path, {"template": broken, "disable_rollback": False})
    assert answer.status == 202, answer
    stack.wait("ROLLBACK_COMPLETE")
    wait_for(lambda: holders() == [stack.physical_id("server")], WITHIN)
    stack.delete()
    assert project.leftovers() == {}
