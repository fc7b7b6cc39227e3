"""How fast a stack of a cloud's resources runs, beside the bare calls that make the same in the same run.

Usage:
    python benchmarks/cloud.py       start the tests' cloud (`make test` installs it) and a Stoker
    options: --repeat 3   --servers 200   --json FILE
    STOKER_TEST_CLOUD=DIRECTORY      use a cloud that runs (`make cloud`)

The stack has a network, subnet, router, interface, security group with two rules, port, server, volume,
attachment and floating IP.  The bare calls make the same with one session; each starts as soon as those calls
have ended whose results it needs.  Whoever waits polls every 0.2 seconds.  Both run `--repeat` times in
turns, and the fastest run counts.  Then a stack of `--servers` servers on one network is created and deleted,
after the bare calls for as many by as many threads.  The requests are those to the services but Keystone.
"""

import argparse
import json
import math
import pathlib
import sys
import time
import typing
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import cloud_and_stoker

Json = typing.Any
POLL = 0.2
PAUSE = 1.0
"""Seconds between two lists of the bare servers."""
THREADS = 64
"""The threads of the two conductors together."""
WITHIN = 3600
TARGET = 1.15
SERVICES = ("glance", "neutron", "nova", "cinder")
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
    """The same objects by openstacksdk: each call starts as soon as the calls end whose results it needs."""

    def __init__(self, project: Project) -> None:
        self._cloud = project.connection
        self._created: dict[str, Json] = {}

    def create(self) -> None:
        """Create all."""
        network = self._cloud.network
        compute = self._cloud.compute
        block = self._cloud.block_storage
        with ThreadPoolExecutor() as pool:
            public = pool.submit(network.find_network, "public")
            image = pool.submit(self._cloud.image.find_image, "cirros")
            flavor = pool.submit(compute.find_flavor, "m1.tiny")
            net = pool.submit(network.create_network, name="bare")
            group = pool.submit(self._create_group)
            volume = pool.submit(self._create_volume)
            router = pool.submit(
                lambda: network.create_router(external_gateway_info={"network_id": public.result().id})
            )
            subnet = pool.submit(
                lambda: network.create_subnet(network_id=net.result().id, ip_version=4, cidr="10.8.0.0/24")
            )
            interface = pool.submit(
                lambda: network.add_interface_to_router(router.result(), subnet_id=subnet.result().id)
            )
            subnet.result()
            port = network.create_port(network_id=net.result().id, security_groups=[group.result().id])
            address = pool.submit(
                lambda: (
                    interface.result()
                    and network.create_ip(floating_network_id=public.result().id, port_id=port.id)
                )
            )
            server = compute.create_server(
                name="bare",
                image_id=image.result().id,
                flavor_id=flavor.result().id,
                networks=[{"port": port.id}],
            )
            compute.wait_for_server(server, interval=POLL, wait=WITHIN)
            compute.create_volume_attachment(server, volume_id=volume.result().id)
            block.wait_for_status(volume.result(), "in-use", interval=POLL, wait=WITHIN)
            self._created = {
                **{"net": net.result(), "subnet": subnet.result(), "router": router.result()},
                **{"group": group.result(), "port": port, "volume": volume.result()},
                **{"server": server, "address": address.result()},
            }

    def _create_group(self) -> Json:
        network = self._cloud.network
        group = network.create_security_group(name="bare")
        network.create_security_group_rule(security_group_id=group.id, **RULE)
        return group

    def _create_volume(self) -> Json:
        block = self._cloud.block_storage
        return block.wait_for_status(block.create_volume(size=1), "available", interval=POLL, wait=WITHIN)

    def delete(self) -> None:
        """Delete all."""
        network = self._cloud.network
        created = self._created
        with ThreadPoolExecutor() as pool:
            address = pool.submit(network.delete_ip, created["address"])
            router = pool.submit(self._delete_router, address)
            self._delete_server(pool)
            network.delete_port(created["port"])
            group = pool.submit(network.delete_security_group, created["group"])
            router.result()
            network.delete_subnet(created["subnet"])
            network.delete_network(created["net"])
            group.result()

    def _delete_router(self, address: "Future[None]") -> None:
        network = self._cloud.network
        router = self._created["router"]
        address.result()
        network.remove_interface_from_router(router, subnet_id=self._created["subnet"].id)
        network.delete_router(router)

    def _delete_server(self, pool: ThreadPoolExecutor) -> None:
        compute = self._cloud.compute
        block = self._cloud.block_storage
        server = self._created["server"]
        volume = self._created["volume"]
        compute.delete_volume_attachment(server, volume)
        block.wait_for_status(volume, "available", interval=POLL, wait=WITHIN)
        compute.delete_server(server)
        pool.submit(block.delete_volume, volume)
        compute.wait_for_delete(server, interval=POLL, wait=WITHIN)
        block.wait_for_delete(volume, interval=POLL, wait=WITHIN)


class BareServers:
    """Servers on one network by openstacksdk, by as many threads as Stoker has for its steps.

    One list of ids in each second says which servers are not ready yet: no way to wait costs less.
    """

    def __init__(self, project: Project, count: int) -> None:
        self._cloud = project.connection
        self._count = count

    def create(self) -> None:
        """Create all."""
        compute = self._cloud.compute
        net = self._cloud.network.create_network(name="bare")
        self._cloud.network.create_subnet(network_id=net.id, ip_version=4, cidr="10.8.0.0/16")
        image = self._cloud.image.find_image("cirros")
        flavor = compute.find_flavor("m1.tiny")

        def create(number: int) -> None:
            networks = [{"uuid": net.id}]
            compute.create_server(
                name=f"bare{number}", image_id=image.id, flavor_id=flavor.id, networks=networks
            )

        self._each(create, range(self._count))
        while list(compute.servers(details=False, status="BUILD")):
            time.sleep(PAUSE)
        assert len(list(compute.servers(details=False, status="ACTIVE"))) == self._count

    def delete(self) -> None:
        """Delete all."""
        self._each(self._cloud.compute.delete_server, list(self._cloud.compute.servers(details=False)))
        while list(self._cloud.compute.servers(details=False)):
            time.sleep(PAUSE)
        self._cloud.network.delete_network(next(self._cloud.network.networks(name="bare")))

    def _each(self, action: Callable[[Json], object], items: Iterable[Json]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(action, items):
                pass


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


class Runs:
    """Seconds and requests of actions; of several runs of an action the fastest one counts.

    :ivar best: seconds and number of requests to the services by the action's name.
    """

    def __init__(self, cloud: Cloud, project: Project) -> None:
        self._cloud = cloud
        self._project = project
        self.best: dict[str, tuple[float, int]] = {}

    def run(self, name: str, action: Callable[[], object]) -> None:
        """Run an action of this name once."""
        before = self._requests()
        start = time.monotonic()
        action()
        took = time.monotonic() - start
        self.best[name] = min(self.best.get(name, (math.inf, 0)), (took, self._requests() - before))

    def _requests(self) -> int:
        return sum(len(self._cloud.requests(service, self._project)) for service in SERVICES)

    def print(self, stack: str, bare: str) -> None:
        """Print the two of a stack's actions beside those of the bare calls."""
        for action in ("create", "delete"):
            took, requests = self.best[f"{stack} {action}"]
            bare_took, bare_requests = self.best[f"{bare} {action}"]
            print(
                f"{action:8} {stack:9} {took:6.1f} s {requests:5} requests   bare {bare_took:6.1f} s"
                f" {bare_requests:5} requests   {took / bare_took:4.2f} x   (<= {TARGET})",
                flush=True,
            )


def measure(cloud: Cloud, service: Service, options: argparse.Namespace) -> Json:
    """Return the seconds and requests of all cases."""
    with cloud.project() as project:
        runs = Runs(cloud, project)
        stacks = Stacks(service, project, within=float(WITHIN), pause=POLL)
        bare = Bare(project)
        for number in range(options.repeat):
            runs.run("bare app create", bare.create)
            runs.run("bare app delete", bare.delete)
            _run_stack(runs, stacks, "app", f"app{number}", APP)
        runs.print("app", "bare app")
        if options.servers:
            servers = BareServers(project, options.servers)
            runs.run("bare servers create", servers.create)
            runs.run("bare servers delete", servers.delete)
            _run_stack(runs, stacks, "servers", "many", _servers(options.servers))
            runs.print("servers", "bare servers")
        leftovers = project.leftovers()
    return {"best": runs.best, "left": leftovers}


def _run_stack(runs: Runs, stacks: Stacks, case: str, name: str, template: Json) -> None:
    runs.run(f"{case} create", lambda: stacks.create(name, template, timeout_mins=60))
    [stack] = [item for item in stacks.all() if item.path.split("/")[2] == name]
    runs.run(f"{case} delete", stack.delete)


def main() -> int:
    """Measure; the exit code says whether something is left in the cloud."""
    parser = argparse.ArgumentParser(description="Measure stacks of a cloud's resources.")
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
