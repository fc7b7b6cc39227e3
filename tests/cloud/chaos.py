"""Helpers for tests of daemons on a cloud: faulty services, dying conductors, an audit of both sides."""

import collections
import contextlib
import pathlib
import random
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

import requests
from client.serving import Answer
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.deployment import Deployment, Servers
from harness.fault_proxy import FaultProxy
from harness.waiting import slowness
from process.load import query

Json = typing.Any
PATIENCE = 5.0
EACH = 0.3
"""Seconds that a conductor waits for a service's answer; for each server of the test, if that is more.

The first are more on a machine that has more to do than cores.  If the services, busy with all servers at
once, took longer, each request would be repeated, and none would succeed.
"""
PATHS = {"nova": "/v2.1", "neutron": "", "cinder": "/v3"}
"""The interface of the services' endpoints, as in the service catalog."""
THINGS = {
    "OS::Nova::Server": "servers",
    "OS::Neutron::Port": "ports",
    "OS::Neutron::Net": "networks",
    "OS::Neutron::Subnet": "subnets",
    "OS::Neutron::SecurityGroup": "security groups",
    "OS::Cinder::Volume": "volumes",
}


class DaemonsApi:
    """The API of a deployment, for `Stacks`."""

    def __init__(self, deployment: Deployment) -> None:
        self._url = deployment.url
        self._http = requests.Session()

    def call(
        self, method: str, path: str, body: Json = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request; the path is below the root."""
        answer = self._http.request(method, self._url + path, json=body, headers=headers, timeout=60)
        return Answer(answer.status_code, answer.headers, answer.json() if answer.content else None)


class FaultyCloud:
    """A cloud whose services meet faults.

    :param size: servers that the test has.
    :param make_proxy: by a service's root, its number, and the seconds that a hung request lasts.
    :param paths: the interface of each service, by its name.
    """

    def __init__(
        self,
        cloud: Cloud,
        *,
        size: int,
        make_proxy: Callable[[str, int, float], FaultProxy],
        paths: Mapping[str, str] = PATHS,
    ) -> None:
        self._cloud = cloud
        self._paths = paths
        self._patience = max(PATIENCE * slowness(), EACH * size)
        self.proxies = {
            name: make_proxy(cloud.urls[name], number, self._patience + 1)
            for number, name in enumerate(paths)
        }

    def options(self) -> str:
        """The configuration of a Stoker on it."""
        sections = [
            f"[clients_{name}]\nendpoint_override = {proxy.url}{self._paths[name]}\n"
            for name, proxy in self.proxies.items()
        ]
        return f"{self._cloud.stoker_options()}timeout = {self._patience}\n" + "".join(sections)

    @contextlib.contextmanager
    def faults(self) -> Iterator[None]:
        """Meet faults inside; afterwards no request is under way."""
        for proxy in self.proxies.values():
            proxy.faulty.set()
        try:
            yield
        finally:
            for proxy in self.proxies.values():
                proxy.calm()

    def counts(self) -> Mapping[str, int]:
        """How often each fault has happened."""
        total: collections.Counter[str] = collections.Counter()
        for proxy in self.proxies.values():
            total += proxy.counts
        return total

    def close(self) -> None:
        """End the proxies."""
        for proxy in self.proxies.values():
            proxy.close()


class Killer:
    """Kills a conductor as soon as it is at work, then one now and then, and starts each again.

    :param pause: seconds between two kills; more on a machine that has more to do than cores.
    :param down: seconds until the conductor is started again.
    :ivar kills: how often.
    """

    def __init__(self, deployment: Deployment, *, seed: int, pause: float, down: float) -> None:
        self._deployment = deployment
        self._random = random.Random(seed)
        self._pause = pause
        self._down = down
        self._over = threading.Event()
        self.kills = 0

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Kill inside; afterwards all conductors run."""
        self._over.clear()
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _work(self) -> None:
        hosts = sorted(self._deployment.conductors)
        # However quickly everything ends, it has met one death.
        pause = self._random.uniform(0.1, 0.5)
        while not self._over.wait(pause):
            pause = self._random.uniform(0.5, 1.5) * self._pause * slowness()
            host = self._random.choice(hosts)
            self._deployment.conductors[host].kill()
            self.kills += 1
            self._over.wait(self._down)
            self._deployment.launch_conductor(host)


@contextlib.contextmanager
def daemons(
    directory: pathlib.Path, servers: Servers, options: str, hosts: Sequence[str]
) -> Iterator[Deployment]:
    """A deployment's API and conductors."""
    # Conductors die here by chance, and often.  The default is for tasks that kill their conductors.
    deployment = servers.deployment(directory, f"{options}[stacks]\ntask_losses = 1000\n")
    try:
        deployment.start_api()
        deployment.start_conductors(*hosts)
        yield deployment
    finally:
        deployment.stop()


def unfinished(deployment: Deployment) -> Sequence[typing.Any]:
    """The tasks that are left to do, those of orphaned creates included."""
    return query(
        deployment,
        "SELECT task.id, task.kind, task.state, resource.name, resource.reason FROM task "
        "LEFT JOIN resource ON resource.id = task.resource_id "
        "WHERE task.state NOT IN ('done', 'failed', 'cancelled', 'skipped')",
    )


def things_of(project: Project) -> Mapping[str, Mapping[str, str | None]]:
    """The things in the project: kind -> id -> mark."""
    c = project.connection
    network = c.network
    return {
        "servers": {s.id: _mark(*(s.tags or ())) for s in c.compute.servers()},
        "volumes": {v.id: v.metadata.get("stoker") for v in c.block_storage.volumes()},
        "ports": {p.id: _mark(p.description) for p in network.ports(project_id=project.id)},
        "networks": {n.id: _mark(n.description) for n in network.networks(project_id=project.id)},
        "subnets": {s.id: _mark(s.description) for s in network.subnets(project_id=project.id)},
        "security groups": {
            g.id: _mark(g.description)
            for g in network.security_groups(project_id=project.id)
            if g.name != "default"
        },
    }


def attachments_of(project: Project) -> Mapping[str, list[str]]:
    """The servers that have each volume."""
    volumes = project.connection.block_storage.volumes()
    return {volume.id: sorted(item["server_id"] for item in volume.attachments) for volume in volumes}


def _mark(*texts: str | None) -> str | None:
    return next((text for text in texts if text and text.startswith("stoker-")), None)


def audit(deployment: Deployment, project: Project) -> list[str]:
    """Compare the resources with the things; what is wrong, in words.

    Each thing has one resource, each resource has its thing, and no two things have the mark of one.
    """
    rows = query(
        deployment,
        "SELECT resource.name, resource.plugin, resource.physical_id, resource.key, resource.stack_id "
        "FROM resource JOIN stack ON stack.id = resource.stack_id WHERE stack.deleted_at IS NULL",
    )
    wrong = _wrong_attachments(rows, attachments_of(project))
    remote_by_kind = things_of(project)
    for plugin, kind in THINGS.items():
        marks_by_id = remote_by_kind[kind]
        of_type = [row for row in rows if row.plugin == plugin]
        owners = collections.Counter(row.physical_id for row in of_type if row.physical_id)
        wrong += [
            f"{kind} {physical_id} has no resource ({mark})"
            for physical_id, mark in marks_by_id.items()
            if physical_id not in owners
        ]
        wrong += [
            f"{kind} {physical_id} has {count} resources"
            for physical_id, count in owners.items()
            if count > 1
        ]
        wrong += [
            f"{row.name} has no thing: {row.physical_id}"
            for row in of_type
            if row.physical_id not in marks_by_id
        ]
        marks = collections.Counter(mark for mark in marks_by_id.values() if mark)
        wrong += [f"{count} {kind} have the mark {mark}" for mark, count in marks.items() if count > 1]
        wrong += [
            f"{row.name} has the key {row.key}, its thing the mark {marks_by_id[row.physical_id]}"
            for row in of_type
            if row.physical_id in marks_by_id and marks_by_id[row.physical_id] != f"stoker-{row.key}"
        ]
    return wrong


def _wrong_attachments(rows: Sequence[Json], attachments: Mapping[str, list[str]]) -> list[str]:
    """Each volume must be at the server of its number, and nowhere else."""
    disks = [row for row in rows if row.plugin == "OS::Cinder::VolumeAttachment"]
    servers = {(row.stack_id, row.name): row.physical_id for row in rows}
    expected = {
        disk.physical_id: [servers[disk.stack_id, disk.name.replace("disk", "server")]] for disk in disks
    }
    return [
        f"volume {volume} is at the servers {at}, not at {expected.get(volume, [])}"
        for volume, at in attachments.items()
        if at != expected.get(volume, [])
    ]


def stories(deployment: Deployment) -> str:
    """The failures, for a test's message."""
    rows = query(
        deployment,
        "SELECT name, action, status, reason FROM resource "
        "WHERE status <> 'COMPLETE' OR reason LIKE '%again%'",
    )
    return "\n".join(map(str, rows))
