"""Previews of updates show the old and new values of properties."""

import json

import pytest
from client.serving import Json, Service
from harness.templates import one, template

INNER = {
    "child.yaml": json.dumps(
        template(
            {"r": one(value={"get_param": "word"}), "s": one(value={"get_param": "password"})},
            parameters={"word": {"type": "string"}, "password": {"type": "string", "hidden": True}},
        )
    )
}


def changes(service: Service, path: str, query: str = "", **body: Json) -> Json:
    answer = service.call("PUT", f"{path}/preview{query}", body)
    assert answer.status == 200, answer
    return answer.body["resource_changes"]


def values_of(items: Json) -> Json:
    """Old and new values by resource, those of a nested stack by its name and theirs."""
    return {
        "/".join(filter(None, [item.get("parent_resource"), item["resource_name"]])): {
            name: (change["old"], change["new"]) for name, change in item["property_changes"].items()
        }
        for item in items
    }


def test_a_preview_shows_old_and_new_values(service: Service, tenant: str) -> None:
    def document(value: str, fixed: str) -> Json:
        resources = {
            "up": one(value=value, wait_secs=0),
            "new": one(update_replace_value=fixed),
            "same": one(),
            "text": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["up", "output"]}}},
            "kind": one() if value == "m" else {"type": "OS::Heat::None"},
        }
        return template(resources if value == "m" else {**resources, "more": one()})

    path = service.created(tenant, "s", document("m", "1"))
    preview = changes(service, path, template=document("n", "2"))
    assert values_of(preview["updated"]) == {"up": {"value": ("m", "n")}, "text": {}}, (
        "its value is not known yet"
    )
    assert values_of(preview["replaced"]) == {"new": {"update_replace_value": ("1", "2")}, "kind": {}}
    new, kind = preview["replaced"]
    assert new["property_changes"]["update_replace_value"]["requires_replacement"] is True
    assert new["resource_status_reason"] == "the change of update_replace_value requires a replacement"
    assert kind["resource_status_reason"] == (
        "its type changes from OS::Heat::TestResource to OS::Heat::None"
    )
    assert not any("property_changes" in item for kind in ("added", "unchanged") for item in preview[kind])
    answer = service.call("PATCH", f"{path}/preview", {"template": document("n", "1")})
    assert values_of(answer.body["resource_changes"]["updated"])["up"] == {"value": ("m", "n")}


def test_a_failure_is_named_as_the_cause(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"a": one(value="m")}))
    failing = template({"a": one(value="m", fail=True)})
    assert service.call("PUT", path, {"template": failing}).status == 202
    assert service.settled(path)["stack_status"] == "UPDATE_FAILED"
    (change,) = changes(service, path, template=template({"a": one(value="n")}))["replaced"]
    assert values_of([change]) == {"a": {"value": ("m", "n")}}, "what failed has changed nothing"
    assert change["resource_status_reason"] == "its UPDATE failed"


@pytest.mark.parametrize("use", [{"get_param": "word"}, {"list_join": ["-", ["x", {"get_param": "word"}]]}])
def test_hidden_values_are_masked(service: Service, tenant: str, use: Json) -> None:
    parameters = {"word": {"type": "string", "hidden": True}}
    body = template({"a": one(value=use)}, parameters=parameters)
    path = service.created(tenant, "s", body, parameters={"word": "planted-one"})
    preview = changes(service, path, template=body, parameters={"word": "planted-two"})
    assert values_of(preview["updated"]) == {"a": {"value": ("******", "******")}}
    assert "planted" not in json.dumps(preview)
    assert "$fn" not in json.dumps(preview)


def test_nested_stacks_show_values_too_and_mask_what_their_templates_hide(
    service: Service, tenant: str
) -> None:
    def document(word: str) -> Json:
        properties = {"word": word, "password": f"planted-{word}"}
        group = {"resource_def": {"type": "child.yaml", "properties": properties}, "count": 1}
        return template(
            {
                "n": {"type": "child.yaml", "properties": properties},
                "g": {"type": "OS::Heat::ResourceGroup", "properties": group},
            }
        )

    path = service.created(tenant, "s", document("one"), files=INNER)
    preview = changes(service, path, "?show_nested=true", template=document("two"), files=INNER)
    assert "planted" not in json.dumps(preview)
    values = values_of(preview["updated"])
    (old, new) = values.pop("g")["resource_def"]
    assert [side["properties"] for side in (old, new)] == [
        {"word": word, "password": "******"} for word in ("one", "two")
    ]
    masked = ("******", "******")
    assert values == {
        "n": {"word": ("one", "two"), "password": masked},
        "n/r": {"value": ("one", "two")},
        "n/s": {"value": masked},
        "g/0": {"word": ("one", "two"), "password": masked},
        "0/r": {"value": ("one", "two")},
        "0/s": {"value": masked},
    }


def test_large_values_are_cut(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"a": one(value="x" * 20000 + "m")}))
    (change,) = changes(service, path, template=template({"a": one(value="x" * 20000 + "n")}))["updated"]
    assert change["property_changes"]["value"] == {
        "old": f"…{'x' * 20}m",
        "new": f"…{'x' * 20}n",
        "requires_replacement": False,
    }
