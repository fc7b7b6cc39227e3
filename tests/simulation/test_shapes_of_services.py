"""Templates in the shapes of those of Magnum, Tacker and TripleO become stacks, within the default limits.

The API, the engine and the properties of all types are the real ones; nothing is made in a cloud.
"""

import functools
import pathlib
import typing
from collections.abc import Mapping

import falcon.testing
import pytest
import yaml
from harness.resource_types import types_of
from simulation.test_life import api_of
from simulation.world import SHARDS, World
from stoker.cli.config.options import load
from stoker.cli.wiring.engine import engine_settings
from stoker.resources.contract.context import StepContext
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.steps import Done, Step
from stoker.resources.contract.views import ResourceView
from stoker.template.compile import Limits

CINDER = types_of("openstack.cinder")
NEUTRON = types_of("openstack.neutron")
NOVA = types_of("openstack.nova")

Json = typing.Any
SHAPES = pathlib.Path(__file__).parent / "shapes"
STACKS = "/v1/tenant/stacks"
SCRIPT = 355_717
"""Bytes of the software config that each node of a cluster of Magnum's gets."""


class Unmade(ResourceType):
    """The part of a type that calls a cloud, without the calls."""

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return Done(physical_id=target.physical_name)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        return Done()

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        return {"fixed_ips": [{"ip_address": "10.0.0.4"}], "networks": {"ctlplane": ["10.0.0.5"]}}


TYPES = {
    name: type(kind.__name__, (Unmade, kind), {}) for name, kind in {**CINDER, **NEUTRON, **NOVA}.items()
}


@functools.cache
def default_limits() -> Limits:
    """Return the limits of an installation whose configuration has none."""
    return engine_settings(load([], program="stoker", files=[]), SHARDS).limits


class Cloud:
    """A world whose API has the limits of a new installation."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.world = World(folder, types=TYPES, limits=default_limits())
        self.api: falcon.testing.TestClient = api_of(self.world)

    def call(self, method: str, path: str, body: Json = None) -> Json:
        """One request that must succeed; its body."""
        answer = self.api.simulate_request(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json if answer.content else None

    def settled(self, path: str) -> Json:
        """Return the stack, once all is done."""
        self.world.calm()
        return self.call("GET", path)["stack"]

    def physical_ids(self, path: str) -> Mapping[str, str]:
        """Return the ids of all resources, nested ones too, by their addresses."""
        listed = self.call("GET", f"{path}/resources?nested_depth=20")["resources"]
        return {item["links"][0]["href"]: item["physical_resource_id"] for item in listed}


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> Cloud:
    return Cloud(tmp_path)


def outputs_of(stack: Json) -> dict[str, Json]:
    assert not any("output_error" in item for item in stack["outputs"]), stack["outputs"]
    return {item["output_key"]: item["output_value"] for item in stack["outputs"]}


def body_of(project: str, root: str, **parameters: Json) -> Json:
    """Return a request in the shape of a project's, with all that its client sends besides."""
    environment = SHAPES / f"{project}_environment.yaml"
    registry = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return {
        "stack_name": project,
        "template": (SHAPES / f"{project}_{root}.yaml").read_text(),
        "template_url": {},
        "files": {
            "large.sh": "echo",
            **{path.name: path.read_text() for path in SHAPES.glob(f"{project}_*")},
        },
        "environment": {**registry, "parameters": {}, "event_sinks": []},
        "parameters": parameters,
        "disable_rollback": True,
        "timeout_mins": 60,
        "tags": "",
    }


CLUSTER_ADDRESSES = {"worker_addresses": ["10.0.0.4", "10.0.0.4"], "master_addresses": ["10.0.0.4"]}
VNF = yaml.safe_load((SHAPES / "tacker_parameters.yaml").read_text())
CASES = {
    "a cluster on images": ("magnum", "cluster", {}, CLUSTER_ADDRESSES),
    "a cluster on volumes": ("magnum", "cluster", {"boot_volume_size": 8}, CLUSTER_ADDRESSES),
    "workers alone": (
        "magnum",
        "cluster",
        {"is_cluster_stack": False},
        {"worker_addresses": ["10.0.0.4", "10.0.0.4"], "master_addresses": None},
    ),
    "a network function": ("tacker", "vnf", VNF, {}),
    "an overcloud": (
        "tripleo",
        "overcloud",
        {},
        {"names": ["api_Controller", "agent"], "public": "http://overcloud.internal", "bottom": ["1"]},
    ),
    "an overcloud without nodes": ("tripleo", "overcloud", {"Count": 0}, {"hosts": "\n", "bottom": ["1"]}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_shape_becomes_a_stack_which_the_same_request_leaves_alone(
    cloud: Cloud, case: tuple[str, str, Json, Mapping[str, Json]]
) -> None:
    project, root, parameters, expected = case
    body = body_of(project, root, **parameters)
    path = f"{STACKS}/{project}/{cloud.call('POST', STACKS, body)['stack']['id']}"
    stack = cloud.settled(path)
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    outputs = outputs_of(stack)
    assert {name: outputs[name] for name in expected} == expected

    ids = cloud.physical_ids(path)
    cloud.call("PUT", path, {**body, "stack_name": "another"})
    stack = cloud.settled(path)
    assert stack["stack_status"] == "UPDATE_COMPLETE", stack["stack_status_reason"]
    assert cloud.physical_ids(path) == ids

    cloud.call("DELETE", path)
    assert cloud.settled(path)["stack_status"] == "DELETE_COMPLETE"


def test_each_node_gets_a_script_as_large_as_that_of_magnum(cloud: Cloud) -> None:
    body = body_of("magnum", "cluster", worker_count=0)
    body["files"]["large.sh"] = ("x" * 99 + "\n") * (SCRIPT // 100 + 1)
    stack = cloud.call("POST", STACKS, body)["stack"]
    assert cloud.settled(f"{STACKS}/magnum/{stack['id']}")["stack_status"] == "CREATE_COMPLETE"
