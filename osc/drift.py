"""``openstack stack drift``: what of a stack is gone from the cloud, or differs from its template."""

import argparse
import json
import typing
from collections.abc import Iterator

from heatclient import exc as heat_exc
from osc_lib import exceptions as exc
from osc_lib.command import command

from ..observe.terminal import write_json, write_wrapped
from ..shapes import Json, JsonMap
from .access import client_of, find_stack, path_of

DRIFTED = 2
"""Exit code where something differs."""
NOT_CHECKED = "NOT_CHECKED"


class ShowDrift(command.Command):
    """Show what of a stack differs from its template; the exit code is 2 then.

    Without a stack it lists the drift of all stacks.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "stack", metavar="<stack>", nargs="?", help="Stack to show (name or ID; default: list all)"
        )
        parser.add_argument(
            "-f", "--format", choices=("text", "json"), default="text", help="Form (default: %(default)s)"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        client = client_of(self)
        if parsed_args.stack is None:
            report: Json = [_listed(stack.to_dict()) for stack in client.stacks.list()]
            statuses = {stack["drift_status"] for stack in report}
            lines = list_lines(report)
        else:
            report = _drift_of(client, parsed_args.stack)
            statuses = {report["drift_status"]}
            lines = drift_lines(report)
        out = typing.cast(typing.Any, self.app).stdout
        if parsed_args.format == "json":
            write_json(out, report)
        else:
            write_wrapped(out, *lines)
        return DRIFTED if "DRIFTED" in statuses else 0


def _drift_of(client: typing.Any, name: str) -> JsonMap:
    """Return the drift of a stack.

    :raises CommandError: there is no such stack, or the service has no drift, because it is not Stoker.
    """
    stack = find_stack(client, name)
    try:
        answer = client.http_client.get(path_of(stack, "drift"))
    except heat_exc.HTTPNotFound as error:
        raise exc.CommandError(f"The service observes no drift of {name}: {error}") from error
    drift: JsonMap = answer.json()["drift"]
    return drift


def _listed(stack: JsonMap) -> dict[str, Json]:
    return {
        "id": stack["id"],
        "stack_name": stack["stack_name"],
        "stack_status": stack["stack_status"],
        "drift_status": stack.get("drift_status") or NOT_CHECKED,
        "drifted_resources": stack.get("drifted_resources") or 0,
    }


def list_lines(stacks: list[dict[str, Json]]) -> Iterator[str]:
    """Return the lines of a list of stacks."""
    width = max([len("stack"), *(len(stack["stack_name"]) for stack in stacks)])
    yield f"{'stack':{width}}  {'status':22}  {'drift':11}  resources"
    for stack in stacks:
        name = f"{stack['stack_name']:{width}}"
        yield f"{name}  {stack['stack_status']:22}  {stack['drift_status']:11}  {stack['drifted_resources']}"


def drift_lines(drift: JsonMap) -> Iterator[str]:
    """Return the lines of the drift of a stack, the body of ``GET …/drift``."""
    yield f"stack {drift['stack_name']} ({drift['stack_id']}): {drift['drift_status']}"
    yield f"observed: {drift['observed_time'] or 'never'}"
    if drift["healing_time"]:
        yield f"last healing began: {drift['healing_time']}"
    yield from (f"! not known: {reason}" for reason in drift["unknown"])
    for resource in drift["resources"]:
        yield ""
        label = f"{resource['resource_type']}, {resource['physical_resource_id']}"
        word = "is gone" if resource["difference"] == "GONE" else "has changed"
        yield f"{resource['resource_path']} ({label}) {word}, since {resource['since']}"
        for item in resource["properties"]:
            template, cloud = (json.dumps(item[side], ensure_ascii=False) for side in ("template", "cloud"))
            yield f"  {item['name']}: {template} in the template, {cloud} in the cloud"
