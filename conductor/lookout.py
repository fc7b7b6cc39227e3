"""Decides when the duties of the slice may rest: while there is no activity, and nothing is due soon.

::

     a commit, a message, a change of the ring            ACTIVE_FOR seconds later
    ------------------------------------------> active ---------------------------> forecast
                                                  ^                                     |
                                                  |       something is due now          |
                                                  |<------------------------------------|
                                                  |   the moment of the next due row    v
                                                   <--------------------------------- resting
                                                                          a forecast every
                                                                          FORECAST_EVERY seconds

While the conductor is active its duties run at their intervals.  While it rests they do not run.  It rests by
a fresh forecast only: one that fails, or comes late, makes it active.

A row that becomes due within HORIZON was stored since the last forecast, so some process has committed it.
That process announces its commits to all conductors, so they are active by then.  If the announcement is
lost, the next forecast finds the row: it is attended to up to FORECAST_EVERY seconds late.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable

from sqlalchemy.engine import Connection

from ..db.engine import Database
from ..db.queries import due_soon
from ..db.queries.due_soon import ANY_SHARD, Due, DueRows, DueSoon
from .duties.context import FIRST_SHARD
from .duties.stack_timeouts import DEPUTY_AFTER
from .slice import Ring

ACTIVE_FOR = 10.0
"""Seconds for which a conductor stays active after the last sign of activity."""
HORIZON = 10.0
"""Seconds that a forecast covers: two of its intervals, so that one forecast may be late."""
FORECAST_EVERY = 5.0
"""Seconds between two forecasts: the most by which a lost announcement delays a duty."""
STIR_EVERY = 1.0
"""Seconds in which a second commit of this process does not stir."""
ANNOUNCE_EVERY = 3.0
"""Seconds between two announcements of a process: three are lost before a conductor rests too early."""
LEAST_PAUSE = 1.0
"""Seconds between two forecasts while they fail."""
PAGE = 200
"""Rows of a kind that a forecast reads; if there are more it covers the time up to the last of them."""


class Lookout:
    """Makes the forecasts of one conductor; implements timetable.Outlook, and `run` is a duty of its own.

    Any thread may call `stir` and read the state; one thread at a time calls `run`.

    :ivar interval: least seconds between two forecasts.
    :param ring: says which rows are this conductor's.
    :param clock: the database's time.
    :param is_time_sure: returns whether that clock is sure; in doubt the conductor stays active.
    :param due: rows of features whose moments end the rest, too.
    :param monotonic: seconds that never jump.
    """

    interval = LEAST_PAUSE

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        clock: Callable[[], float],
        is_time_sure: Callable[[], bool] = lambda: True,
        due: Iterable[DueRows] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._ring = ring
        self._clock = clock
        self._is_time_sure = is_time_sure
        self._statement = due_soon.statement_for(due)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._wake: Callable[[], None] = lambda: None
        self._active_from = monotonic()
        self._active_until = self._active_from + ACTIVE_FOR
        self._made_at = -math.inf
        self._stirs = 0

    def on_wake(self, wake: Callable[[], None]) -> None:
        """Call `wake` when a stir ends the rest early; from any thread, so it must be quick."""
        self._wake = wake

    def stir(self) -> None:
        """Stay active for a while, or become active.  Quick, and from any thread."""
        now = self._monotonic()
        with self._lock:
            was_resting = self.is_resting(now)
            self._stirs += 1
            self._active_from = now
            self._active_until = now + ACTIVE_FOR
        if was_resting:
            self._wake()

    def is_active(self, now: float) -> bool:
        """Return whether there is activity, or something is due."""
        return self._active_from <= now < self._active_until

    def is_resting(self, now: float) -> bool:
        """Return whether the duties rest; see timetable.Outlook."""
        return now < self._made_at + HORIZON and not self.is_active(now)

    def forecast_at(self, now: float) -> float:
        """Return when the next forecast is to be made; see timetable.Outlook."""
        return self._active_until if self.is_active(now) else self._made_at + FORECAST_EVERY

    def changes_at(self, now: float) -> float:
        """Return when the rest ends by itself; see timetable.Outlook."""
        if not self.is_resting(now):
            return math.inf
        horizon = self._made_at + HORIZON
        return min(self._active_from, horizon) if self._active_from > now else horizon

    def run(self) -> None:
        """Make a forecast, unless the conductor is active.

        :raises Unavailable: the database does not answer; then the duties do not rest.
        """
        began = self._monotonic()
        if self.is_active(began):
            return
        stirs = self._stirs
        first = self._first_moment()
        with self._lock:
            if stirs == self._stirs:  # Else it may have been about a row that was stored after the read.
                self._made_at = began
                self._active_from = first
                self._active_until = first + ACTIVE_FOR

    def _first_moment(self) -> float:
        """Return when this conductor has something to do first, by the monotonic clock."""
        now = self._clock()
        began = self._monotonic()
        if not self._is_time_sure():
            return began

        def read(conn: Connection) -> list[DueSoon]:
            rows = due_soon.due_before(conn, now + HORIZON, limit=PAGE, statement=self._statement)
            return list(rows)

        rows = self._database.read(read)
        moments = [*map(self._moment, rows), *_ends_of_full_pages(rows)]
        return began + max(0.0, min(moments, default=math.inf) - now)

    def _moment(self, row: DueSoon) -> float:
        """Return when a duty of this conductor has to attend to the row; infinity: never."""
        ring = self._ring
        if row.kind == Due.CLAIM:
            return math.inf if row.member in ring.present() else row.at
        if row.kind == Due.CREDENTIAL:
            return row.at if ring.owns(FIRST_SHARD) else math.inf
        if row.shard == ANY_SHARD or ring.owns(row.shard):
            return row.at
        if row.kind == Due.STACK and ring.is_deputy(row.shard):
            return row.at + DEPUTY_AFTER
        return math.inf


def _ends_of_full_pages(rows: Iterable[DueSoon]) -> Iterable[float]:
    """Return the last moment of each kind of which there may be more rows."""
    moments: dict[str, list[float]] = {}
    for row in rows:
        moments.setdefault(row.kind, []).append(row.at)
    return (max(page) for page in moments.values() if len(page) >= PAGE)
