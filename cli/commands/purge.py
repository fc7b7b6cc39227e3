"""``stoker-manage db purge``: the conductors' purge, at once and without conductors."""

import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from cliff.command import Command

from ...db import content, events, stacks
from ...db.engine import Database
from ...db.ids import StackId
from ...observe.terminal import write_lines
from ..config.sections import Settings
from .base import AdminError
from .progress import ProgressLine
from .sessions import session_of

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
PAGE = 500


def seconds_of(text: str) -> float:
    """Return the seconds of an age such as ``30d``, ``12h``, ``90min`` or ``45s``.

    :raises AdminError: the text is no age.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h|d)", text)
    if match is None:
        raise AdminError(f"{text} is not an age: write a number and a unit (s, min, h, d), as in 30d")
    return float(match[1]) * UNITS[match[2]]


@dataclass
class Purged:
    """The numbers of removed rows."""

    stacks: int = 0
    events: int = 0
    contents: int = 0


class DbPurge(Command):
    """Purge old rows, in small transactions, while the daemons run.

    Removes stacks that were deleted long ago, the oldest events of stacks that have too many, and templates
    that no stack uses.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--older-than",
            metavar="AGE",
            help="age of the deletion, as in 30d (default: [conductor] keep_deleted)",
        )
        parser.add_argument(
            "--batch", type=int, default=20, help="stacks per transaction (default: %(default)s)"
        )
        parser.add_argument(
            "--events",
            type=int,
            metavar="N",
            help="keep the newest N events of each stack; 0: all (default: [stacks] max_events_per_stack)",
        )
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        if not 1 <= parsed.batch <= PAGE:
            raise AdminError(f"--batch must be between 1 and {PAGE}, not {parsed.batch}")
        if parsed.events is not None and parsed.events < 0:
            raise AdminError(f"--events must be 0 or more, not {parsed.events}")
        session = session_of(self, long_work=True)
        conf = session.conf
        now = session.database.clock()
        age = (
            Settings(conf).conductor.keep_deleted
            if parsed.older_than is None
            else seconds_of(parsed.older_than)
        )
        most = Settings(conf).upkeep.keep_events if parsed.events is None else parsed.events
        done = Purged()
        line = ProgressLine(self.app.stderr)
        for _ in purge(session.database, done, before=now - age, events_kept=most, batch=parsed.batch):
            removed = done.stacks + done.events + done.contents
            line.count("purge", removed, "stacks, events and templates removed")
        line.clear()
        write_lines(
            self.app.stdout,
            f"removed: {done.stacks} deleted stacks, {done.events} old events of others, "
            f"{done.contents} templates that no stack uses",
        )
        return 0


def purge(database: Database, done: Purged, *, before: float, events_kept: int, batch: int) -> Iterator[None]:
    """Purge, one transaction after the other; yields after each.

    The conductors' duty skips locked rows, and trims only stacks that were active since its last round.
    This waits for locks, and reads all stacks.

    :param before: seconds since the epoch; stacks that were deleted earlier are removed.
    :param events_kept: events kept of each stack; 0: all.
    """
    while old := database.read(partial(stacks.deleted_before, moment=before, limit=batch)):
        database.write(partial(stacks.purge, stack_ids=[stack.id for stack in old]))
        done.stacks += len(old)
        yield
    for stack_id in _over_limit(database, events_kept) if events_kept else ():
        done.events += database.write(partial(events.keep_newest, stack_id=stack_id, most=events_kept))
        yield
    now = database.clock()
    after = None
    swept = False
    while not swept:
        count, after = database.write(partial(content.purge_unused, now=now, limit=PAGE, after=after))
        done.contents += count
        swept = after is None
        yield


def _over_limit(database: Database, most: int) -> Iterator[StackId]:
    """Return the stacks with more events than that."""
    last: StackId | None = None
    while stack_ids := database.read(partial(events.over_limit, most=most, limit=PAGE, after=last)):
        yield from stack_ids
        last = stack_ids[-1]
