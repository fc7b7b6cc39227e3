"""Attacks on stacks of another project by ids that documents of the own one carry."""

import json
import typing

from attack.cases import case
from attack.target import Target, Unexpected, expect

Json = typing.Any
VERSION = "2021-04-16"
INNER = "inner.yaml"
EMPTY: Json = {"heat_template_version": VERSION, "resources": {"v": {"type": "OS::Heat::RandomString"}}}
NESTED: dict[str, Json] = {
    "stack": {"type": "OS::Heat::Stack", "properties": {"template": json.dumps(EMPTY)}},
    "provider": {"type": INNER},
    "group": {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 1, "resource_def": {"type": "OS::Heat::RandomString"}},
    },
    "scaling": {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 1, "resource": {"type": "OS::Heat::RandomString"}},
    },
    "chain": {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["OS::Heat::RandomString"]}},
}
"""A resource of each kind of nested stack, by name."""
SEEN = (
    *("/export", "/resources?nested_depth=5&with_detail=true", "/events?nested_depth=5", "/template"),
    "/resources",
)
"""Views of a stack that follow nested stacks."""


def _sees_nothing(target: Target, path: str, goal: Json) -> None:
    """Read all that follows the nested stacks of a stack, and at last abandon it.

    :raises Unexpected: it shows the victim's stack.
    """
    previews = {**goal, "template": EMPTY}
    answers = [target.send("GET", f"{path}{view}") for view in SEEN]
    answers.append(target.send("PUT", f"{path}/preview?show_nested=true", previews))
    answers.append(target.send("PUT", f"{path}/preview?show_nested=true", goal))
    answers.append(target.send("DELETE", f"{path}/abandon"))
    for answer in answers:
        expect(answer, 200, 400, 404, 409)
        if target.names["stack_name"] in answer.text or "os_collect_config" in answer.text:
            raise Unexpected(f"{answer.url} shows the victim's stack: {answer.text[:200]}")
    target.check_victim()


@case("tenant", "a resource of each nested type with external_id of a foreign stack", "400")
def external_stacks(target: Target) -> None:
    for resource in NESTED.values():
        named = {**resource, "external_id": target.names["stack_id"]}
        template = {"heat_template_version": VERSION, "resources": {"r": named}}
        goal = {"template": template, "files": {INNER: json.dumps(EMPTY)}}
        body = {"stack_name": f"attack-external-{target.run}", **goal}
        expect(target.send("POST", target.path(target.attacker, "stacks"), body), 400)


@case(
    "bomb",
    "a group of 20,000 members, of which the request knows nothing",
    "max_resources; no member is made",
)
def trees_that_multiply(target: Target) -> None:
    count = {"type": "OS::Heat::Value", "properties": {"type": "number", "value": 20_000}}
    group: Json = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": {"get_attr": ["count", "value"]},
            "resource_def": {"type": "OS::Heat::RandomString"},
        },
    }
    template = {"heat_template_version": VERSION, "resources": {"count": count, "group": group}}
    with target.attackers_stack({"template": template}) as path:
        stack = target.ended(path)
        if "max_resources" not in stack["stack_status_reason"]:
            raise Unexpected(f"{stack['stack_status']}: {stack['stack_status_reason'][:200]}")
        resources = target.send("GET", f"{path}/resources", params={"nested_depth": 5}).json()["resources"]
        if len(resources) != 2:
            raise Unexpected(f"it has {len(resources)} resources")


@case("tenant", "documents to adopt with a foreign stack's id at each nested type", "nothing foreign")
def adopted_stacks(target: Target) -> None:
    template = {"heat_template_version": VERSION, "resources": NESTED}
    goal = {"template": template, "files": {INNER: json.dumps(EMPTY)}}
    stack_id = target.names["stack_id"]
    inner = {"id": stack_id, "name": target.names["stack_name"], "template": EMPTY, "resources": {}}
    for entry in (
        {"resource_id": stack_id},
        {"id": stack_id, "stack_id": stack_id, "physical_resource_id": stack_id, "nested": stack_id},
        {"resource_id": stack_id, **inner, "resources": {"v": {"resource_id": stack_id}}},
    ):
        document = {
            **goal,
            "action": "CREATE",
            "status": "COMPLETE",
            "environment": {},
            "resources": {name: {**entry, "type": NESTED[name]["type"]} for name in NESTED},
        }
        with target.attackers_stack({"adopt_stack_data": json.dumps(document), "timeout_mins": 5}) as path:
            _sees_nothing(target, path, goal)
