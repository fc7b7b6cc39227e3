"""``openstack stack plan``: the changes that an update would make, in a line for each resource."""

import argparse
import json
import typing
from collections.abc import Iterator, Mapping, Sequence

from heatclient.common import http, template_utils
from heatclient.common import utils as heat_utils
from osc_lib.command import command

from ..observe.terminal import BAD, OK, RUNNING, harmless, make_console, wrapped, write_json
from ..shapes import Json
from .access import client_of, find_stack

CHANGES = 2
"""The exit code where the update would change something."""
MAY = "may be replaced"
VALUE = 60
"""Characters of a value that are shown."""
SIGNS = {"replaced": ("-/+", BAD), "updated": ("~", RUNNING), "added": ("+", OK), "deleted": ("-", BAD)}
"""The sign and the style of each kind of change, in the order in which they are shown."""
SUMS = (("added", "to add"), ("updated", "to update"), ("replaced", "to replace"), ("deleted", "to delete"))


class PlanUpdate(command.Command):
    """Show the changes that an update of a stack would make; exit code 2: some, 0: none."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack to update (name or ID)")
        parser.add_argument("-t", "--template", metavar="<template>", help="Path to the template")
        parser.add_argument("-f", "--format", choices=["text", "json"], default="text", help="Form")
        parser.add_argument(
            "--existing", action="store_true", help="Keep the present values of all that is not given here"
        )
        parser.add_argument("--hide-nested", action="store_true", help="Do not show nested stacks")
        for option, value, help_text in (
            ("-e", "environment", "Path to an environment"),
            ("--parameter", "key=value", "Value of a parameter"),
            ("--parameter-file", "key=file", "File with the value of a parameter"),
            ("--clear-parameter", "parameter", "Parameter to reset to its default"),
        ):
            names = ["-e", "--environment"] if option == "-e" else [option]
            text = f"{help_text} (may be given several times)"
            parser.add_argument(*names, metavar=f"<{value}>", action="append", help=text)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        client = client_of(self)
        stack = find_stack(client, parsed_args.stack)
        identity = f"{stack.stack_name}/{stack.id}"
        changes = client.stacks.preview_update(identity, **_fields(client, parsed_args))["resource_changes"]
        out = typing.cast(typing.Any, self.app).stdout
        if parsed_args.format == "json":
            write_json(out, as_json(changes))
        else:
            console = make_console(out)
            width = console.width if console.is_terminal else None
            for kind, line in lines(changes):
                for row in wrapped(line, width):
                    console.print(row, style=SIGNS[kind][1] if kind in SIGNS else None)
        return CHANGES if any(changes.get(kind) for kind in SIGNS) else 0


def _fields(client: typing.Any, parsed: argparse.Namespace) -> dict[str, Json]:
    """Return the body of the request, as ``openstack stack update`` makes it."""
    files, template = template_utils.process_template_path(
        parsed.template, object_request=http.authenticated_fetcher(client), existing=parsed.existing
    )
    listed: list[str] = []
    more, environment = template_utils.process_multiple_environments_and_files(
        env_paths=parsed.environment, env_list_tracker=listed
    )
    fields = {
        "parameters": heat_utils.format_all_parameters(
            parsed.parameter, parsed.parameter_file, parsed.template
        ),
        "existing": parsed.existing,
        "template": template,
        "files": {**files, **more},
        "environment": environment,
        "show_nested": not parsed.hide_nested,
    }
    if listed:
        fields["environment_files"] = listed
    if parsed.clear_parameter:
        fields["clear_parameters"] = list(parsed.clear_parameter)
    return fields


def path_of_resource(item: Json) -> str:
    """Return the name of a resource, behind that of the resource that its nested stack is."""
    parent = item.get("parent_resource")
    return f"{parent}/{item['resource_name']}" if parent else str(item["resource_name"])


def reason_of(kind: str, item: Json) -> str:
    """Return why a resource is replaced, or may be; "": nothing is known beyond its change."""
    reason = str(item.get("resource_status_reason") or "")
    return reason if kind == "replaced" or reason.startswith(MAY) else ""


def lines(changes: Mapping[str, Sequence[Json]]) -> Iterator[tuple[str, str]]:
    """Return kind and text of each line: the changes, then their sums."""
    for kind, (sign, _) in SIGNS.items():
        for item in sorted(changes.get(kind, ()), key=path_of_resource):
            details = [text for text in (_values(item), reason_of(kind, item)) if text]
            mark = "-/+" if details and details[-1].startswith(MAY) else sign
            text = f"{mark:>3} {harmless(path_of_resource(item))}  {harmless(item['resource_type'])}"
            yield kind, text + (f" ({harmless('; '.join(details), 500)})" if details else "")
    sums = [f"{len(changes.get(kind, ()))} {words}" for kind, words in SUMS]
    may = sum(reason_of("updated", item).startswith(MAY) for item in changes.get("updated", ()))
    maybe = f" ({may} may be replaced)" if may else ""
    yield "sums", f"Plan: {', '.join(sums)}{maybe}; {len(changes.get('unchanged', ()))} unchanged"


def _values(item: Json) -> str:
    """Return the old and new values of properties, where the service says them."""
    changes = item.get("property_changes") or {}
    pairs = [(name, change.get("old"), change.get("new")) for name, change in sorted(changes.items())]
    return ", ".join(f"{name}: {_value(old)} → {_value(new)}" for name, old, new in pairs)


def _value(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return harmless(text, VALUE)


def as_json(changes: Mapping[str, Sequence[Json]]) -> Json:
    """Return a plan for programs."""
    plan: dict[str, Json] = {
        kind: [
            {
                "resource": path_of_resource(item),
                "type": item["resource_type"],
                "reason": reason_of(kind, item),
                "property_changes": item.get("property_changes") or {},
            }
            for item in sorted(changes.get(kind, ()), key=path_of_resource)
        ]
        for kind in (*SIGNS, "unchanged")
    }
    return {**plan, "sums": {kind: len(items) for kind, items in plan.items()}}
