"""``openstack orchestration quota``: how much of Stoker a project may have, and how much it has."""

import argparse
import re
import typing
import urllib.parse
from collections.abc import Iterator

from heatclient import exc as heat_exc
from keystoneauth1 import exceptions as keystone_exc
from osc_lib import exceptions as exc
from osc_lib import utils
from osc_lib.command import command

from ..observe.terminal import HarmlessTable
from ..shapes import Json
from .access import client_of
from .pages import PageTrail

QUOTAS = {
    "stacks": "top-level stacks",
    "resources": "resources of all stacks, nested ones included",
    "snapshots": "snapshots of stacks",
    "goal_bytes": "bytes of templates, environments and files",
    "software_configs": "software configs",
    "software_deployments": "software deployments",
    "software_bytes": "bytes of software configs and deployments",
}
"""The name of each quota, and the things that it limits."""
UNLIMITED = -1
LARGEST = 2**53 - 1
DEFAULT = "default"
PAGE = 500
"""Projects that one request lists."""


class ShowQuotas(HarmlessTable, command.Lister):
    """Show the quotas of a project, and how much it has; -1: no limit.

    Without a project it shows those of your own.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        _add_project(parser, nargs="?", default=None, more="; default: your own; another one needs an admin")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[typing.Any, typing.Any]:
        path = "/quotas" if parsed_args.project is None else path_of(self, parsed_args.project)
        return usage_table(_request(self, "GET", path)["quotas"])


class SetQuotas(HarmlessTable, command.Lister):
    """Set quotas of a project, and show all of them; those that are not named stay."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        _add_project(parser)
        for name, things in QUOTAS.items():
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                metavar=f"<{name.replace('_', '-')}>",
                type=limit_of,
                default=argparse.SUPPRESS,
                help=f"New limit of {things} (-1: none; {DEFAULT}: as for all projects)",
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[typing.Any, typing.Any]:
        limits = {name: value for name, value in vars(parsed_args).items() if name in QUOTAS}
        if not limits:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in QUOTAS)
            raise exc.CommandError(f"Nothing would change: name a new limit by one of {options}")
        answer = _request(self, "PUT", path_of(self, parsed_args.project), {"quotas": limits})
        return usage_table(answer["quotas"])


class DeleteQuotas(command.Command):
    """Give a project the quotas that all projects have."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        _add_project(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        _request(self, "DELETE", path_of(self, parsed_args.project))


class ListQuotas(HarmlessTable, command.Lister):
    """List the projects whose quotas differ from the defaults, and the limits that an admin has set."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[typing.Any, typing.Any]:
        rows = [
            (item["project"], *(item["quotas"].get(name) for name in QUOTAS)) for item in self._projects()
        ]
        return ("project", *QUOTAS), rows

    def _projects(self) -> Iterator[Json]:
        """Yield all projects, a page after the other."""
        marker = ""
        trail = PageTrail()
        while True:
            query = urllib.parse.urlencode({"limit": PAGE, "marker": trail.checked(marker)})
            page = _request(self, "GET", f"{_admin_root(self)}/project_quotas?{query}")["projects"]
            if not page:
                return
            yield from page
            marker = page[-1]["project"]


def limit_of(text: str) -> int | None:
    """Return the limit of an option's text; None: the default.

    :raises ArgumentTypeError: the text is no limit.
    """
    if text == DEFAULT:
        return None
    if not re.fullmatch("-1|[0-9]{1,16}", text) or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(
            f"{text} is not a limit: write a number from 0 to {LARGEST}, {UNLIMITED} or {DEFAULT}"
        )
    return int(text)


def usage_table(quotas: Json) -> tuple[typing.Any, typing.Any]:
    """Return columns and rows of the quotas of a project, the view by name."""
    columns = ("quota", "limit", "default", "used")
    return columns, [(name, *(quota[column] for column in columns[1:])) for name, quota in quotas.items()]


def path_of(of: command.Command, project: str) -> str:
    """Return the path of the quotas of a project.

    :param project: its name, or its id.
    :raises CommandError: Keystone has no such project, or several of that name.
    """
    return f"{_admin_root(of)}/quotas/{urllib.parse.quote(_project_id(of, project), safe='')}"


def _project_id(of: command.Command, project: str) -> str:
    """Return the id of a project; without Keystone, and for who may not ask it, the text is the id."""
    manager: typing.Any = of.app.client_manager
    try:
        if not manager.is_service_available("identity"):
            return project
        return str(utils.find_resource(manager.identity.projects, project).id)
    except (exc.Forbidden, keystone_exc.Forbidden, keystone_exc.EndpointNotFound):
        return project


def _admin_root(of: command.Command) -> str:
    """Return the address below which the paths for admins are: they have no project."""
    endpoint = str(client_of(of).http_client.get_endpoint() or "").rstrip("/")
    return f"{endpoint.rpartition('/')[0]}/admin"


def _request(of: command.Command, method: str, path: str, body: Json = None) -> Json:
    """Return the body of an answer; None: it has none.

    :raises CommandError: the service has no quotas, because it is not Stoker, or refuses.
    """
    client = client_of(of).http_client
    try:
        answer = client.request(path, method, **({} if body is None else {"data": body}))
    except heat_exc.HTTPNotFound as error:
        raise exc.CommandError(f"The service has no quotas of projects: {error}") from error
    return answer.json() if answer.content else None


def _add_project(parser: argparse.ArgumentParser, *, more: str = "", **options: typing.Any) -> None:
    parser.add_argument("project", metavar="<project>", help=f"Project (name or ID{more})", **options)
