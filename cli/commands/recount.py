"""``stoker-manage db recount``: the counters of quotas, set by what they count."""

import typing
from collections.abc import Iterator
from functools import partial

from cliff.lister import Lister

from ...db import usage
from ...db.engine import Database
from ...observe.terminal import HarmlessTable, write_lines
from .base import AdminError
from .sessions import session_of

PAGE = 100


class DbRecount(HarmlessTable, Lister):
    """Count again what projects have of what quotas limit, and list the counters that were wrong.

    They are wrong only after somebody has changed rows by hand.  It runs beside the daemons: for the time of
    one count a project's requests that check a quota wait.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "project", metavar="PROJECT", nargs="*", help="id of a project (default: all projects)"
        )
        parser.add_argument("--dry-run", action="store_true", help="list only, and change nothing")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        database = session_of(self, long_work=True).database
        for project_id in parsed.project:
            if not database.read(partial(usage.has_any, project_id=project_id)):
                raise AdminError(f"Project {project_id!r} is unknown here: give its id, not its name")
        count = usage.differences if parsed.dry_run else usage.recount
        rows = [
            (wrong.project_id, wrong.counter, wrong.stored, wrong.counted)
            for project_id in parsed.project or projects(database)
            for wrong in database.write(partial(count, project_id=project_id))
        ]
        if not rows:
            write_lines(self.app.stderr, "no counter is wrong")
        return ("Project", "Quota", "Stored", "Counted"), rows


def projects(database: Database) -> Iterator[str]:
    """Yield the ids of all projects, a page after the other."""
    page = database.read(partial(usage.projects, limit=PAGE))
    while page:
        yield from page
        page = database.read(partial(usage.projects, after=page[-1], limit=PAGE))
