"""Ids of rows, made in the process that stores them: 63 bits that grow with time."""

import os
import secrets
import threading
import typing
from collections.abc import Callable
from dataclasses import dataclass, field

if typing.TYPE_CHECKING:
    from sqlalchemy.engine import Connection

EPOCH = 1_767_225_600.0
"""The beginning of 2026 in UTC, from which ids count the time."""
TIME_BITS = 41
"""Bits of the milliseconds since EPOCH: until September 2095."""
POSITION_BITS = 22
"""Bits of an id's position in its millisecond."""

T = typing.TypeVar("T")
OPTION = "stoker_ids"
"""Name of the execution option with the source of a transaction's ids."""


@dataclass
class _Last:
    """The last id of one process.

    :ivar id: -1: there is none.
    """

    id: int = -1
    lock: threading.Lock = field(default_factory=threading.Lock)


class IdSource:
    """Makes the ids of resources, tasks and traversals.  Thread-safe, also in a process that is forked later.

    An id is ``milliseconds << POSITION_BITS | position``.  The first id of a millisecond has a random
    position, and each further one follows the one before it.  So the ids of a process grow, also while its
    clock shows the same time or an earlier one.  Where the positions of a millisecond are used up, they
    continue in the next.

    Two processes may make the same id.  If each makes n ids in one millisecond, the probability is
    2n / 2**POSITION_BITS.  Of r requests a second, r**2 / 2000 pairs meet in a millisecond.  So there are
    r**2 * n / (1000 * 2**POSITION_BITS) collisions a second: with 10 requests of 100 ids each one in five
    days, with one request of 50 ids one in 2.7 years.  The number of processes does not count.  Each bit less
    for the time halves both the collisions and the years that the ids last.

    A number for each process in place of random positions would be worse.  Nothing gives each process its
    own: of 1,000 processes that draw 12 bits two have the same almost surely.  These would collide in every
    millisecond in which both work.

    A collision harms nothing: the primary key refuses the second row, and `Database.write` runs its
    transaction again, which makes new ids; see bulk.insert_new.

    The order of two processes' ids is as exact as their clocks.  So it may sort a list, and choose between
    rows that are equally good, but nothing else.

    JavaScript has no exact integers of this size: an id in JSON for a browser is a string.

    :param clock: seconds since the epoch, UTC; every process should have the same time.
    :param randbits: returns a random number of so many bits.
    """

    def __init__(
        self, clock: Callable[[], float], *, randbits: Callable[[int], int] = secrets.randbits
    ) -> None:
        self._clock = clock
        self._randbits = randbits
        # By process: a fork copies the last id, and perhaps a lock that another thread holds.
        self._last: dict[int, _Last] = {}

    def new(self, kind: Callable[[int], T]) -> T:
        """Return a new id.

        :param kind: its type, ResourceId, TaskId or TraversalNumber.
        """
        process = os.getpid()
        last = self._last.get(process) or self._last.setdefault(process, _Last())
        # The remainder keeps the time of a clock that is far off within the bits.
        milliseconds = int((self._clock() - EPOCH) * 1000) % 2**TIME_BITS
        with last.lock:
            if milliseconds > last.id >> POSITION_BITS:
                last.id = milliseconds << POSITION_BITS | self._randbits(POSITION_BITS)
            else:
                last.id += 1
            return kind(last.id)


def ids_of(conn: "Connection") -> IdSource:
    """Return the source of the ids that a connection's transaction makes."""
    source: IdSource = conn.get_execution_options()[OPTION]
    return source
