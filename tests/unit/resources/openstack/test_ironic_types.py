"""Ports of bare metal nodes on scripted answers."""

import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.openstack.marks import chosen_id
from stoker.resources.openstack.service import Conflict

RESOURCE_TYPES = types_of("openstack.ironic")

Json = typing.Any
PORT = RESOURCE_TYPES["OS::Ironic::Port"]()
NODE = "11111111-2222-4333-8444-555555555555"
PROPERTIES = {"node": "metal", "address": "fa:16:3e:00:00:01", "pxe_enabled": True, "portgroup": "bond"}


def has_port(scripted: ScriptedService, status: int = 201) -> str:
    """The service knows the node and the group, and has a port with the chosen id once it was made."""
    port_id = chosen_id(target_of(PORT, PROPERTIES).key)
    remote = {"uuid": port_id, "address": PROPERTIES["address"], "node_uuid": NODE, "pxe_enabled": True}
    scripted.answers |= {
        "GET /nodes/metal": Answer(200, {"uuid": NODE, "name": "metal"}),
        "GET /portgroups/bond": Answer(200, {"uuid": "g", "name": "bond"}),
        "POST /ports": Answer(status, remote),
        f"GET /ports/{port_id}": Answer(200, remote),
        f"PATCH /ports/{port_id}": Answer(200, remote),
    }
    return port_id


def test_a_port_has_an_id_of_its_own(scripted: ScriptedService, context: ScriptedContext) -> None:
    port_id = has_port(scripted)
    target = run(PORT, "create", target_of(PORT, PROPERTIES), context)
    assert target.physical_id == port_id
    [body] = [each for each in scripted.sent if each]
    assert body == {
        "uuid": port_id,
        "node_uuid": NODE,
        "portgroup_uuid": "g",
        "address": "fa:16:3e:00:00:01",
        "pxe_enabled": True,
    }
    assert PORT.attribute_values(target)["node_uuid"] == NODE
    assert PORT.live_properties(target, context) == {"address": "fa:16:3e:00:00:01", "pxe_enabled": True}


def test_a_lost_port_is_found_by_it(scripted: ScriptedService, context: ScriptedContext) -> None:
    port_id = has_port(scripted, status=409)
    assert run(PORT, "create", target_of(PORT, PROPERTIES), context).physical_id == port_id
    del scripted.answers[f"GET /ports/{port_id}"]
    with pytest.raises(Conflict):
        run(PORT, "create", target_of(PORT, PROPERTIES), context)


def test_a_change_is_a_patch(scripted: ScriptedService, context: ScriptedContext) -> None:
    port_id = has_port(scripted)
    target = target_of(PORT, {**PROPERTIES, "portgroup": None, "extra": {"a": 1}}, physical_id=port_id)
    run(PORT, "update", target, context, changed=frozenset({"portgroup", "extra"}))
    assert scripted.sent[-1] == [
        {"op": "replace", "path": "/extra", "value": {"a": 1}},
        {"op": "remove", "path": "/portgroup_uuid"},
    ]


def test_a_deletion_ends_when_the_port_is_gone(scripted: ScriptedService, context: ScriptedContext) -> None:
    port_id = has_port(scripted)
    scripted.answers[f"DELETE /ports/{port_id}"] = Answer(204)
    target = target_of(PORT, PROPERTIES, physical_id=port_id)
    step = PORT.handle_delete(target, context)
    later = PORT.check_delete_complete(target, step.progress, context)
    assert later.progress == step.progress
    del scripted.answers[f"GET /ports/{port_id}"]
    run(PORT, "delete", target, context)
