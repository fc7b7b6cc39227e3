"""A conductor whose connections to the database are half open leaves the ring, and others do its work."""

import pathlib
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment, Servers
from harness.silent_proxy import SilentProxy
from harness.waiting import wait_for

READY = "is in the ring and serves"


@pytest.fixture
def deployment(tmp_path: pathlib.Path, servers: Servers) -> Iterator[Deployment]:
    deployed = servers.deployment(tmp_path)
    yield deployed
    deployed.stop()


@pytest.fixture
def proxy(deployment: Deployment) -> Iterator[SilentProxy]:
    url = sa.make_url(deployment.database_url)
    assert url.host is not None
    assert url.port is not None
    silent = SilentProxy((url.host, url.port))
    yield silent
    silent.close()


def through_proxy(deployment: Deployment, proxy: SilentProxy) -> pathlib.Path:
    """A configuration that reaches the database through the proxy."""
    url = sa.make_url(deployment.database_url).set(host="127.0.0.1", port=proxy.port)
    connection = f"connection = {url.render_as_string(hide_password=False)}"
    path = deployment.directory / "proxied.conf"
    usual = f"connection = {deployment.database_url}"
    path.write_text(deployment.config.read_text().replace(usual, connection))
    assert str(proxy.port) in path.read_text()
    return path


def test_a_conductor_that_gets_no_answer_leaves_the_ring_and_rejoins_with_the_answers(
    deployment: Deployment, proxy: SilentProxy
) -> None:
    deployment.start_api()
    deployment.start_conductors("well")
    cut = deployment.launch_conductor("cut", "--config-file", str(through_proxy(deployment, proxy)))
    cut.wait_for_text(READY)
    well = deployment.conductors["well"]
    wait_for(lambda: "The ring has 2 members now" in well.text(), 60, well.tail)
    proxy.silent.set()
    wait_for(lambda: "Leaving the ring, others take over: no progress for 5 s" in cut.text(), 60, cut.tail)
    alone = "The ring has 1 members"
    wait_for(lambda: "4096 shards owned" in well.text().rpartition(alone)[2], 60, well.tail)
    paths = [deployment.create(f"s{n}", templates.flat(2)) for n in range(10)]
    assert {deployment.wait_final(path)["stack_status"] for path in paths} == {"CREATE_COMPLETE"}
    joined = cut.text().count("Joined the ring")
    proxy.restore()
    wait_for(lambda: cut.text().count("Joined the ring") > joined, 120, cut.tail)
