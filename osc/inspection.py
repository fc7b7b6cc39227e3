"""``openstack stack inspect``: why a stack is not finished, the next events, and remedies."""

import argparse
import typing
import urllib.parse
from collections.abc import Iterator

from heatclient import exc as heat_exc
from osc_lib import exceptions as exc
from osc_lib.command import command

from ..observe.terminal import write_json, write_wrapped
from ..shapes import JsonMap
from .access import client_of, find_stack, path_of


class InspectStack(command.Command):
    """Explain why a stack is unfinished: the wait of each task, the next event, and remedies."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack to explain (name or ID)")
        parser.add_argument(
            "-f", "--format", choices=("text", "json"), default="text", help="Form (default: %(default)s)"
        )
        parser.add_argument(
            "--limit", metavar="<number>", type=int, default=20, help="Tasks to show (default: %(default)s)"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.limit < 1:
            raise exc.CommandError(f"--limit must be 1 or more, not {parsed_args.limit}")
        client = client_of(self)
        stack = find_stack(client, parsed_args.stack)
        query = urllib.parse.urlencode({"limit": parsed_args.limit})
        try:
            answer = client.http_client.get(path_of(stack, f"inspect?{query}"))
        except heat_exc.HTTPNotFound as error:
            raise exc.CommandError(
                f"The service cannot explain stacks, so it is not Stoker: {error}"
            ) from error
        except heat_exc.HTTPBadRequest as error:
            raise exc.CommandError(str(error)) from error
        report = answer.json()
        out = typing.cast(typing.Any, self.app).stdout
        if parsed_args.format == "json":
            write_json(out, report)
        else:
            write_wrapped(out, *report_lines(report))


def report_lines(report: JsonMap) -> Iterator[str]:
    """Return the lines of a report, the body of ``GET …/inspect``."""
    stack = report["stack"]
    yield f"stack {stack['name']} ({stack['id']}): {stack['action']}_{stack['status']}"
    if stack["status"] == "IN_PROGRESS":
        counts = ", ".join(f"{count} {state}" for state, count in sorted(report["counts"].items()))
        yield f"unfinished: {counts or 'nothing'}"
        if stack["remaining"] is not None:
            rest = f"{stack['remaining']:.0f} s"
            yield f"its timeout is paused, with {rest} left: all unfinished tasks are held"
        elif stack["deadline_at"]:
            yield f"times out: {_moment(stack['deadline_at'])}"
    for reason in report["general"]:
        yield from _reason_lines(reason, f"! {reason['why']}")
    for failure in report["failed"]:
        yield f"  {failure['resource']}: {failure['action']} failed: {failure['reason']}"
    for task in report["tasks"]:
        since = f" since {_moment(task['since'])}" if task["since"] else ""
        request = f", for {task['request']}" if task["request"] else ""
        state = f"{task['action']} is {task['state']}{since}"
        line = f"{task['resource']}: {state}, attempt {task['attempt']}{request}"
        yield from _reason_lines(task, line, f"  why: {task['why']}")
    if report["more"]:
        yield ""
        yield f"{report['more']} more are not shown; --limit shows more"


def _reason_lines(reason: JsonMap, *head: str) -> Iterator[str]:
    yield ""
    yield from head
    yield f"  by itself: {reason['next']}" + (f": {_moment(reason['at'])}" if reason["at"] else "")
    for number, line in enumerate(reason["commands"]):
        yield f"  {'sooner' if number == 0 else '    or'}: {line}"


def _moment(text: str) -> str:
    """Return an instant of the API, which is in UTC, to its second."""
    return f"{text[:19].replace('T', ' ')} UTC"
