"""The examples on a cloud, as the services see what comes of them."""

import functools
import typing

import pytest
from harness.cloud.stacks import WITHIN, Stack, Stacks
from harness.examples import example
from harness.telemetry import Telemetry
from harness.waiting import wait_for

Json = typing.Any
SECOND = 1e9
"""Nanoseconds."""


@pytest.mark.commit
def test_the_server_of_the_demonstration_is_reached_from_outside_and_has_its_volume(stacks: Stacks) -> None:
    stack = stacks.create("app", **example("server"))
    c = stacks.project.connection
    server = c.compute.get_server(stack.physical_id("server"))
    assert server.status == "ACTIVE"
    [address] = c.network.ips(project_id=stacks.project.id)
    assert c.network.get_port(address.port_id).device_id == server.id
    assert stack.outputs() == {
        "private_address": address.fixed_ip_address,
        "public_address": address.floating_ip_address,
    }
    [volume] = c.block_storage.volumes()
    assert (volume.status, volume.attachments[0]["server_id"]) == ("in-use", server.id)
    stack.delete()
    assert stacks.project.leftovers() == {}


def ends_clean(stack: Stack) -> None:
    """Delete the stack, which leaves nothing."""
    stack.delete()
    assert stack.stacks.project.leftovers() == {}


def server_addresses(stacks: Stacks) -> set[str]:
    """The fixed addresses of all servers of the project."""
    servers = stacks.project.connection.compute.servers()
    entries = [entry for server in servers for group in server.addresses.values() for entry in group]
    return {entry["addr"] for entry in entries if entry["OS-EXT-IPS:type"] == "fixed"}


def test_three_tiers_have_the_servers_that_the_outputs_name(stacks: Stacks) -> None:
    stack = stacks.create("tiers", **example("three_tiers", app_servers=1))
    outputs = stack.outputs()
    tiers = [*outputs["web_addresses"], *outputs["app_addresses"], outputs["database_address"]]
    assert (len(tiers), set(tiers)) == (3, server_addresses(stacks))
    assert outputs["scale_up_url"] != outputs["scale_down_url"]
    ends_clean(stack)


def test_the_address_of_blue_and_green_moves_after_the_breakpoint(stacks: Stacks) -> None:
    stack = stacks.create("colours", **example("blue_green"))
    before = stack.outputs()
    stack.start_update(**example("blue_green", live="green", green_release="2"))
    stacks.wait_for(lambda: bool(stack.show().get("breakpoints")), lambda: str(stack.show()))
    [held] = stack.show()["breakpoints"]
    assert (held["resource_name"], held["hook"]) == ("address", "pre-update")
    green = stacks.project.connection.compute.get_server(stack.physical_id("green"))
    assert green.metadata["release"] == "2"
    stack.start_action("continue")
    stack.wait("UPDATE_COMPLETE")
    after = stack.outputs()
    assert after["address"] == before["address"]
    assert after["live_address"] != before["live_address"]
    ends_clean(stack)


def test_a_cluster_has_a_deployment_for_each_server(stacks: Stacks) -> None:
    stack = stacks.create("cluster", **example("software_cluster", size=1, transport="NO_SIGNAL"))
    deployments = stacks.call("GET", "/software_deployments").body["software_deployments"]
    assert len(deployments) == 1
    assert set(stack.outputs()["addresses"]) == server_addresses(stacks)
    ends_clean(stack)


def test_a_library_of_nested_templates_makes_its_servers(stacks: Stacks) -> None:
    stack = stacks.create("library", **example("nested_library", servers=1))
    assert set(stack.outputs()["addresses"]) == server_addresses(stacks)
    ends_clean(stack)


def test_a_template_of_cloudformation_makes_a_server_in_a_vpc(stacks: Stacks) -> None:
    stack = stacks.create("vpc", **example("cloudformation"))
    outputs = stack.outputs()
    [address] = stacks.project.connection.network.ips(project_id=stacks.project.id)
    assert outputs["PublicAddress"] == address.floating_ip_address
    assert outputs["PrivateAddress"] == address.fixed_ip_address
    ends_clean(stack)


def test_what_may_be_healed_is_created_as_it_is_described(stacks: Stacks) -> None:
    stack = stacks.create("observed", **example("drift"))
    assert {stack.outputs()["address"]} == server_addresses(stacks)
    ends_clean(stack)


def test_two_routers_connect_the_back_network_with_the_front(stacks: Stacks) -> None:
    stack = stacks.create("routers", **example("two_routers"))
    network = stacks.project.connection.network
    front = network.get_subnet(stack.physical_id("front_subnet"))
    assert front.host_routes == [{"destination": "10.30.1.0/24", "nexthop": "10.30.0.254"}]
    ports = network.ports(device_id=stack.physical_id("inner_router"))
    assert {ip["ip_address"] for port in ports for ip in port.fixed_ips} == {"10.30.0.254", "10.30.1.1"}
    ends_clean(stack)


@pytest.mark.usefixtures("balancers")
def test_a_balancer_has_the_servers_as_members(stacks: Stacks) -> None:
    # This Octavia makes no port for its address, so no floating IP can lead there.
    stack = stacks.create("balanced", **example("load_balancer", servers=1, with_floating_ip=False))
    outputs = stack.outputs()
    members = stacks.project.connection.load_balancer.members(stack.physical_id("pool"))
    assert [member.address for member in members] == outputs["members"]
    balancer = stacks.project.connection.load_balancer.get_load_balancer(stack.physical_id("balancer"))
    assert outputs["address"] == balancer.vip_address
    ends_clean(stack)


def test_the_load_of_servers_scales_their_group(stacks: Stacks, telemetry: Telemetry) -> None:
    limits = {"busy": 0.8 * SECOND, "idle": 0.2 * SECOND, "period": 1, "cooldown": 0}
    stack = stacks.create("scaled", **example("autoscaling", most_servers=2, **limits))

    def has_servers_with_load(count: int, nanoseconds: float) -> bool:
        for server in stacks.project.connection.compute.servers():
            telemetry.report([server.id], server.metadata["metering.server_group"], nanoseconds)
        # The size changes with the signal, the addresses with the end of what it has begun.
        outputs = stack.outputs()
        return outputs["servers"] == count and {*outputs["addresses"]} == server_addresses(stacks)

    for count, load in ((2, SECOND), (1, 0.0)):
        condition = functools.partial(has_servers_with_load, count, load)
        wait_for(condition, WITHIN, lambda: str(stack.show()), pause=0.5)
    ends_clean(stack)


@pytest.mark.usefixtures("secrets")
def test_secrets_are_kept_by_barbican_and_no_output_shows_them(stacks: Stacks) -> None:
    stack = stacks.create("secret", **example("secrets"))
    outputs = stack.outputs()
    [container] = stacks.project.connection.key_manager.containers()
    assert container.container_ref == outputs["container"]
    assert outputs["public_key"].startswith("ssh-")
    assert set(outputs) == {"container", "public_key"}
    assert {ref["name"] for ref in container.secret_refs} == {"password", "token"}
    ends_clean(stack)
