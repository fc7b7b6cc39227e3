"""How fast a stack of a cloud's things runs, beside the bare sequence of the same calls in the same run.

Usage:
    python benchmarks/cloud.py       start the tests' cloud (`make test` installs it) and a Stoker
    options: --repeat 3   --servers 200   --json FILE
    STOKER_TEST_CLOUD=DIRECTORY      use a cloud that runs (`make cloud`)

The stack has a network, subnet, router, interface, security group, port, server, volume, attachment and
floating IP.  The bare sequence makes the same things one after the other with one session, and waits only
where the next call needs it.  Both are polled every 0.2 seconds.  They are run `--repeat` times in turns, and
the fastest one counts.  Then a stack of `--servers` servers on one network is created and deleted.
"""

import argparse
import json
import pathlib
import sys
import time
import typing
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import cloud_and_stoker

Json = typing.Any
POLL = 0.2
WITHIN = 3600.0
TARGET = 1.3
RULE = {"direction": "ingress", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}


def _get(name: str) -> Json:
    return {"get_resource": name}


APP: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": _get("net"), "cidr": "10.8.0.0/24"},
        },
        "router": {
            "type": "OS::Neutron::Router",
            "properties": {"external_gateway_info": {"network": "public"}},
        },
        "interface": {
            "type": "OS::Neutron::RouterInterface",
            "properties": {"router": _get("router"), "subnet": _get("subnet")},
        },
        "group": {"type": "OS::Neutron::SecurityGroup", "properties": {"rules": [RULE]}},
        "port": {
            "type": "OS::Neutron::Port",
            "properties": {"network": _get("net"), "security_groups": [_get("group")]},
        },
        "server": {
            "type": "OS::Nova::Server",
            "properties": {"image": "cirros", "flavor": "m1.tiny", "networks": [{"port": _get("port")}]},
        },
        "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
        "attachment": {
            "type": "OS::Cinder::VolumeAttachment",
            "properties": {"instance_uuid": _get("server"), "volume_id": _get("volume")},
        },
        "address": {
            "type": "OS::Neutron::FloatingIP",
            "properties": {"floating_network": "public", "port_id": _get("port")},
        },
    },
}


class Bare:
    """The same things by openstacksdk, one after the other."""

    def __init__(self, project: Project) -> None:
        self._cloud = project.connection
        self._made: dict[str, Json] = {}

    def create(self) -> None:
        """Create all."""
        network = self._cloud.network
        compute = self._cloud.compute
        block = self._cloud.block_storage
        created = self._made = {}
        public = network.find_network("public")
        image = self._cloud.image.find_image("cirros")
        flavor = compute.find_flavor("m1.tiny")
        created["net"] = network.create_network(name="bare")
        created["subnet"] = network.create_subnet(
            network_id=created["net"].id, ip_version=4, cidr="10.8.0.0/24"
        )
        created["router"] = network.create_router(external_gateway_info={"network_id": public.id})
        network.add_interface_to_router(created["router"], subnet_id=created["subnet"].id)
        created["group"] = network.create_security_group(name="bare")
        network.create_security_group_rule(security_group_id=created["group"].id, **RULE)
        created["port"] = network.create_port(
            network_id=created["net"].id, security_groups=[created["group"].id]
        )
        created["volume"] = block.create_volume(size=1)
        created["server"] = compute.create_server(
            name="bare", image_id=image.id, flavor_id=flavor.id, networks=[{"port": created["port"].id}]
        )
        created["address"] = network.create_ip(floating_network_id=public.id, port_id=created["port"].id)
        block.wait_for_status(created["volume"], "available", interval=POLL, wait=120)
        compute.wait_for_server(created["server"], interval=POLL, wait=120)
        compute.create_volume_attachment(created["server"], volume_id=created["volume"].id)
        block.wait_for_status(created["volume"], "in-use", interval=POLL, wait=120)

    def delete(self) -> None:
        """Delete all."""
        network = self._cloud.network
        compute = self._cloud.compute
        block = self._cloud.block_storage
        created = self._made
        compute.delete_volume_attachment(created["server"], created["volume"])
        block.wait_for_status(created["volume"], "available", interval=POLL, wait=120)
        compute.delete_server(created["server"])
        block.delete_volume(created["volume"])
        network.delete_ip(created["address"])
        compute.wait_for_delete(created["server"], interval=POLL, wait=120)
        network.delete_port(created["port"])
        network.remove_interface_from_router(created["router"], subnet_id=created["subnet"].id)
        network.delete_router(created["router"])
        network.delete_security_group(created["group"])
        network.delete_subnet(created["subnet"])
        network.delete_network(created["net"])
        block.wait_for_delete(created["volume"], interval=POLL, wait=120)


def _servers(count: int) -> Json:
    server = {
        "type": "OS::Nova::Server",
        "properties": {"image": "cirros", "flavor": "m1.tiny", "networks": [{"network": _get("net")}]},
    }
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "net": {"type": "OS::Neutron::Net"},
            "subnet": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": _get("net"), "cidr": "10.8.0.0/16"},
            },
            **{f"server{number}": {**server, "depends_on": "subnet"} for number in range(count)},
        },
    }


def _timed(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def measure(cloud: Cloud, service: Service, options: argparse.Namespace) -> Json:
    """Return the seconds of all cases."""
    seconds: dict[str, list[float]] = {}
    with cloud.project() as project:
        stacks = Stacks(service, project, within=WITHIN, pause=POLL)
        bare = Bare(project)
        for number in range(options.repeat):
            seconds.setdefault("bare create", []).append(_timed(bare.create))
            seconds.setdefault("bare delete", []).append(_timed(bare.delete))
            name = f"app{number}"
            seconds.setdefault("stack create", []).append(_timed(lambda name=name: stacks.create(name, APP)))
            [stack] = [item for item in stacks.all() if item.path.split("/")[2] == name]
            seconds.setdefault("stack delete", []).append(_timed(stack.delete))
        best: dict[str, float] = {name: min(runs) for name, runs in seconds.items()}
        _print_stack(best)
        if options.servers:
            many = _servers(options.servers)
            best["servers create"] = _timed(lambda: stacks.create("many", many, timeout_mins=60))
            best["servers delete"] = _timed(stacks.all()[0].delete)
            _print_servers(best, options.servers)
        leftovers = project.leftovers()
    return {"seconds": best, "left": leftovers}


def _print_stack(best: dict[str, float]) -> None:
    for action in ("create", "delete"):
        stack = best[f"stack {action}"]
        bare = best[f"bare {action}"]
        ratio = f"{stack / bare:4.2f} x   (<= {TARGET})"
        print(f"{action:8} stack {stack:6.1f} s   bare {bare:6.1f} s   {ratio}", flush=True)


def _print_servers(best: dict[str, float], servers: int) -> None:
    for action in ("create", "delete"):
        took = best[f"servers {action}"]
        print(f"{action:8} {servers} servers {took:6.1f} s   {servers / took:5.1f} a second", flush=True)


def main() -> int:
    """Measure; the exit code says whether something is left in the cloud."""
    parser = argparse.ArgumentParser(description="Measure stacks of a cloud's things.")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--servers", type=int, default=200, help="0: leave that case out")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with cloud_and_stoker() as (cloud, service):
        figures = measure(cloud, service, options)
    if options.json:
        options.json.write_text(json.dumps(figures))
    if figures["left"]:
        print(f"left in the cloud: {figures['left']}", file=sys.stderr)
    return 1 if figures["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
