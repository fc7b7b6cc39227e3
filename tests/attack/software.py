"""Attacks on software configs and deployments of another project, by their ids in all that takes one."""

import contextlib
import json
import typing
import uuid
from collections.abc import Iterator

from attack.cases import case
from attack.target import Target, Unexpected, expect

Json = typing.Any
VERSION = "2021-04-16"
CONFIGS = ("SoftwareConfig", "StructuredConfig", "CloudConfig", "SoftwareComponent", "MultipartMime")
DEPLOYMENTS = ("SoftwareDeployment", "StructuredDeployment")
MADE: dict[str, Json] = {
    "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "evil"}},
    "deployment": {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {
            "config": "",
            "server": "none",
            "signal_transport": "NO_SIGNAL",
            "actions": ["CREATE", "UPDATE", "SUSPEND", "RESUME"],
        },
    },
}
"""A config, and a deployment that each action but the deletion applies."""


def _template(resources: Json, **more: Json) -> Json:
    return {"heat_template_version": VERSION, "resources": resources, **more}


def _theirs(target: Target) -> list[str]:
    """Return all that the victim sees of the config, the deployment and the server."""
    names, victim = target.names, target.victim
    paths = (
        ("software_configs", names["config_id"]),
        ("software_deployments", names["deployment_id"]),
        ("software_deployments", "metadata", names["server_id"]),
    )
    return [target.send("GET", target.path(victim, *path), party=victim).text for path in paths]


@contextlib.contextmanager
def _unchanged(target: Target) -> Iterator[None]:
    """Check that the victim's things are after the block as they were before it.

    :raises Unexpected: they are not.
    """
    before = _theirs(target)
    yield
    if _theirs(target) != before:
        raise Unexpected("the victim's config or deployment has changed, or is gone")


def _reasons(target: Target, ids: dict[str, str]) -> dict[str, str]:
    """Adopt things by their ids, do all that a stack can with them, and return why they failed.

    :raises Unexpected: one was adopted.
    """
    entries = {name: {"resource_id": key, "type": MADE[name]["type"]} for name, key in ids.items()}
    document = {"template": _template(MADE), "action": "CREATE", "status": "COMPLETE", "resources": entries}
    body = {"adopt_stack_data": json.dumps({**document, "environment": {}}), "timeout_mins": 5}
    with target.attackers_stack(body) as path:
        listed = target.send("GET", f"{path}/resources")
        expect(listed, 200)
        resources = listed.json()["resources"]
        for item in resources:
            if item["resource_status"] != "ADOPT_FAILED" or item["physical_resource_id"]:
                raise Unexpected(f"{item['resource_name']} is {item['resource_status']}")
        signal = f"{path}/resources/deployment/signal"
        expect(target.send("POST", signal, {"deploy_stdout": "forged"}), 200, 400, 404, 409)
        for action in ("suspend", "resume", "check"):
            expect(target.send("POST", f"{path}/actions", {action: None}), 200, 201, 202, 400, 409)
            target.ended(path)
        expect(target.send("GET", f"{path}/export"), 200)
        reasons = {item["resource_name"]: item["resource_status_reason"] for item in resources}
        return {name: reasons[name].replace(key, "ID") for name, key in ids.items()}


@case("tenant", "each type of config and deployment with external_id of a foreign one", "400")
def external_software(target: Target) -> None:
    named = [(f"OS::Heat::{kind}", target.names["config_id"]) for kind in CONFIGS]
    named += [(f"OS::Heat::{kind}", target.names["deployment_id"]) for kind in DEPLOYMENTS]
    with _unchanged(target):
        for type_name, key in named:
            template = _template({"r": {"type": type_name, "external_id": key}})
            body = {"stack_name": f"attack-external-{target.run}", "template": template}
            expect(target.send("POST", target.path(target.attacker, "stacks"), body), 400)


@case("tenant", "documents to adopt with ids of a foreign config and deployment", "as ids that nobody has")
def adopted_software(target: Target) -> None:
    theirs = {"config": target.names["config_id"], "deployment": target.names["deployment_id"]}
    with _unchanged(target):
        foreign = _reasons(target, theirs)
    nobodys = _reasons(target, {name: str(uuid.uuid4()) for name in theirs})
    if foreign != nobodys:
        raise Unexpected(f"a foreign id is refused by {foreign}, one that nobody has by {nobodys}")


def _used(target: Target, key: str) -> list[str]:
    """Name a config in the properties of a message and of a deployment; return what comes of both."""
    message = {"type": "OS::Heat::MultipartMime", "properties": {"parts": [{"config": key}]}}
    deployment = {**MADE["deployment"], "properties": {**MADE["deployment"]["properties"], "config": key}}
    reasons = []
    for resource in (message, deployment):
        with target.attackers_stack({"template": _template({"r": resource})}) as path:
            for below in ("/resources?with_detail=true", "/events", "/export"):
                expect(target.send("GET", f"{path}{below}"), 200)
            reasons.append(target.send("GET", path).json()["stack"]["stack_status_reason"].replace(key, "ID"))
    return reasons


@case("tenant", "a foreign config in properties of deployments and messages", "as an id that nobody has")
def used_software(target: Target) -> None:
    with _unchanged(target):
        foreign = _used(target, target.names["config_id"])
    nobodys = _used(target, str(uuid.uuid4()))
    if foreign != nobodys:
        raise Unexpected(f"a foreign config leads to {foreign}, one that nobody has to {nobodys}")
