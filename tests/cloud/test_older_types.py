"""The sample etc/older_types on a real cloud: an address of Nova's for a server."""

import pathlib
import typing
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on

Json = typing.Any
SAMPLE = pathlib.Path(__file__).parents[2] / "etc" / "older_types"
OPTIONS = f"[stacks]\nenvironment_dir = {SAMPLE}/environment.d\ntemplate_dir = {SAMPLE}/templates\n"
TEMPLATE = """\
heat_template_version: 2013-05-23
resources:
  net: {type: OS::Neutron::Net}
  subnet:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: net}, cidr: 10.41.0.0/24}
  router:
    type: OS::Neutron::Router
    properties: {external_gateway_info: {network: public}}
  interface:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: subnet}}
  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny, networks: [{network: {get_resource: net}}]}
    depends_on: interface
  named: {type: OS::Nova::FloatingIP, properties: {pool: public}}
  only: {type: OS::Nova::FloatingIP}
  association:
    type: OS::Nova::FloatingIPAssociation
    properties: {server_id: {get_resource: server}, floating_ip: {get_resource: named}}
outputs:
  named: {value: {get_attr: [named, ip]}}
  only: {value: {get_attr: [only, ip]}}
  pools: {value: [{get_attr: [named, pool]}, {get_attr: [only, pool]}]}
"""


@pytest.fixture(scope="module")
def sampled(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with stoker_on(cloud, tmp_path_factory.mktemp("sampled"), OPTIONS) as service:
        yield service


def test_a_server_gets_an_address_of_novas(sampled: Service, project: Project) -> None:
    network = project.connection.network
    stacks = Stacks(sampled, project)
    stack = stacks.create("older", TEMPLATE)
    values = stack.outputs()
    addresses = {item.floating_ip_address: item for item in network.ips()}
    assert addresses.keys() == {values["named"], values["only"]}
    [port] = network.ports(device_id=stack.physical_id("server"))
    assert [addresses[values[name]].port_id for name in ("named", "only")] == [port.id, None]
    assert values["pools"] == [network.find_network("public").id] * 2
    stack.delete()
    assert project.leftovers() == {}
