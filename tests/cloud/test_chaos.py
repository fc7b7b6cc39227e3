"""Chaos on a real cloud: conductors die and services fail, and yet nothing is made twice or orphaned.

``make chaos-cloud`` runs it with a hundred servers.
"""

import collections
import contextlib
import dataclasses
import pathlib
import typing
from collections.abc import Iterator, Sequence

import pytest
from cloud import chaos
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.deployment import Deployment, Servers
from harness.etcd import Etcd
from harness.fault_proxy import FaultProxy
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for

Json = typing.Any
HOSTS = ("one", "two", "three")
SEED = 17
REPAIRS = 3
"""Updates without faults after which each stack must be complete."""
EACH = 10
"""Servers of a stack."""
SHARE = 0.1
"""Share of the requests to the services that meet a fault."""


@pytest.fixture
def servers(rabbitmq: RabbitMQ, postgresql: PostgreSQL, etcd: Etcd) -> Servers:
    return Servers(rabbitmq, postgresql, etcd)


def template(servers: int, *, changed: bool = False) -> Json:
    """Servers, each with a port and a volume; what changes is changed in place or replaced."""
    net = {"get_resource": "net"}
    resources: Json = {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": net, "cidr": "10.30.0.0/22"},
        },
        "before": {"type": "OS::Neutron::SecurityGroup"},
        "after": {"type": "OS::Neutron::SecurityGroup"},
    }
    for number in range(servers):
        server = {"get_resource": f"server{number}"}
        replaced = {"server": number % 3 == 0, "port": number % 3 == 1}
        mac = f"02:00:00:00:{number:02x}:{2 if changed else 1:02x}"
        port = {
            "network": net,
            "security_groups": [{"get_resource": "after" if changed else "before"}],
            **({"mac_address": mac} if replaced["port"] else {}),
        }
        resources[f"port{number}"] = {"type": "OS::Neutron::Port", "properties": port}
        resources[f"server{number}"] = {
            "type": "OS::Nova::Server",
            "properties": {
                "name": f"server-{number}-{changed}",
                "image": "cirros",
                "flavor": "m1.tiny",
                "networks": [{"port": {"get_resource": f"port{number}"}}],
                "metadata": {"changed": str(changed)},
                "user_data_format": "RAW",
                "user_data": f"changed {changed and replaced['server']}",
            },
        }
        size = 2 if changed and number % 3 == 2 else 1
        volume = {"size": size, "name": f"volume-{number}-{changed}"}
        resources[f"volume{number}"] = {"type": "OS::Cinder::Volume", "properties": volume}
        pair = {"instance_uuid": server, "volume_id": {"get_resource": f"volume{number}"}}
        resources[f"disk{number}"] = {"type": "OS::Cinder::VolumeAttachment", "properties": pair}
    return {"heat_template_version": "2018-08-31", "resources": resources}


@dataclasses.dataclass(frozen=True)
class Story:
    """Stacks that are created, updated and deleted while everything fails now and then.

    :ivar within: seconds for one action of all stacks.
    :ivar ends: how many stacks ended how, in chaos.
    """

    stacks: Stacks
    deployment: Deployment
    cloud: chaos.FaultyCloud
    killer: chaos.Killer
    within: float
    ends: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def run(self, count: int, servers: int) -> None:
        """Create, update and delete some stacks; the cloud and the resources must agree in between."""
        stacks: list[Stack] = []
        with self._chaos(stacks):
            stacks += [self.stacks.start(f"stack{number}", template(servers)) for number in range(count)]
        self._repair(stacks, template(servers))
        assert chaos.audit(self.deployment, self.stacks.project) == []
        with self._chaos(stacks):
            for stack in stacks:
                stack.start_update(template(servers, changed=True))
        self._repair(stacks, template(servers, changed=True))
        assert chaos.audit(self.deployment, self.stacks.project) == []
        with self._chaos(stacks):
            for stack in stacks:
                stack.start_delete()
        for stack in stacks:
            if self._status(stack).endswith("FAILED"):
                stack.start_delete()
            stack.wait_deleted()
        self._wait_settled()
        assert chaos.audit(self.deployment, self.stacks.project) == []
        assert self.stacks.project.leftovers() == {}

    @contextlib.contextmanager
    def _chaos(self, stacks: Sequence[Stack]) -> Iterator[None]:
        """Begin something inside; afterwards it has ended, and nothing fails any more."""
        with self.killer.at_work(), self.cloud.faults():
            yield
            wait_for(lambda: all(self._has_ended(stack) for stack in stacks), self.within, self._why)
        self.ends.update(self._status(stack) for stack in stacks)
        self._wait_settled()

    def _repair(self, stacks: Sequence[Stack], goal: Json) -> None:
        """Bring stacks to their goal whose action has failed; without faults it must end well.

        A service that has too much to do may fail by itself, but not each time.
        """
        for _ in range(REPAIRS):
            failed = [stack for stack in stacks if self._status(stack).endswith("FAILED")]
            for stack in failed:
                stack.start_update(goal)
            wait_for(lambda: all(self._has_ended(stack) for stack in stacks), self.within, self._why)
        assert {self._status(stack)[-8:] for stack in stacks} == {"COMPLETE"}, self._why()
        self._wait_settled()

    def _wait_settled(self) -> None:
        wait_for(lambda: not chaos.unfinished(self.deployment), self.within, self._why)

    def _has_ended(self, stack: Stack) -> bool:
        return not self._status(stack).endswith("IN_PROGRESS")

    def _status(self, stack: Stack) -> str:
        answer = self.stacks.call("GET", f"{stack.path}?resolve_outputs=false")
        return str(answer.body["stack"]["stack_status"]) if answer.status == 200 else "GONE"

    def _why(self) -> str:
        return f"{chaos.unfinished(self.deployment)}\n{chaos.stories(self.deployment)}"


@pytest.fixture
def size(pytestconfig: pytest.Config) -> int:
    """How many servers there are."""
    return int(pytestconfig.getoption("--servers"))


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("--seed") or SEED)


@pytest.mark.timeout(0)  # Each of its waits has a limit of its own.
def test_nothing_is_made_twice_or_left_while_conductors_die_and_services_fail(
    tmp_path: pathlib.Path, servers: Servers, cloud: Cloud, project: Project, size: int, seed: int
) -> None:
    faulty = chaos.FaultyCloud(
        cloud,
        size=size,
        make_proxy=lambda url, number, hangs: FaultProxy(url, seed=seed + number, share=SHARE, hangs=hangs),
    )
    try:
        with chaos.daemons(tmp_path, servers, faulty.options(), HOSTS) as deployment:
            killer = chaos.Killer(deployment, seed=seed, pause=4.0, down=1.0)
            daemon_stacks = Stacks(chaos.DaemonsApi(deployment), project)
            story = Story(daemon_stacks, deployment, faulty, killer, within=60.0 + 15.0 * size)
            count = max(2, size // EACH)
            story.run(count, size // count)
            print(f"{story.ends} kills: {killer.kills} faults: {faulty.counts()}")
            assert killer.kills
            assert faulty.counts()
    finally:
        faulty.close()
