"""The record of a run: requests and their answers, reads, events, and the final rows.

Each record is a line of JSON in a file of the run, so that a run can be checked again.
"""

import dataclasses
import enum
import json
import pathlib
import threading
import typing
from collections.abc import Iterator, Mapping, Sequence

Json = typing.Any
R = typing.TypeVar("R")


class Outcome(enum.StrEnum):
    """The outcomes of a request, as its client knows them."""

    ACCEPTED = "accepted"
    REFUSED = "refused"  #: a 4xx: it has no effect
    UNKNOWN = "unknown"  #: no answer, or a 5xx: it may have an effect, now or later


@dataclasses.dataclass(frozen=True)
class Write:
    """A request that changes a stack.

    :ivar stack: the stack's id; "" where a creation was not answered.
    :ivar name: the stack's name, which no other stack of the run has.
    :ivar kind: create, update, delete, suspend, resume, check, cancel, continue, signal, snapshot, restore or
        forget, which deletes a snapshot.
    :ivar goal: number of the goal that it asks for; of other kinds: of the goal before.
    :ivar began: wall-clock instants of the request and of its answer.
    :ivar timeout: seconds of the action's timeout; None: it does not matter.
    :ivar text: the answer, where the request was not accepted.
    """

    client: int
    stack: str
    name: str
    kind: str
    goal: int
    began: float
    ended: float
    outcome: Outcome
    status: int
    timeout: float | None = None
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Read:
    """An answer to a read of a stack.

    :ivar action: of the stack; "GONE": it does not exist, or is deleted.
    :ivar goal: the number of its goal; None: it is not views.
    :ivar api: the process that was asked.
    """

    stack: str
    action: str
    status: str
    goal: int | None
    began: float
    ended: float
    api: str = ""


@dataclasses.dataclass(frozen=True)
class Event:
    """An event of a stack or of one of its resources.

    :ivar of_stack: whether it is an event of the stack itself.
    """

    stack: str
    of_stack: bool
    resource: str
    action: str
    status: str
    reason: str
    at: float


@dataclasses.dataclass(frozen=True)
class FinalStack:
    """A row of a stack once all is quiet.

    :ivar is_deleted: whether it is deleted.
    """

    id: str
    name: str
    root: str
    action: str
    status: str
    reason: str
    is_deleted: bool


@dataclasses.dataclass(frozen=True)
class FinalResource:
    """A row of an item of the ledger once all is quiet."""

    stack: str
    name: str
    row: int
    item: str | None


@dataclasses.dataclass(frozen=True)
class FinalCopy:
    """A row of a snapshot's copy of an item, once all is quiet.

    :ivar copy: the id that the copy has in the ledger.
    """

    stack: str
    name: str
    snapshot: str
    status: str
    copy: str


@dataclasses.dataclass(frozen=True)
class Signal:
    """A signal that a guest has sent.

    :ivar target: the handle, by its physical id; or the config that the guest has applied, by its id.
    :ivar value: the signal's id; or the output that it brings.
    """

    stack: str
    target: str
    value: str
    began: float
    ended: float
    outcome: Outcome
    status: int = 0


@dataclasses.dataclass(frozen=True)
class Kept:
    """The signals that the API says to have of a target, at an instant."""

    stack: str
    target: str
    values: Sequence[str]
    began: float
    ended: float


@dataclasses.dataclass(frozen=True)
class Expectation:
    """A stack as its client has left it.

    :ivar values: values of its items by labels; None: the stack is deleted.
    """

    stack: str
    values: Mapping[str, str] | None


@dataclasses.dataclass(frozen=True)
class Unsettled:
    """Something that has not come to its end without faults."""

    text: str


@dataclasses.dataclass(frozen=True)
class FaultSpan:
    """A fault of the nemesis.

    :ivar target: the process, server or connection.
    """

    kind: str
    target: str
    began: float
    ended: float


@dataclasses.dataclass(frozen=True)
class Sample:
    """The ownership at an instant: shards by host; empty where the database did not answer."""

    at: float
    shards: Mapping[str, int]


KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Write, Read, Event, FinalStack, FinalResource, FinalCopy),
        *(Signal, Kept, Expectation, Unsettled, FaultSpan, Sample),
    )
}


class History:
    """The records of a run.  Any thread may add."""

    def __init__(self, records: Sequence[object] = ()) -> None:
        self._lock = threading.Lock()
        self._records = list(records)

    def add(self, *records: object) -> None:
        """Add records."""
        with self._lock:
            self._records += records

    def of(self, kind: type[R]) -> list[R]:
        """Return the records of a kind, in the order in which they were added."""
        with self._lock:
            return [record for record in self._records if isinstance(record, kind)]

    def save(self, path: pathlib.Path) -> None:
        """Write all records to a file."""
        with path.open("w") as file:
            for kind in KINDS.values():
                for record in self.of(kind):
                    values = dataclasses.asdict(typing.cast(typing.Any, record))
                    file.write(json.dumps({"record": kind.__name__, **values}) + "\n")


def load(path: pathlib.Path) -> History:
    """Return the history that a file has."""
    return History(list(_records(path)))


def _records(path: pathlib.Path) -> Iterator[object]:
    with path.open() as file:
        for line in file:
            values = json.loads(line)
            yield KINDS[values.pop("record")](**values)
