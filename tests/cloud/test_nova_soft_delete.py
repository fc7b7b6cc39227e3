"""Servers on a cloud that keeps deleted ones for a while: ``reclaim_instance_interval`` of Nova."""

import pathlib
import shutil
from collections.abc import Iterator

import pytest
from harness.cloud.access import Cloud
from harness.cloud.layout import INSTALLED, serving
from harness.cloud.project import Project
from harness.cloud.site import Site
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.step_driver import Context
from harness.waiting import wait_for
from stoker.keystone.client_options import ClientOptions, ServiceOptions
from stoker.keystone.service_clients import ServiceClients
from stoker.resources.contract.errors import PermanentError


class KeepingCompute:
    """A second API of the cloud's Nova, which restores deleted servers for an hour."""

    def __init__(self, cloud: Cloud, folder: pathlib.Path) -> None:
        self._config = folder / "nova"
        self._requests = folder / "requests"
        shutil.copytree(cloud.directory / "etc" / "nova", self._config)
        options = self._config / "nova.conf"
        text = options.read_text().replace("[DEFAULT]", "[DEFAULT]\nreclaim_instance_interval = 3600")
        options.write_text(text)
        port = free_port()
        self.url = f"http://{HOST}:{port}/v2.1"
        command = serving("nova", "nova.wsgi.osapi_compute", port, self._requests)
        env = {"OS_NOVA_CONFIG_DIR": str(self._config), "PYTHONPATH": str(INSTALLED / "plugins")}
        self.process = Process(command, log=folder / "log", env=env)
        self.process.wait_for_port(port, 180)

    def was_acted_on(self, server: str) -> bool:
        """True if the final deletion, or another action, of a server was asked for."""
        return f"POST /v2.1/servers/{server}/action 202" in self._requests.read_text()


@pytest.fixture(scope="module")
def keeping(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeepingCompute]:
    compute = KeepingCompute(cloud, tmp_path_factory.mktemp("keeping"))
    try:
        yield compute
    finally:
        compute.process.kill()


@pytest.fixture
def site(keeping: KeepingCompute, project: Project) -> Site:
    options = ClientOptions(services={"compute": ServiceOptions(endpoint_override=keeping.url)})
    return Site(project, Context(project.connection.session, ServiceClients(options)))


def test_a_server_that_could_be_restored_is_deleted_for_good(site: Site, keeping: KeepingCompute) -> None:
    server = site.server(networks=[{"subnet": "net-subnet"}]).create()
    server.delete()
    assert (site.project.leftovers().keys(), site.ports()) == ({"subnets", "networks"}, [])
    assert keeping.was_acted_on(server.id)
    server.delete()


def test_a_server_that_a_user_has_deleted_is_replaced(site: Site, keeping: KeepingCompute) -> None:
    server = site.server().create()
    site.context.adapter("compute", "2").delete(f"/servers/{server.id}")
    wait_for(lambda: site.server_view(server).status == "SOFT_DELETED", 180)
    with pytest.raises(PermanentError, match="'status': expected 'ACTIVE', got 'SOFT_DELETED'"):
        server.act("check")
    assert server.plugin.needs_replace_failed(server.target, site.context)
    server.delete()
    assert "servers" not in site.project.leftovers()
