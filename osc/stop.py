"""``openstack stack stop``: the end of a stack's action before its time, also of a create."""

import argparse
import time

from osc_lib import exceptions as exc
from osc_lib.command import command

from ..observe.terminal import HarmlessTable
from .access import client_of, find_stack, path_of

POLL = 1.0
"""Seconds between two reads of a stack that is waited for."""
COLUMNS = ("id", "stack_name", "stack_status", "stack_status_reason")


class StopStack(HarmlessTable, command.ShowOne):
    """Stop the action of a stack that is in progress, also if its steps hang.

    The resources stay as they are, and an update continues the stack. `stack cancel`, which is the Heat
    client's, refuses to roll back a create, and refuses actions other than create and update.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack to stop (name or ID)")
        parser.add_argument(
            "--rollback", action="store_true", help="Roll back to the last complete state of the stack"
        )
        parser.add_argument("--wait", action="store_true", help="Wait until the action has ended")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[str]]:
        client = client_of(self)
        stack = find_stack(client, parsed_args.stack)
        if not stack.stack_status.endswith("_IN_PROGRESS"):
            raise exc.CommandError(
                f"Stack {stack.stack_name} is {stack.stack_status}: only an action in progress can be stopped"
            )
        action = "cancel_update" if parsed_args.rollback else "cancel_without_rollback"
        client.http_client.post(path_of(stack, "actions"), data={action: None})
        stack = find_stack(client, stack.id)
        while parsed_args.wait and stack.stack_status.endswith("_IN_PROGRESS"):
            time.sleep(POLL)
            stack = find_stack(client, stack.id)
        return COLUMNS, [getattr(stack, name) for name in COLUMNS]
