"""Snapshots over the API: shapes and statuses as Heat has them; bad input."""

import json

import pytest
from client.serving import Json, Service, fault
from harness.templates import flat, one, template
from harness.waiting import wait_for

UNKNOWN = "00000000-0000-4000-8000-000000000000"
SHAPE = {"id", "name", "action", "status", "status_reason", "data", "creation_time"}
DATA = {
    "name", "id", "action", "status", "template", "environment", "files", "resources", "tags", "project_id",
    "stack_user_project_id",
}  # fmt: skip


def snapshot_of(service: Service, path: str, **body: Json) -> Json:
    answer = service.call("POST", f"{path}/snapshots", body or None)
    assert answer.status == 200, answer
    assert service.settled(path)["stack_status"] == "SNAPSHOT_COMPLETE"
    return answer.body


def test_a_snapshot_has_heats_shape_from_its_first_answer_on(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", flat(2, value="x"), tags="a,b", files={"f": "text"})
    first = snapshot_of(service, path)
    assert set(first) == SHAPE
    assert (first["name"], first["action"], first["status"], first["status_reason"]) == (
        None,
        "CREATE",
        "IN_PROGRESS",
        "",
    )
    assert set(first["data"]) == DATA
    assert first["data"]["resources"] == {}
    [listed] = service.get(f"{path}/snapshots")["snapshots"]
    snapshot = service.get(f"{path}/snapshots/{first['id']}")["snapshot"]
    assert {name: snapshot[name] for name in SHAPE - {"data"}} == listed
    assert (snapshot["status"], snapshot["status_reason"]) == (
        "COMPLETE",
        "Stack SNAPSHOT completed successfully",
    )
    data = snapshot["data"]
    assert set(data) == DATA
    assert (data["action"], data["status"], data["tags"]) == ("SNAPSHOT", "COMPLETE", ["a", "b"])
    assert data["template"] == flat(2, value="x")
    assert data["files"] == {"f": "text"}
    assert data["project_id"] == data["stack_user_project_id"] == tenant
    assert set(data["resources"]) == {"r0", "r1"}
    assert set(data["resources"]["r0"]) == {
        "name", "resource_id", "type", "action", "status", "metadata", "resource_data",
    }  # fmt: skip
    assert (data["resources"]["r0"]["action"], data["resources"]["r0"]["status"]) == ("SNAPSHOT", "COMPLETE")


def test_a_snapshot_is_restored_and_deleted_by_the_statuses_of_heat(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", flat(1, value="x"))
    snapshot = f"{path}/snapshots/{snapshot_of(service, path, name='n')['id']}"
    assert service.call("PUT", path, {"template": flat(1, value="y")}).status == 202
    service.settled(path)
    assert service.call("POST", f"{snapshot}/restore").status == 202
    assert service.settled(path)["stack_status"] == "RESTORE_COMPLETE"
    assert service.get(f"{path}/template") == flat(1, value="x")
    assert service.call("DELETE", snapshot).status == 204
    wait_for(lambda: service.call("GET", snapshot).status == 404)
    assert service.get(f"{path}/snapshots") == {"snapshots": []}
    for method, below in (("GET", ""), ("DELETE", ""), ("POST", "/restore")):
        answer = service.call(method, snapshot + below)
        assert fault(answer) == (404, "SnapshotNotFound")
        assert "for Stack (s) could not be found" in answer.error["message"]


def test_a_snapshot_of_another_stack_is_not_found(service: Service, tenant: str) -> None:
    first = service.created(tenant, "a", flat(1))
    second = service.created(tenant, "b", flat(1))
    snapshot_id = snapshot_of(service, first)["id"]
    assert fault(service.call("GET", f"{second}/snapshots/{snapshot_id}")) == (404, "SnapshotNotFound")
    assert fault(service.call("POST", f"{second}/snapshots/{snapshot_id}/restore")) == (
        404,
        "SnapshotNotFound",
    )
    assert service.get(f"{first}/snapshots/{snapshot_id}")["snapshot"]["id"] == snapshot_id


def test_wrong_snapshot_requests_are_errors(service: Service, tenant: str) -> None:
    path = service.create(tenant, "s", template({"r": one(action_wait_secs={"create": -1})}))
    assert fault(service.call("POST", f"{path}/snapshots")) == (409, "ActionInProgress")
    assert service.call("DELETE", path).status == 204
    path = service.created(tenant, "t", flat(1))
    for body, message in (
        ({"name": 5}, "name: 5 is not of type string or null"),
        ({"name": "n" * 256}, "name: "),
        ({"title": "n"}, "known: name"),
        (["n"], "is not of type object"),
    ):
        answer = service.call("POST", f"{path}/snapshots", body)
        assert answer.status == 400, answer
        assert message in answer.error["message"]
    assert service.get(f"{path}/snapshots") == {"snapshots": []}


BAD_DOCUMENTS = {
    "no document": ("nothing", ["must be a mapping"]),
    "no YAML": ("a: [", ["Invalid adopt data", "YAML"]),
    "no template": ({"resources": {}}, ['Invalid adopt data: "template" is required']),
    "a template that is a text": ({"template": "x"}, ["Invalid adopt data: template", "object"]),
    "resources in a list": ({"template": flat(1), "resources": []}, ["resources", "object"]),
    "a resource that is a text": (
        {"template": flat(1), "resources": {"r0": "x"}},
        ["resources.r0", "object"],
    ),
    "an id that is too long": (
        {"template": flat(1), "resources": {"r0": {"resource_id": "x" * 2049}}},
        ["resources.r0.resource_id", "2048 characters"],
    ),
    "an id that is a number": (
        {"template": flat(1), "resources": {"r0": {"resource_id": 5}}},
        ["resources.r0.resource_id", "string"],
    ),
    "an id inside of a nested stack that is a number": (
        {"template": flat(1), "resources": {"r0": {"resources": {"n": {"resource_id": 5}}}}},
        ["resources.r0.resources.n.resource_id", "string"],
    ),
    "a resource in the nested stack of another that is a text": (
        {"template": flat(1), "resources": {"r0": {"resources": {"n": {"resources": {"m": "x"}}}}}},
        ["resources.r0.resources.n.resources.m", "object"],
    ),
    "a nested template without a version": (
        {"template": flat(1), "resources": {"r0": {"template": {"resources": {}}}}},
        ["resources.r0.template", "heat_template_version"],
    ),
    "a section of a nested template that there is not": (
        {"template": flat(1), "resources": {"r0": {"template": {**flat(1), "resorces": {}}}}},
        ["resorces", "section"],
    ),
    "a list of resources in a template two levels down": (
        {
            "template": flat(1),
            "resources": {"r0": {"resources": {"n": {"template": template([])}}}},
        },
        ["resources.r0.resources.n.template.resources", "map"],
    ),
    "a resource without a type in a nested template": (
        {"template": flat(1), "resources": {"r0": {"template": template({"m": {"type": 5}})}}},
        ["resources.r0.template.resources.m.type", "not a string"],
    ),
    "data in a list": (
        {"template": flat(1), "resources": {"r0": {"resource_data": []}}},
        ["resources.r0.resource_data", "object"],
    ),
    "an environment with an odd section": (
        {"template": flat(1), "environment": {"parmeters": {}}},
        ["parmeters", "parameters"],
    ),
    "a NUL": ({"template": flat(1), "resources": {"r0": {"resource_id": "\0"}}}, ["resources.r0", "NUL"]),
    "a type that there is not": (
        {"template": template({"r": {"type": "No::Such"}}), "resources": {}},
        ["No::Such"],
    ),
}


@pytest.mark.parametrize("document", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
@pytest.mark.parametrize("as_text", [True, False])
def test_a_document_that_is_of_no_use_is_refused(
    quiet: Service, existing: str, document: tuple[Json, list[str]], as_text: bool
) -> None:
    data, fragments = document
    if as_text and not isinstance(data, str):
        data = json.dumps(data)
    rows = quiet.rows()
    answer = quiet.call("POST", "/v1/quiet/stacks", {"stack_name": "adopted", "adopt_stack_data": data})
    assert answer.status == 400, answer
    assert not [text for text in fragments if text not in answer.error["message"]], answer.error["message"]
    purged = {"traversal": 0, "task": 0}
    assert {**quiet.rows(), **purged} == {**rows, **purged}


def test_the_request_wins_over_the_document(service: Service, tenant: str) -> None:
    declared = {"word": {"type": "string"}, "size": {"type": "number"}, "file": {"type": "string"}}
    adopted_template = template(
        {"r": one(value={"get_file": "f"})},
        parameters=declared,
        outputs={"said": {"value": {"get_param": "word"}}, "file": {"value": {"get_attr": ["r", "output"]}}},
    )
    document = {
        "template": adopted_template,
        "environment": {"parameters": {"word": "theirs", "size": 1, "file": "x"}},
        "files": {"f": "their file"},
        "resources": {"r": {"resource_id": "there", "resource_data": {"value": "their file"}}},
        "action": "CREATE",
        "something": ["else"],
    }
    body = {
        "stack_name": "s",
        "adopt_stack_data": document,
        "parameters": {"word": "ours"},
        "template": flat(9),
    }
    answer = service.call("POST", f"/v1/{tenant}/stacks", body)
    assert answer.status == 201, answer
    path = f"/v1/{tenant}/stacks/s/{answer.body['stack']['id']}"
    stack = service.settled(path)
    assert stack["stack_status"] == "ADOPT_COMPLETE"
    assert (stack["parameters"]["word"], stack["parameters"]["size"]) == ("ours", "1")
    assert {o["output_key"]: o["output_value"] for o in stack["outputs"]} == {
        "said": "ours",
        "file": "their file",
    }
    assert service.get(f"{path}/files") == {"f": "their file"}
    assert service.get(f"{path}/resources/r")["resource"]["physical_resource_id"] == "there"


def test_neither_export_nor_abandon_finds_a_deleted_stack(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", flat(1))
    assert service.call("DELETE", f"{path}/abandon").status == 200
    assert service.get(path)["stack"]["stack_status"] == "DELETE_COMPLETE"
    assert fault(service.call("DELETE", f"{path}/abandon")) == (404, "EntityNotFound")
    assert fault(service.call("GET", f"{path}/export")) == (404, "EntityNotFound")
    assert fault(service.call("POST", f"{path}/snapshots")) == (404, "EntityNotFound")
    assert fault(service.call("GET", f"/v1/{tenant}/stacks/s/{UNKNOWN}/export")) == (404, "EntityNotFound")
