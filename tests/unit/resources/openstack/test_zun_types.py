"""Containers on scripted answers of the container service."""

import dataclasses
import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.service import UnreadableAnswer

RESOURCE_TYPES = types_of("openstack.zun")

Json = typing.Any
CONTAINER = RESOURCE_TYPES["OS::Zun::Container"]()
NETWORK, SECOND, PORT, OWN = (f"{number}1111111-2222-4333-8444-555555555555" for number in range(1, 5))
PATH = "/containers/c"
DETACH, ATTACH = (f"POST {PATH}/network_{action}" for action in ("detach", "attach"))


def interface(port: str, network: str, address: str = "10.0.0.5") -> Json:
    return {"port_id": port, "net_id": network, "fixed_ips": [{"ip_address": address, "version": 4}]}


def view(status: str = "Running", **fields: Json) -> Json:
    return {"uuid": "c", "name": "web", "status": status, "interactive": False, **fields}


def has_container(scripted: ScriptedService, container: Json) -> None:
    creating = {**container, "status": "Creating"}
    scripted.answers |= {
        "POST /containers?run=true": Answer(202, creating),
        f"GET {PATH}": Answer(200, container),
        f"PATCH {PATH}": Answer(200, container),
        "GET /containers": Answer(200, {"containers": [container], "next": None}),
        f"GET /networks/{NETWORK}": Answer(200, {"network": {"id": NETWORK, "name": "front"}}),
    }


def test_a_container_runs(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_container(scripted, view(addresses={NETWORK: [{"addr": "10.0.0.5", "port": PORT}]}))
    properties = {
        "image": "nginx",
        "command": "sh -c 'echo hello'",
        "environment": {"WORKERS": 2},
        "restart_policy": "on-failure:3",
        "memory": 512,
        "mounts": [
            {"volume_size": 1, "mount_path": "/data"},
            {"volume_id": "v", "mount_path": "/more"},
        ],
        "networks": [
            {"network": NETWORK, "fixed_ip": "10.0.0.5"},
            {"network": SECOND, "fixed_ip": "2001:db8::5"},
            {"port": PORT},
        ],
    }
    target = run(CONTAINER, "create", target_of(CONTAINER, properties), context)
    assert target.physical_id == "c"
    [body] = [body for body in scripted.sent if body]
    assert body == {
        "image": "nginx",
        "command": ["sh", "-c", "echo hello"],
        "environment": {"WORKERS": "2"},
        "labels": {"stoker": mark_of(target.key)},
        "restart_policy": {"Name": "on-failure", "MaximumRetryCount": "3"},
        "memory": 512,
        "mounts": [{"size": 1, "destination": "/data"}, {"source": "v", "destination": "/more"}],
        "nets": [
            {"network": NETWORK, "v4-fixed-ip": "10.0.0.5"},
            {"network": SECOND, "v6-fixed-ip": "2001:db8::5"},
            {"port": PORT},
        ],
    }
    entries = [{"addr": "10.0.0.5", "port": PORT}]
    assert CONTAINER.attribute_values(target)["addresses"] == {NETWORK: entries, "front": entries}


@pytest.mark.parametrize(
    ("container", "text"),
    [
        (view("Error", status_reason="no image"), 'Went to status ERROR due to "no image"'),
        (view("Stopped", interactive=True), "interactive mode was enabled but the container has stopped"),
    ],
)
def test_a_container_that_fails(
    scripted: ScriptedService, context: ScriptedContext, container: Json, text: str
) -> None:
    has_container(scripted, container)
    with pytest.raises(PermanentError, match=text):
        run(CONTAINER, "create", target_of(CONTAINER, {"image": "nginx"}), context)


@pytest.mark.parametrize("fields", [{"addresses": "x"}, {"addresses": {NETWORK: 1}}, {"labels": []}])
def test_an_answer_of_another_form_is_requested_again(
    scripted: ScriptedService, context: ScriptedContext, fields: Json
) -> None:
    has_container(scripted, view(**fields))
    with pytest.raises(UnreadableAnswer):
        run(CONTAINER, "create", target_of(CONTAINER, {"image": "nginx"}), context)


def test_a_container_may_have_done_its_work(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_container(scripted, view("Stopped"))
    run(CONTAINER, "create", target_of(CONTAINER, {"image": "nginx"}), context)


def test_a_lost_container_is_found_by_its_label(scripted: ScriptedService, context: ScriptedContext) -> None:
    target = target_of(CONTAINER, {"image": "nginx"})
    has_container(scripted, view(labels=None))
    assert CONTAINER.find_created(target.key, target, context) is None
    has_container(scripted, view(labels={"stoker": mark_of(target.key), "app": "a"}))
    assert CONTAINER.find_created(target.key, target, context) == "c"
    created = dataclasses.replace(target, physical_id="c")
    created = dataclasses.replace(created, data=CONTAINER.refresh(created, context))
    assert CONTAINER.attribute_values(created)["show"]["labels"] == {"app": "a"}


def test_a_container_is_stopped_and_deleted(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers[f"DELETE {PATH}?stop=true"] = Answer(204)
    scripted.answers[f"GET {PATH}"] = Answer(200, view("Deleting"))
    target = target_of(CONTAINER, {"image": "nginx"}, physical_id="c")
    step = CONTAINER.handle_delete(target, context)
    assert CONTAINER.check_delete_complete(target, step.progress, context).progress == step.progress
    del scripted.answers[f"GET {PATH}"]
    run(CONTAINER, "delete", target, context)


def test_limits_and_the_name_change_in_place(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_container(scripted, view(cpu=2.0, memory="256", environment={"A": "b"}))
    target = target_of(CONTAINER, {"image": "nginx", "cpu": 2, "memory": 256}, physical_id="c")
    run(CONTAINER, "update", target, context, changed=frozenset({"cpu", "memory"}))
    assert [body for body in scripted.sent if body] == [{"cpu": 2, "memory": 256}]
    assert CONTAINER.live_properties(target, context) == {"cpu": 2.0, "memory": "256"}


def test_interfaces_are_exchanged_one_after_the_other(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    """The service takes one interface of a network; what somebody else has attached stays."""
    has_container(scripted, view())
    listed = f"GET {PATH}/network_list"
    others = interface(OWN, SECOND)
    before = resolve_properties(
        CONTAINER.properties_schema, {"image": "nginx", "networks": [{"network": NETWORK}]}
    )
    target = target_of(CONTAINER, {"image": "nginx", "networks": [{"port": PORT}]}, physical_id="c")
    target = dataclasses.replace(target, previous=before)
    scripted.answers |= {DETACH: Answer(202), ATTACH: Answer(200)}
    scripted.answers[listed] = Answer(200, {"networks": [interface("p", NETWORK), others]})

    def posted() -> list[str]:
        return [request for request in scripted.requests if request.startswith("POST")]

    step = CONTAINER.handle_update(target, frozenset({"networks"}), context)
    step = CONTAINER.check_update_complete(target, step.progress, context)
    again = CONTAINER.check_update_complete(target, step.progress, context)
    assert posted() == [f"{DETACH}?port=p"]
    assert again.progress == step.progress
    scripted.answers[listed] = Answer(200, {"networks": [others]})
    step = CONTAINER.check_update_complete(target, step.progress, context)
    assert posted() == [f"{DETACH}?port=p", f"{ATTACH}?port={PORT}"]
    scripted.answers[listed] = Answer(200, {"networks": [others, interface(PORT, NETWORK)]})
    done = CONTAINER.check_update_complete(target, step.progress, context)
    assert done.data["thing"]["uuid"] == "c"
    assert len(posted()) == 2


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"restart_policy": "always:3"}, 'restart_policy "always:3" is invalid. Valid values are "no"'),
        ({"restart_policy": "sometimes"}, "is invalid"),
        ({"mounts": [{"mount_path": "/a"}]}, "One of volume_id and volume_size is needed, and not both"),
        (
            {"mounts": [{"mount_path": "/a", "volume_id": "v", "volume_size": 1}]},
            "One of volume_id and volume_size is needed, and not both",
        ),
        ({"networks": [{"fixed_ip": "10.0.0.5"}]}, "One of network and port is needed"),
        ({"networks": [{"port": "p", "fixed_ip": "10.0.0.5"}]}, "fixed_ip and port exclude each other"),
    ],
)
def test_rules_of_containers(properties: Json, text: str) -> None:
    with pytest.raises(PropertyError, match=text):
        CONTAINER.validate(resolve_properties(CONTAINER.properties_schema, {"image": "i", **properties}))


@pytest.mark.parametrize("policy", ["no", "on-failure", "on-failure:", "on-failure:5", "unless-stopped"])
def test_restart_policies(policy: str) -> None:
    properties = {"image": "i", "restart_policy": policy}
    CONTAINER.validate(resolve_properties(CONTAINER.properties_schema, properties))
