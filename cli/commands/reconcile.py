"""``stoker-manage reconcile``: what the cloud has, and no row knows."""

import functools
import typing
from collections.abc import Iterator

from cliff.lister import Lister

from ...conductor.drift.context import DriftServices
from ...conductor.drift.unknown import UnknownThings, UnreadList
from ...conductor.steps.endpoints import Endpoints
from ...db import drift
from ...keystone.delegations import Delegations
from ..config.client_options import client_options
from ..wiring.environment_files import installed_types, with_operator_files
from ..wiring.parts import make_trusts
from ..wiring.secrets import make_sealer
from .sessions import Session, session_of

PAGE = 100
"""Projects that one query reads."""


class Reconcile(Lister):
    """List the things that Stoker has made in the cloud and of which no row knows.

    Such things are there after the database was restored to an earlier moment.  The command asks the services
    with the rights of the stacks' users, and changes nothing.  Things of another installation in the same
    project are listed, too.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--dry-run",
            action="store_true",
            required=True,
            help="list only; the command has no other way yet",
        )
        parser.add_argument(
            "--project", action="append", metavar="ID", help="a project to compare; all that have stacks"
        )
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        session = session_of(self, long_work=True)
        unknown = UnknownThings(_services(session))
        rows = []
        for project in parsed.project or _projects(session):
            comparison = unknown.of_project(project)
            rows += [
                (thing.project_id, thing.type, thing.physical_id, thing.name, thing.created_at)
                for thing in comparison.things
            ]
            for unread in comparison.unread:
                self._tell(unread)
        return ("Project", "Type", "ID", "Name", "Created"), rows

    def _tell(self, unread: UnreadList) -> None:
        self.app.stderr.write(
            f"project {unread.project_id}: not compared: {', '.join(unread.types)}: {unread.reason}\n"
        )


def _services(session: Session) -> DriftServices:
    catalogue = with_operator_files(installed_types(session.conf), session.conf)
    sealer = make_sealer(session.conf)
    delegations = Delegations(
        database=session.database,
        sealer=sealer,
        trusts=make_trusts(session.conf, catalogue),
        clock=session.database.clock,
    )
    return DriftServices(
        database=session.database,
        registry=catalogue,
        sealer=sealer,
        clock=session.database.clock,
        session=delegations.session,
        host="",
        endpoints=Endpoints(client_options(session.conf)),
    )


def _projects(session: Session) -> Iterator[str]:
    last = ""
    while True:
        names = session.database.read(functools.partial(drift.with_stacks, after=last, limit=PAGE))
        yield from names
        if len(names) < PAGE:
            return
        last = names[-1]
