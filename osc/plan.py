"""``openstack stack plan``: the changes that an update would make, in a line for each resource."""

import argparse
import json
import typing
from collections.abc import Iterator, Mapping, Sequence

from heatclient.common import http, template_utils
from heatclient.common import utils as heat_utils
from osc_lib import exceptions as exc
from osc_lib.command import command

from ..observe.screen import BAD, OK, RUNNING, make_console
from ..observe.terminal import harmless, wrapped, write_json
from ..shapes import Json
from .access import client_of, find_stack, path_of

CHANGES = 2
"""The exit code where the update would change something."""
OBSTACLES = 3
"""The exit code where the cloud would not let it come to its end."""
HINDERING = ("quota", "fit")
"""Kinds of findings for which an action fails, unless it is not known whether they are there."""
MAY = "may be replaced"
VALUE = 60
"""Characters of a value that are shown."""
SIGNS = {"replaced": ("-/+", BAD), "updated": ("~", RUNNING), "added": ("+", OK), "deleted": ("-", BAD)}
"""The sign and the style of each kind of change, in the order in which they are shown."""
STYLES = {**{kind: style for kind, (_, style) in SIGNS.items()}, "obstacle": BAD, "finding": RUNNING}
SUMS = (("added", "to add"), ("updated", "to update"), ("replaced", "to replace"), ("deleted", "to delete"))


class PlanUpdate(command.Command):
    """Show the changes that an update of a stack would make; exit code 2: some, 0: none.

    With --check-cloud, show also what the cloud lacks for it (exit code 3), or for a new stack.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="<stack>", help="Stack to update (name or ID)")
        parser.add_argument("-t", "--template", metavar="<template>", help="Path to the template")
        parser.add_argument("-f", "--format", choices=["text", "json"], default="text", help="Form")
        parser.add_argument(
            "--existing", action="store_true", help="Keep the present values of all that is not given here"
        )
        parser.add_argument("--hide-nested", action="store_true", help="Do not show nested stacks")
        parser.add_argument(
            "--check-cloud",
            action="store_true",
            help="Compare with quotas and things of the cloud; the stack need not exist",
        )
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
        changes, findings = _plan(client_of(self), parsed_args)
        out = typing.cast(typing.Any, self.app).stdout
        if parsed_args.format == "json":
            of_cloud = {"findings": findings} if parsed_args.check_cloud else {}
            write_json(out, {**as_json(changes), **of_cloud})
        else:
            console = make_console(out)
            width = console.width if console.is_terminal else None
            for kind, line in [*lines(changes), *finding_lines(findings)]:
                for row in wrapped(line, width):
                    console.print(row, style=STYLES.get(kind))
        if any(is_obstacle(finding) for finding in findings):
            return OBSTACLES
        return CHANGES if any(changes.get(kind) for kind in SIGNS) else 0


def _plan(
    client: typing.Any, parsed: argparse.Namespace
) -> tuple[Mapping[str, Sequence[Json]], Sequence[Json]]:
    """Return the changes of a plan, and the findings of the comparison with the cloud, if it is asked for.

    :raises CommandError: there is no stack to update.
    """
    try:
        stack = find_stack(client, parsed.stack)
    except exc.CommandError:
        if not parsed.check_cloud or parsed.existing:
            raise
        fields = {"stack_name": parsed.stack, **_fields(client, parsed)}
        answer = _send(client, "POST", "/stacks/preview?check_cloud=true", fields)
        return {"added": list(_flat(answer["stack"]["resources"]))}, answer["findings"]
    fields = _fields(client, parsed)
    identity = f"{stack.stack_name}/{stack.id}"
    if not parsed.check_cloud:
        return client.stacks.preview_update(identity, **fields)["resource_changes"], ()
    method = "PATCH" if fields.pop("existing") else "PUT"
    inside = str(fields.pop("show_nested")).lower()
    query = f"preview?check_cloud=true&show_nested={inside}"
    answer = _send(client, method, path_of(stack, query), fields)
    return answer["resource_changes"], answer["findings"]


def _send(client: typing.Any, method: str, path: str, fields: Mapping[str, Json]) -> Json:
    body = {name: value for name, value in fields.items() if name not in ("existing", "show_nested")}
    http_client = client.http_client
    send = {"POST": http_client.post, "PUT": http_client.put, "PATCH": http_client.patch}[method]
    return send(path, data=body, headers=http_client.credentials_headers()).json()


def _flat(resources: Sequence[Json]) -> Iterator[Json]:
    """Yield the resources of a new stack, those of nested stacks, which are lists, too."""
    for item in resources:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


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


def is_obstacle(finding: Json) -> bool:
    """Return whether the action is likely to fail for a finding."""
    return finding["kind"] in HINDERING and finding["certainty"] != "not known"


def finding_lines(findings: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """Return kind and text of each line about the cloud: what hinders comes first."""
    for finding in sorted(findings, key=lambda item: not is_obstacle(item)):
        kind, sign = ("obstacle", "  !") if is_obstacle(finding) else ("finding", "  ?")
        place = f"{finding['path']}: " if finding["path"] else ""
        certainty = f" ({finding['certainty']})" if kind == "obstacle" else ""
        advice = f" {finding['advice']}" if finding["advice"] else ""
        yield kind, harmless(f"{sign} {place}{finding['message']}{certainty}.{advice}", 600)


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
