"""Clusters of containers on scripted answers."""

import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties

RESOURCE_TYPES = types_of("openstack.magnum")

Json = typing.Any
CLUSTER = RESOURCE_TYPES["OS::Magnum::Cluster"]()
TEMPLATE = RESOURCE_TYPES["OS::Magnum::ClusterTemplate"]()
ID = "11111111-2222-4333-8444-555555555555"
PROPERTIES = {"cluster_template": "model", "node_count": 2}


def has_cluster(scripted: ScriptedService, *statuses: str) -> None:
    """The service has made a cluster, which has the last of these states in the end."""
    scripted.answers |= {
        "GET /clustertemplates/model": Answer(200, {"uuid": ID}),
        "GET /clusters": Answer(200, {"clusters": []}),
        "POST /clusters": Answer(202, {"uuid": "c"}),
        "PATCH /clusters/c": Answer(202, {"uuid": "c"}),
        "GET /clusters/c": Answer(200, {"uuid": "c", "status": statuses[-1], "status_reason": "no host"}),
    }


def test_a_cluster_is_waited_for_though_the_first_answer_has_its_id_only(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cluster(scripted, "CREATE_COMPLETE")
    target = run(CLUSTER, "create", target_of(CLUSTER, PROPERTIES), context)
    [body] = [each for each in scripted.sent if each]
    fields = {"cluster_template_id": ID, "node_count": 2, "master_count": 1, "create_timeout": 60}
    assert body == {"name": target.physical_name, **fields}
    assert CLUSTER.attribute_values(target)["status"] == "CREATE_COMPLETE"
    has_cluster(scripted, "CREATE_FAILED")
    with pytest.raises(PermanentError, match='CREATE_FAILED due to "no host"'):
        run(CLUSTER, "create", target_of(CLUSTER, PROPERTIES), context)


def test_a_change_is_a_patch(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_cluster(scripted, "CREATE_COMPLETE")
    target = target_of(CLUSTER, {**PROPERTIES, "node_count": 3}, physical_id="c")
    step = CLUSTER.handle_update(target, frozenset({"node_count"}), context)
    assert scripted.sent[-1] == [{"op": "replace", "path": "/node_count", "value": 3}]
    later = CLUSTER.check_update_complete(target, step.progress, context)
    assert later == step, "the state of before counts for nothing"
    has_cluster(scripted, "UPDATE_COMPLETE")
    run(CLUSTER, "update", target, context, changed=frozenset({"node_count"}))


def test_an_engine_can_use_its_drivers_only() -> None:
    properties = {"image": "i", "external_network": "n", "coe": "swarm", "volume_driver": "cinder"}
    with pytest.raises(PropertyError, match="cinder is not supported by COE:swarm, expecting a rexray"):
        TEMPLATE.validate(resolve_properties(TEMPLATE.properties_schema, properties))


def test_a_model_names_things_by_their_ids(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers |= {
        "GET /clustertemplates": Answer(200, {"clustertemplates": []}),
        "POST /clustertemplates": Answer(201, {"uuid": "t"}),
    }
    network = {"external_network": ID, "fixed_network": ID, "fixed_subnet": ID}
    properties = {**network, "image": ID, "flavor": ID, "keypair": "k", "coe": "kubernetes"}
    run(TEMPLATE, "create", target_of(TEMPLATE, properties), context)
    [body] = [each for each in scripted.sent if each]
    named = ("external_network_id", "fixed_network", "fixed_subnet", "image_id", "flavor_id", "keypair_id")
    assert [body[name] for name in named] == [ID, ID, ID, ID, ID, "k"]
