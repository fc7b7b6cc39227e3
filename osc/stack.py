"""``openstack stack continue``, ``stack step`` and ``stack breakpoint list``: the commands of breakpoints."""

import argparse
import typing
import urllib.parse

from heatclient import exc as heat_exc
from osc_lib import exceptions as exc
from osc_lib.command import command

Json = typing.Any
COLUMNS = ("resource_name", "hook", "resource_type", "until")
HOOKS = ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete")


class _Continue(command.Lister):
    """Base of the commands that post an action to a stack and list the cleared breakpoints."""

    action = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the command's arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack that is held (name or ID)")
        parser.add_argument(
            "resources",
            metavar="<resource>",
            nargs="*",
            help="Resource to continue, NESTED/NAME for one in a nested stack; a wildcard for several. "
            "Default: all held resources, also those of nested stacks",
        )
        parser.add_argument(
            "--hook", choices=HOOKS, help="Continue only the resources held at this breakpoint"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[typing.Any, typing.Any]:
        """Run the command."""
        selection: dict[str, Json] = {}
        if parsed_args.resources:
            selection["resources"] = parsed_args.resources
        if parsed_args.hook:
            selection["hook"] = parsed_args.hook
        client = _client(self)
        stack = _find(client, parsed_args.stack)
        path = f"/stacks/{urllib.parse.quote(stack.stack_name)}/{stack.id}/actions"
        answer = client.http_client.post(path, data={self.action: selection or None})
        return _listed(answer.json()["cleared"])


class ContinueStack(_Continue):
    """Continue a stack that is held at breakpoints."""

    action = "continue"


class StepStack(_Continue):
    """Continue a stack that is held at breakpoints, and hold it again before its next steps."""

    action = "step"


class ListBreakpoints(command.Lister):
    """List the breakpoints at which a stack and its nested stacks are held."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the command's arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack to show (name or ID)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[typing.Any, typing.Any]:
        """Run the command."""
        stack = _find(_client(self), parsed_args.stack)
        return _listed(stack.to_dict().get("breakpoints", []))


def _client(of: command.Command) -> typing.Any:
    """Return Heat's client, which its plugin adds to the client manager."""
    manager: typing.Any = of.app.client_manager
    return manager.orchestration


def _find(client: typing.Any, name_or_id: str) -> typing.Any:
    try:
        return client.stacks.get(name_or_id, resolve_outputs=False)
    except heat_exc.HTTPNotFound as error:
        raise exc.CommandError(f"Stack not found: {name_or_id}") from error


def _listed(found: list[dict[str, Json]]) -> tuple[typing.Any, typing.Any]:
    named = [{**item, "resource_name": item["resource_path"]} for item in found]
    return COLUMNS, [[item.get(column) for column in COLUMNS] for item in named]
