"""``openstack stack continue``, ``stack step`` and ``stack breakpoint list``: the commands of breakpoints."""

import argparse
import typing

from osc_lib.command import command

from ..observe.terminal import HarmlessTable
from ..shapes import Json
from .access import client_of, find_stack, path_of

COLUMNS = ("resource_name", "hook", "resource_type", "until")
HOOKS = ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete")


class _Continue(HarmlessTable, command.Lister):
    """Base of the commands that post an action to a stack and list the cleared breakpoints."""

    action = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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
        selection: dict[str, Json] = {}
        if parsed_args.resources:
            selection["resources"] = parsed_args.resources
        if parsed_args.hook:
            selection["hook"] = parsed_args.hook
        client = client_of(self)
        stack = find_stack(client, parsed_args.stack)
        answer = client.http_client.post(path_of(stack, "actions"), data={self.action: selection or None})
        return _listed(answer.json()["cleared"])


class ContinueStack(_Continue):
    """Continue a stack that is held at breakpoints."""

    action = "continue"


class StepStack(_Continue):
    """Continue a stack that is held at breakpoints, and hold it again before its next steps."""

    action = "step"


class ListBreakpoints(HarmlessTable, command.Lister):
    """List the breakpoints at which a stack and its nested stacks are held."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack to show (name or ID)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[typing.Any, typing.Any]:
        stack = find_stack(client_of(self), parsed_args.stack)
        return _listed(stack.to_dict().get("breakpoints", []))


def _listed(breakpoints: list[dict[str, Json]]) -> tuple[typing.Any, typing.Any]:
    named = [{**item, "resource_name": item["resource_path"]} for item in breakpoints]
    return COLUMNS, [[item.get(column) for column in COLUMNS] for item in named]
