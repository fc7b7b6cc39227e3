"""The templates whose definitions the reference of types shows as examples, and the life of their stacks."""

import pathlib
import typing
from collections.abc import Callable, Collection, Mapping

import requests
from harness.cloud.stacks import Stack, Stacks
from heatclient.common import template_utils

Json = typing.Any
FOLDER = pathlib.Path(__file__).parent / "types"
NESTED = ("password",)
"""Names of templates that others nest."""
ALWAYS_REPLACED = ("OS::Heat::UpdateWaitConditionHandle",)
"""Types of which each update makes a new resource."""


def template_names() -> list[str]:
    """The names of the templates that a user creates."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem not in NESTED)


def live(stacks: Stacks, name: str, parameters: Json = None, remaining: Collection[str] = ()) -> None:
    """Create the stack of a template, check it, update it to the same, and delete it.

    :param remaining: kinds of things that stay in the project; nothing else is left.
    """
    files, template = template_utils.process_template_path(str(FOLDER / f"{name}.yaml"))
    body = {"template": template, "files": files, "parameters": parameters or {}}
    stack = stacks.start(name.replace("_", "-"), **body)
    for resource, definition in template["resources"].items():
        if signal := SIGNALS.get(definition["type"]):
            _wait_until_created(stack, resource)
            signal(stack, resource)
    stack.wait("CREATE_COMPLETE")
    stack.action("check")
    before = _physical_ids(stack)
    stack.update(**body)
    after = _physical_ids(stack)
    assert after == before, f"an update to the same template changed {before} to {after}"
    stack.delete()
    leftovers = stacks.project.leftovers()
    assert leftovers.keys() == set(remaining), leftovers


def _wait_until_created(stack: Stack, resource: str) -> None:
    def is_created() -> bool:
        return bool(stack.resource(resource)["resource_status"] == "CREATE_COMPLETE")

    stack.stacks.wait_for(is_created, lambda: str(stack.resource(resource)))


def _physical_ids(stack: Stack) -> Mapping[str, str]:
    return {
        name: item["physical_resource_id"]
        for name, item in stack.resources().items()
        if item["resource_type"] not in ALWAYS_REPLACED
    }


def _post(body: Json) -> Callable[[Stack, str], None]:
    def signal(stack: Stack, resource: str) -> None:
        answer = stack.stacks.call("POST", f"{stack.path}/resources/{resource}/signal", body)
        assert answer.status == 200, answer

    return signal


def _put_object(stack: Stack, resource: str) -> None:
    endpoint = stack.resource(resource)["attributes"]["endpoint"]
    assert requests.put(endpoint, data='{"status": "SUCCESS"}', timeout=60).status_code == 201


SIGNALS: Mapping[str, Callable[[Stack, str], None]] = {
    "AWS::CloudFormation::WaitConditionHandle": _post(
        {"Status": "SUCCESS", "UniqueId": "1", "Data": "ready", "Reason": "it runs"}
    ),
    "OS::Heat::SwiftSignalHandle": _put_object,
    "OS::Heat::WaitConditionHandle": _post({"status": "SUCCESS"}),
}
"""How a guest signals to a handle, by type."""
