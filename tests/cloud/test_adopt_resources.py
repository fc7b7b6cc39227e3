"""The client adopts what a user has made without stacks, and a stack continues with it."""

import contextlib
import os
import pathlib
import re
import shlex
import subprocess
import typing
import uuid
from collections.abc import Iterator, Mapping

import pytest
import yaml
from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.layout import PASSWORD, REGION
from harness.cloud.project import Project
from harness.cloud.services import SERVICES
from harness.cloud.stacks import Stack, Stacks
from harness.programs import BIN
from harness.sources import ROOT

Json = typing.Any
LASTING = {kind for service in SERVICES for kind, _ in service.endpoints}
"""Types of services that each cloud has; other tests register more, and remove them again."""
ACTIVE_WITHIN = 120.0
REFUSED = {
    "--server web": "The server web belongs to the stack shop",
    "--all": "All objects of the project belong to stacks already",
    "": "Name the objects to adopt",
    "--all --server web": "use either --all or the options that name objects",
    "--router-interface edge:inner": "No subnet of the project has the name or ID inner",
}
"""Arguments with the reasons why they are refused once all of the project is adopted."""
COMMAND = re.compile(r"^ {4}(openstack stack .*)$", re.MULTILINE)
"""A command of the page."""


@pytest.fixture(scope="module")
def region(cloud: Cloud, stoker: Service) -> Iterator[str]:
    """A region whose catalog has the services of the cloud and, as orchestration, the Stoker of the tests."""
    identity = cloud.admin.identity
    area = f"adoption-{uuid.uuid4().hex[:8]}"
    lasting = {service.id for service in identity.services() if service.type in LASTING}
    addresses = [
        (endpoint.service_id, endpoint.interface, endpoint.url)
        for endpoint in identity.endpoints()
        if endpoint.region_id == REGION and endpoint.service_id in lasting
    ]
    with contextlib.ExitStack() as stack:
        identity.create_region(id=area)
        stack.callback(identity.delete_region, area)
        for service_id, interface, url in addresses:
            endpoint = identity.create_endpoint(
                service_id=service_id, interface=interface, region_id=area, url=url
            )
            stack.callback(identity.delete_endpoint, endpoint)
        url = f"{stoker.url}/v1/%(project_id)s"
        stack.enter_context(cloud.registered("orchestration", url, area))
        yield area


class Client:
    """The client of a user of the project."""

    def __init__(self, cloud: Cloud, project: Project, region: str) -> None:
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OS_")},
            "OS_AUTH_URL": cloud.auth_url,
            "OS_USERNAME": project.name,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": project.name,
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_REGION_NAME": region,
            "OS_IDENTITY_API_VERSION": "3",
        }

    def run(self, line: str, folder: pathlib.Path) -> str:
        """Run a command that must succeed; what it prints.

        :param folder: the folder in which it runs.
        """
        done = self._run(line, folder)
        assert done.returncode == 0, done
        return done.stdout

    def fails(self, line: str, folder: pathlib.Path) -> str:
        """Run a command that must fail; its complaint."""
        done = self._run(line, folder)
        assert done.returncode == 1, done
        return done.stderr

    def _run(self, line: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "openstack"), *shlex.split(line)[1:]]
        return subprocess.run(
            command, env=self._environment, cwd=folder, text=True, capture_output=True, check=False
        )


@pytest.fixture
def client(cloud: Cloud, project: Project, region: str) -> Client:
    return Client(cloud, project, region)


@pytest.fixture
def shop(project: Project) -> Mapping[str, str]:
    """Objects of each kind, made by hand: their ids by the names that their resources are to have."""
    return make_shop(project)


def make_shop(project: Project) -> Mapping[str, str]:
    connection = project.connection
    network = connection.network
    compute = connection.compute
    storage = connection.block_storage
    ids = {"key_pair_shop-key": compute.create_keypair(name="shop-key").name}
    group = compute.create_server_group(name="apart", policy="anti-affinity")
    ids["server_group_apart"] = group.id
    net = network.create_network(name="shop net")
    subnet = network.create_subnet(
        network_id=net.id,
        name="shop-subnet",
        ip_version=4,
        cidr="10.8.0.0/24",
        dns_nameservers=["192.0.2.1"],
        host_routes=[{"destination": "10.99.0.0/24", "nexthop": "10.8.0.9"}],
    )
    other = network.create_network(name="inner", is_port_security_enabled=False)
    inner = network.create_subnet(network_id=other.id, ip_version=4, cidr="10.9.0.0/24", gateway_ip=None)
    ids |= {"network_shop_net": net.id, "subnet_shop-subnet": subnet.id}
    ids |= {"network_inner": other.id, f"subnet_{inner.id[:8]}": inner.id}
    public = network.find_network("public")
    router = network.create_router(name="edge", external_gateway_info={"network_id": public.id})
    network.add_interface_to_router(router, subnet=subnet.id)
    ids["router_edge"] = router.id
    ids["interface_router_edge_subnet_shop-subnet"] = f"{router.id}:subnet_id={subnet.id}"
    web = network.create_security_group(name="web", description="Web servers.")
    rule = {"security_group_id": web.id, "direction": "ingress", "ethertype": "IPv4"}
    network.create_security_group_rule(**rule, protocol="tcp", port_range_min=80, port_range_max=81)
    network.create_security_group_rule(**rule, remote_group_id=web.id)
    ids["security_group_web"] = web.id
    port = network.create_port(
        network_id=net.id,
        name="front",
        security_groups=[web.id],
        fixed_ips=[{"subnet_id": subnet.id, "ip_address": "10.8.0.20"}],
        allowed_address_pairs=[{"ip_address": "10.8.0.30"}],
    )
    ids["port_front"] = port.id
    address = network.create_ip(floating_network_id=public.id, port_id=port.id)
    ids["floating_ip_" + address.floating_ip_address.replace(".", "_")] = address.id
    image = connection.image.find_image("cirros")
    data = storage.create_volume(size=1, name="data", description="Orders", metadata={"tier": "gold"})
    root = storage.create_volume(size=1, name="root", image_id=image.id)
    ids |= {"volume_data": data.id, "volume_root": root.id}
    flavor = compute.find_flavor("m1.tiny")
    server = compute.create_server(
        name="web",
        flavor_id=flavor.id,
        image_id=image.id,
        key_name="shop-key",
        networks=[{"port": port.id}, {"uuid": other.id}],
        metadata={"role": "web"},
        scheduler_hints={"group": group.id},
    )
    for volume in (data, root):
        storage.wait_for_status(volume, "available", wait=ACTIVE_WITHIN)
    disk = {"source_type": "volume", "destination_type": "volume", "boot_index": 0}
    booted = compute.create_server(
        name="db",
        flavor_id=flavor.id,
        networks="none",
        block_device_mapping=[{**disk, "uuid": root.id, "delete_on_termination": False}],
    )
    for item in (server, booted):
        compute.wait_for_server(item, wait=ACTIVE_WITHIN)
    compute.create_volume_attachment(server, volume_id=data.id)
    storage.wait_for_status(storage.get_volume(data), "in-use", wait=ACTIVE_WITHIN)
    ids |= {"server_web": server.id, "server_db": booted.id}
    ids["attachment_server_web_volume_data"] = data.id
    return ids


def writes(cloud: Cloud, project: Project) -> list[str]:
    """The requests of a project that may have changed something."""
    lines = [line for name in ("nova", "neutron", "cinder") for line in cloud.requests(name, project)]
    return [line for line in lines if not line.startswith(("GET ", "HEAD "))]


def test_a_project_is_adopted_and_is_a_stack_from_then_on(
    client: Client,
    shop: Mapping[str, str],
    stacks: Stacks,
    cloud: Cloud,
    project: Project,
    tmp_path: pathlib.Path,
) -> None:
    earlier = writes(cloud, project)
    dry_run, adopt, plan = COMMAND.findall((ROOT / "doc/adopt.md").read_text())
    template = yaml.safe_load(client.run(dry_run, tmp_path))
    assert stacks.all() == []
    assert "ADOPT_COMPLETE" in client.run(adopt, tmp_path)
    assert yaml.safe_load((tmp_path / "shop.yaml").read_text()) == template
    [stack] = stacks.all()
    assert physical_ids(stack) == shop
    client.run(plan, tmp_path)
    # Not even an update that compares the template with the cloud has something to do.
    for converges in (False, True):
        stack.update(template, converge=converges)
    assert writes(cloud, project) == earlier
    for arguments, complaint in REFUSED.items():
        assert complaint in client.fails(f"openstack stack adopt-resources other {arguments}", tmp_path)
    everything = project.leftovers()
    stack.delete()
    assert project.leftovers() == everything
    client.run(f"{adopt} --deletion-policy delete --yes", tmp_path)
    [stack] = stacks.all()
    stack.delete()
    assert project.leftovers() == {}


def physical_ids(stack: Stack) -> dict[str, str]:
    return {name: item["physical_resource_id"] for name, item in stack.resources().items()}
