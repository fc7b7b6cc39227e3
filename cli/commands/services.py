"""``stoker-manage service``: the conductors and their last reports."""

import typing

from cliff.show import ShowOne

from ...db import conductors
from ...db.conductors import FORGOTTEN_AFTER
from .base import AdminError
from .columns import Age, WithFooter
from .presence import presence_of
from .sessions import session_of


class ServiceList(WithFooter):
    """List the conductors: whether each is alive, by their group, and its last report."""

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        presence = presence_of(session_of(self))
        if presence.group is None:
            self.footer = [f"unknown: {presence.unsettled()}; the last reports are shown"]
        columns = (
            "Host",
            "Incarnation",
            "State",
            "Status",
            "Busy",
            "Threads",
            "Written off",
            "RPC",
            "Clock ahead",
            "Reported",
        )
        return columns, [
            (
                row.host,
                row.incarnation,
                row.state,
                presence.status(row.host),
                row.threads_busy,
                row.threads,
                row.threads_written_off,
                row.rpc_version,
                round(row.clock_ahead, 1),
                Age.of(row.heartbeat_at, presence.now),
            )
            for row in presence.rows.values()
        ]


class ServiceClean(ShowOne):
    """Remove the reports of conductors that have been silent for long."""

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--silent", type=float, default=3600.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        if parsed.silent < FORGOTTEN_AFTER:
            raise AdminError(f"--silent must be {FORGOTTEN_AFTER:g} or more: others may rejoin")
        session = session_of(self)
        before = session.database.clock() - parsed.silent
        count = session.database.write(lambda conn: conductors.purge(conn, before))
        return ("Forgotten",), (count,)
