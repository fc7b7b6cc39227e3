"""The values that the parameters of public templates get."""

import pathlib
import typing

import pytest
import yaml
from harness.cloud.checkout import Checkout, Sample
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
SERVER = """
heat_template_version: 2018-08-31
parameters:
  picture: {type: string}
  places: {type: comma_delimited_list}
  number: {type: string}
  where: {type: string, default: somewhere}
resources:
  server:
    type: OS::Nova::Server
    properties:
      image: {get_param: picture}
      flavor: big one
      networks: [{network: {get_param: where}}]
      availability_zone: {get_param: [places, {get_param: number}]}
"""
NETWORK = """
heat_template_version: 2018-08-31
parameters:
  range: {type: string}
  first: {type: string}
  outside: {type: string, default: theirs}
  name: {type: string, default: own}
resources:
  net:
    type: OS::Neutron::Net
    properties: {name: {get_param: name}}
  subnet:
    type: OS::Neutron::Subnet
    properties:
      network: {get_resource: net}
      cidr: {get_param: range}
      allocation_pools: [{start: {get_param: first}, end: 10.77.0.99}]
  router:
    type: OS::Neutron::Router
    properties: {external_gateway_info: {network: {get_param: outside}}}
"""
GROUP = """
heat_template_version: 2018-08-31
parameters:
  what: {type: string}
  size: {type: number, constraints: [{range: {min: 2, max: 4}}]}
  word: {type: string, constraints: [{allowed_pattern: "[a-c]{3}"}]}
  kind: {type: string, constraints: [{allowed_values: [x, y]}]}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: size}
      resource_def:
        type: server.yaml
        properties: {picture: {get_param: what}, number: 0, places: [a]}
"""


def _properties(name: str) -> Json:
    if name not in REGISTRY.names():
        return {}
    return resource_type_schema(name, REGISTRY.get(name))["properties"]


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    for name, text in {"server": SERVER, "network": NETWORK, "group": GROUP}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def _sample(root: pathlib.Path, name: str, address: str = "", **document: Json) -> Sample:
    [sample] = Checkout(root, {"*.yaml": document}, _properties, address).samples(f"{name}.yaml")
    assert isinstance(sample, Sample), sample
    return sample


def test_a_parameter_gets_what_the_property_needs_that_uses_it(root: pathlib.Path) -> None:
    assert _sample(root, "server").parameters() == {
        "picture": "cirros",
        "places": "nova,nova,nova",
        "number": 1,
        "where": "templates-net",
    }
    network = _sample(root, "network")
    assert network.parameters() == {"range": "10.77.0.0/24", "first": "10.77.0.20", "outside": "public"}
    assert network.change() == {**network.parameters(), "name": "own-2"}


def test_uses_in_nested_templates_count_and_constraints_are_met(root: pathlib.Path) -> None:
    group = _sample(root, "group", parameters={"kind": "y"})
    parameters = group.parameters()
    assert (parameters["what"], parameters["size"], parameters["kind"]) == ("cirros", 2, "y")
    assert len(parameters["word"]) == 3
    assert set(parameters["word"]) <= set("abc")
    assert {("nova.flavor", "big one"), ("glance.image", "cirros")} <= set(group.named_objects())
    assert group.types == {"OS::Heat::ResourceGroup", "OS::Nova::Server"}


def test_a_number_that_names_a_thing_is_its_name(root: pathlib.Path) -> None:
    (root / "server.yaml").write_text(SERVER.replace("picture: {type: string}", "picture: {type: number}"))
    server = _sample(root, "server")
    assert server.parameters()["picture"] == 1
    assert ("glance.image", "1") in set(server.named_objects())


def test_an_update_changes_a_flavor_or_a_name_or_else_what_may_change(root: pathlib.Path) -> None:
    group = _sample(root, "group")
    assert group.change() == {**group.parameters(), "size": 3}
    (root / "group.yaml").write_text(GROUP.replace("min: 2, max: 4", "min: 2, max: 2"))
    group = _sample(root, "group")
    assert group.change() == {**group.parameters(), "kind": "y"}
    (root / "server.yaml").write_text(SERVER.replace("big one", "{get_param: number}"))
    server = _sample(root, "server")
    assert server.change() == {**server.parameters(), "number": "m1.small"}


def test_templates_at_the_checkouts_address_are_read_from_it(root: pathlib.Path) -> None:
    address = "https://example.com/templates"
    text = GROUP.replace("server.yaml", f"{address}/server.yaml")
    (root / "group.yaml").write_text(text)
    sample = _sample(root, "group", address)
    assert yaml.safe_load(sample.files[f"{address}/server.yaml"])["resources"].keys() == {"server"}
    assert sample.parameters()["what"] == "cirros"


def test_a_file_that_is_no_text_is_sent_as_base64(root: pathlib.Path) -> None:
    (root / "key").write_bytes(b"\xff\x00")
    text = NETWORK + "outputs: {key: {value: {get_file: key}}}\n"
    (root / "network.yaml").write_text(text)
    assert list(_sample(root, "network").files.values()) == ["/wA=\n"]
