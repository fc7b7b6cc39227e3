"""``stoker-manage service``: the conductors, and what each has reported last."""

import typing

from cliff.show import ShowOne

from ...db import conductors
from ...db.conductors import FORGOTTEN_AFTER
from .base import AdminError
from .columns import Age, WithFooter
from .presence import presence_of
from .sessions import session_of


class ServiceList(WithFooter):
    """List the conductors: whether each is alive, as their group says, and what it has reported last."""

    def take_action(self, parsed: typing.Any) -> typing.Any:
        found = presence_of(session_of(self))
        if found.roll is None:
            self.footer = [f"unknown: {found.unsettled()}; shown is what each has reported last"]
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
                found.status(row.host),
                row.threads_busy,
                row.threads,
                row.threads_written_off,
                row.rpc_version,
                None if row.clock_ahead is None else round(row.clock_ahead, 1),
                Age.of(row.heartbeat_at, found.now),
            )
            for row in found.rows.values()
        ]


class ServiceClean(ShowOne):
    """Forget conductors that have been silent for long."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--silent", type=float, default=3600.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        if parsed.silent < FORGOTTEN_AFTER:
            raise AdminError(f"--silent must be {FORGOTTEN_AFTER:g} or more: others may come back")
        session = session_of(self)
        before = session.database.clock() - parsed.silent
        count = session.database.write(lambda conn: conductors.purge(conn, before))
        return ("Forgotten",), (count,)
