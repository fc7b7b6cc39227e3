"""``stoker-manage quota``: how much a project may have, and how much it has."""

import re
import typing

from cliff.command import Command
from cliff.lister import Lister

from ...engine.quotas import LARGEST, UNLIMITED, QuotaName
from ...observe.terminal import HarmlessTable
from .base import AdminError
from .installation import installation_of

PROJECT_HELP = "id of the project; with --url and Keystone, its name or id"


class QuotaShow(HarmlessTable, Lister):
    """Show the quotas of a project, and how much it has; -1: no limit."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("project", metavar="PROJECT", help=PROJECT_HELP)
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        quotas = installation_of(self).quotas(parsed.project)
        rows = [(name, quota["limit"], quota["default"], quota["used"]) for name, quota in quotas.items()]
        return ("Quota", "Limit", "Default", "Used"), rows


class QuotaList(HarmlessTable, Lister):
    """List the projects whose quotas differ from the defaults, and the limits that an admin has set."""

    def take_action(self, parsed: typing.Any) -> typing.Any:
        names = [str(name) for name in QuotaName]
        projects = installation_of(self).quotas_by_project()
        rows = [(project, *map(limits.get, names)) for project, limits in projects]
        return ("Project", *names), rows


class QuotaSet(Command):
    """Set quotas of a project; those that are not named stay."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("project", metavar="PROJECT", help=PROJECT_HELP)
        parser.add_argument(
            "limits",
            metavar="QUOTA=LIMIT",
            nargs="+",
            help=f"a limit, or -1 for none, as in stacks=1000; the quotas are {', '.join(QuotaName)}",
        )
        return parser

    def take_action(self, parsed: typing.Any) -> None:
        limits = dict(_limit(text) for text in parsed.limits)
        installation_of(self).set_quotas(parsed.project, limits)


class QuotaDelete(Command):
    """Give a project the defaults of the options again."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("project", metavar="PROJECT", help=PROJECT_HELP)
        return parser

    def take_action(self, parsed: typing.Any) -> None:
        installation_of(self).reset_quotas(parsed.project)


def _limit(text: str) -> tuple[str, int]:
    """Return the name and the limit of an argument.

    :raises AdminError: the argument has no limit, or its name is unknown.
    """
    name, _, limit = text.partition("=")
    if name not in list(QuotaName):
        raise AdminError(f"there is no quota {name}; the quotas are {', '.join(QuotaName)}")
    if not re.fullmatch("-1|[0-9]{1,16}", limit) or int(limit) > LARGEST:
        raise AdminError(f"{text}: a limit is a number from 0 to {LARGEST}, or {UNLIMITED} for none")
    return name, int(limit)
