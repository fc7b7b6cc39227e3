"""``stoker-manage service``: the conductors and their last reports."""

import typing

from cliff.show import ShowOne

from ...db import conductors
from ...db.conductors import FORGOTTEN_AFTER
from ...features.diagnosis.presence import DOWN, UNKNOWN, UP
from ...observe.instants import instant
from ...observe.terminal import HarmlessTable
from .base import AdminError
from .columns import Age, WithFooter
from .installation import installation_of
from .sessions import session_of

STATUSES = {None: UNKNOWN, True: UP, False: DOWN}
"""The status in Heat's words, by whether a conductor is alive; None: that is unknown."""


class ServiceList(WithFooter):
    """List the conductors: whether each is alive, by their group, and its last report."""

    def take_action(self, parsed: typing.Any) -> typing.Any:
        ring = installation_of(self).ring()
        reports = [conductor for conductor in ring["conductors"] if conductor["incarnation"] is not None]
        if any(conductor["alive"] is None for conductor in reports):
            self.footer = [ring["health"]]
        now = instant(ring["time"])
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
                conductor["host"],
                conductor["incarnation"],
                conductor["state_reported"],
                STATUSES[conductor["alive"]],
                conductor["threads_busy"],
                conductor["threads"],
                conductor["threads_hung"],
                conductor["rpc_version"],
                round(conductor["clock_ahead"], 1) + 0.0,  # Not -0.0.
                Age.of(instant(conductor["reported_time"]), now),
            )
            for conductor in reports
        ]


class ServiceClean(HarmlessTable, ShowOne):
    """Remove the reports of conductors that have been silent for long."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--silent", type=float, default=3600.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        if parsed.silent < FORGOTTEN_AFTER:
            raise AdminError(f"--silent must be {FORGOTTEN_AFTER:g} or more: others may rejoin")
        session = session_of(self)
        before = session.database.clock() - parsed.silent
        count = session.database.write(lambda conn: conductors.purge(conn, before))
        return ("Forgotten",), (count,)
