"""The parts that commands on a stack share: the client, the stack, and its graph."""

import argparse
import typing
import urllib.parse

from heatclient import exc as heat_exc
from osc_lib import exceptions as exc
from osc_lib.command import command

from ..observe.terminal import print_by_line
from ..shapes import Json

NOT_MODIFIED = 304


def client_of(of: command.Command) -> typing.Any:
    """Return Heat's client, which its plugin adds to the client manager.

    Each command begins with it, so from then on the output is flushed by line, also into a pipe.
    """
    print_by_line()
    manager: typing.Any = of.app.client_manager
    return manager.orchestration


def find_stack(client: typing.Any, name_or_id: str) -> typing.Any:
    """Return a stack without its outputs.

    :raises CommandError: there is none.
    """
    try:
        return client.stacks.get(name_or_id, resolve_outputs=False)
    except heat_exc.HTTPNotFound as error:
        raise exc.CommandError(f"Stack not found: {name_or_id}") from error


def path_of(stack: typing.Any, below: str) -> str:
    """Return the path of something below a stack."""
    return f"/stacks/{urllib.parse.quote(stack.stack_name)}/{stack.id}/{below}"


def graph_of(client: typing.Any, stack: typing.Any, depth: int, since: str = "") -> Json:
    """Return the graph of a stack; None: it is the same as at the change number `since`.

    :raises CommandError: the service has no graphs, because it is not Stoker.
    """
    query = urllib.parse.urlencode({"nested_depth": depth, "since": since})
    try:
        answer = client.http_client.get(path_of(stack, f"graph?{query}"))
    except heat_exc.HTTPNotFound as error:
        raise exc.CommandError(f"The service answers no graph of {stack.stack_name}: {error}") from error
    return None if answer.status_code == NOT_MODIFIED else answer.json()["graph"]


def add_stack(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a stack, and the option for the levels below it."""
    parser.add_argument("stack", metavar="<stack>", help="Stack to show (name or ID)")
    parser.add_argument(
        "-n",
        "--nested-depth",
        metavar="<depth>",
        type=int,
        default=5,
        help="Levels of nested stacks to show (default: %(default)s)",
    )
