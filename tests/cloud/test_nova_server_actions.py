"""Suspend, resume, check, snapshot, adoption of servers on a real cloud, and polls of many."""

import dataclasses
import time
import typing
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.site import IMAGE, Site
from harness.step_driver import Driven
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Poll, Step
from stoker.resources.contract.views import ResourceView
from stoker.resources.openstack.marks import PREFIX
from stoker.resources.openstack.polling import FEW, STEADY_PAUSE

Json = typing.Any
MANY = 30


@pytest.fixture
def site(project: Project) -> Site:
    return Site(project)


def test_a_server_is_suspended_and_resumed(site: Site) -> None:
    server = site.server().create()
    for _ in range(2):  # The second time it is there already.
        server.act("suspend")
        assert site.server_view(server).status == "SUSPENDED"
    assert server.attribute("show")["status"] == "SUSPENDED"
    with pytest.raises(PermanentError, match="'status': expected 'ACTIVE', got 'SUSPENDED'"):
        server.act("check")
    for _ in range(2):
        server.act("resume")
        assert site.server_view(server).status == "ACTIVE"
    server.act("check")


def test_a_snapshot_is_an_image_that_a_restored_server_is_made_of(site: Site) -> None:
    server = site.server().create()
    snapshot = _snapshot(server)
    image = site.connection.image.get_image(snapshot.data["snapshot_image_id"])
    assert image.status == "active"
    assert server.plugin.handle_restore(server.target.properties, snapshot.data) == {"image": image.id}
    again = dataclasses.replace(snapshot, attempt=2)
    step = server.plugin.handle_snapshot(again, site.context)
    assert isinstance(step, Poll)
    assert step.data == {"snapshot_image_id": image.id}  # The first attempt's is found.
    lost = dataclasses.replace(snapshot, data={})
    server.plugin.handle_delete_snapshot(lost, site.context)
    server.plugin.handle_delete_snapshot(snapshot, site.context)
    assert list(site.connection.image.images(owner=site.project.id)) == []


def test_a_server_on_a_volume_has_snapshots_too(site: Site) -> None:
    disk = {"image": IMAGE, "volume_size": 1, "delete_on_termination": True}
    server = site.server(image=None, block_device_mapping_v2=[disk]).create()
    snapshot = _snapshot(server)
    assert site.connection.image.get_image(snapshot.data["snapshot_image_id"]).status == "active"
    server.plugin.handle_delete_snapshot(snapshot, site.context)
    assert list(site.connection.image.images(owner=site.project.id)) == []


def test_a_snapshot_of_a_missing_server_fails(site: Site) -> None:
    server = site.server().create()
    server.delete()
    with pytest.raises(PermanentError, match="compute 404"):
        server.act("snapshot")


def test_another_stack_adopts_a_server_with_its_ports(site: Site) -> None:
    first = site.server(networks=[{"subnet": "net-subnet"}]).create()
    heir = site.server(networks=[{"subnet": "net-subnet"}])
    heir.target = dataclasses.replace(heir.target, physical_id=first.id, data=first.target.data)
    heir.act("adopt")
    assert heir.attribute("name") == first.attribute("name")
    assert heir.update(tags=["blue"]) == "updated"
    assert heir.attribute("tags") == ["blue"]
    heir.delete()
    assert (site.servers(), site.ports()) == ([], [])


def test_an_adoption_without_an_id_is_refused(site: Site) -> None:
    with pytest.raises(PermanentError, match="Resource ID was not provided"):
        site.server().act("adopt")


@pytest.mark.long
def test_many_servers_are_polled_by_one_list(site: Site, cloud: Cloud) -> None:
    no_network = [{"allocate_network": "none"}]
    servers = [site.server(f"srv{number}", networks=no_network) for number in range(MANY)]
    with ThreadPoolExecutor(8) as pool:  # So that most of them are in BUILD afterwards.
        steps = list(
            pool.map(lambda server: server.plugin.handle_create(server.target, site.context), servers)
        )
    for server, step in zip(servers, steps, strict=True):
        server.target = dataclasses.replace(server.target, physical_id=step.physical_id)
    before = len(cloud.requests("nova", site.project))
    waiting = dict(enumerate(steps))
    rounds = 0
    began = time.monotonic()
    while waiting:
        rounds += 1
        for number, step in reversed(list(waiting.items())):  # The last ones are in BUILD still.
            waiting[number] = servers[number].plugin.check_create_complete(
                servers[number].target, _progress(step), site.context
            )
        waiting = {number: step for number, step in waiting.items() if isinstance(step, Poll)}
        site.context.pause(1.0)
    paths = [request.split()[1] for request in cloud.requests("nova", site.project)[before:]]
    lists = [path for path in paths if path == "/v2.1/servers?limit=1000&status=BUILD"]
    alone = [path for path in paths if "&tags=" in path]
    single = [path for path in paths if path.endswith(tuple(f"/{server.id}" for server in servers))]
    assert {server.status for server in site.connection.compute.servers()} == {"ACTIVE"}
    assert lists
    # However many servers there are, and each is read once, when the lists do not have it any more.
    assert len(lists) <= (time.monotonic() - began) / STEADY_PAUSE + 1
    assert len(alone) <= FEW * rounds
    details = [path for path in paths if path.startswith("/v2.1/servers/detail?tags-any=")]
    assert MANY <= len(single) + sum(path.count(PREFIX) for path in details) <= MANY + FEW
    assert sorted([*lists, *alone, *single, *details]) == sorted(paths)
    for server in servers:
        assert isinstance(server.plugin.handle_delete(server.target, site.context), Poll)


def _progress(step: Step) -> Json:
    assert isinstance(step, Poll)
    return step.progress


def _snapshot(server: Driven) -> ResourceView:
    """Take a snapshot, and return the resource as the snapshot keeps it."""
    before = server.target
    server.act("snapshot")
    snapshot = server.target
    server.target = before
    return dataclasses.replace(snapshot, data={**before.data, **snapshot.data})
