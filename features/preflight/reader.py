"""Reads lists and limits of the services with the token of a request's caller, all services at the same time.

A reading is asked for by its first use, and the judgement is repeated once it is there.  A service has
`ANSWERED_WITHIN` seconds for all of its answers; one that needs more, or refuses, leaves them unknown.
"""

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import futurist
from futurist import rejection

from ...keystone.caller import CallerAccess
from ...resources.contract.preflight import Certainty, Members, QueryValue
from ...shapes import Json, JsonMap
from .findings import CloudFinding, FindingKind

LOG = logging.getLogger(__name__)
ANSWERED_WITHIN = 5.0
"""Seconds in which all services have to answer what one preflight asks."""
JUDGED_WITHIN = 5.0
"""Seconds beyond that for the judgement: its work grows with the resources times the things of the cloud."""
THREADS = 16
MOST_WAITING = 200
"""Services that are asked at a time, in one process; and those that wait for that."""
MOST_READINGS = 60
"""Lists and limits that one preflight reads."""
ROUNDS = 6
"""Times that the judgement is repeated: a list may be needed only after another one has been read."""


@dataclass(frozen=True)
class Reading:
    """A GET of one service.

    :ivar key: key of the members, or of the object, in the answer.
    :ivar microversion: the newest that may be used; "": that of the service's interface.
    """

    service: str
    path: str
    key: str
    query: tuple[tuple[str, QueryValue], ...] = ()
    is_list: bool = True
    microversion: str = ""


class TooMuchToJudge(Exception):
    """The judgement of a preflight has taken its time."""


class NotRead(Exception):
    """A service has not answered; the text says why, and is for the user."""


AskService = Callable[[CallerAccess, Reading, Callable[[], None]], Json]
"""Returns the list or the object of a reading.

It is called on a thread of its own, and raises NotRead.  Between the pages of a list it calls the function
that it is given, which raises NotRead when the time is over.
"""


class CloudReaders:
    """Makes the readers of preflights, which share the threads on which services are asked.  Thread-safe.

    :param has_service: tells whether a caller's service catalog has a service.
    :param monotonic: seconds that never jump.
    """

    def __init__(
        self,
        *,
        ask: AskService,
        has_service: Callable[[CallerAccess, str], bool],
        monotonic: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._has_service = has_service
        self._monotonic = monotonic
        full = rejection.reject_when_reached(MOST_WAITING)
        self._pool = futurist.ThreadPoolExecutor(max_workers=THREADS, check_and_reject=full)

    def reader(self, access: CallerAccess) -> "CloudReader":
        """Return a reader with the rights of a caller."""
        return CloudReader(access, self)

    def has_service(self, access: CallerAccess, service: str) -> bool:
        """Return whether the caller's service catalog has a service."""
        return self._has_service(access, service)

    def now(self) -> float:
        """Return the seconds of the monotonic clock."""
        return self._monotonic()

    def submit(self, run: Callable[[], None]) -> "concurrent.futures.Future[None] | None":
        """Start a function on a thread; None: too many wait for one."""
        try:
            future: concurrent.futures.Future[None] = self._pool.submit(run)
        except (futurist.RejectedSubmission, RuntimeError):
            return None
        return future

    def ask(self, access: CallerAccess, reading: Reading, checkpoint: Callable[[], None]) -> Json:
        """Return the answer to a reading; see AskService."""
        return self._ask(access, reading, checkpoint)


@dataclass
class _Answers:
    """The answers that are there; threads of services add to them."""

    values: dict[Reading, Members | JsonMap] = field(default_factory=dict)
    problems: dict[Reading, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class CloudReader:
    """Implements CloudFacts for one preflight.  Used by one thread.

    Rules read again for each resource, so a judgement without end is ended there, by TooMuchToJudge.
    """

    def __init__(self, access: CallerAccess, readers: CloudReaders) -> None:
        self._access = access
        self._readers = readers
        self._until = readers.now() + ANSWERED_WITHIN
        self._answers = _Answers()
        self._open: dict[Reading, None] = {}

    @property
    def project_id(self) -> str:
        """The project that the caller's token is for."""
        return self._access.project_id

    def members(self, service: str, path: str, items: str, **query: QueryValue) -> Members | None:
        """Return the members of a collection; None: they are not known, or not yet."""
        reading = Reading(service, path, items, tuple(sorted(query.items())))
        value = self._read(reading)
        return value if isinstance(value, Members) else None

    def entry(
        self, service: str, path: str, item: str, *, microversion: str = "", **query: QueryValue
    ) -> JsonMap | None:
        """Return the object in the answer to a GET; None: it is not known, or not yet."""
        parameters = tuple(sorted(query.items()))
        reading = Reading(service, path, item, parameters, is_list=False, microversion=microversion)
        value = self._read(reading)
        return None if isinstance(value, Members) else value

    def fetch(self) -> bool:
        """Ask for all that was read and is not known; return whether there was anything to ask."""
        readings = self._open
        self._open = {}
        if not readings:
            return False
        by_service: dict[str, list[Reading]] = {}
        for reading in readings:
            by_service.setdefault(reading.service, []).append(reading)
        futures = []
        for service, of_service in by_service.items():
            if not self._readers.has_service(self._access, service):
                self._give_up(of_service, "")
                continue
            future = self._readers.submit(lambda batch=of_service: self._ask(batch))  # type: ignore[misc]
            if future is None:
                self._give_up(of_service, "too many requests are compared with the cloud at the moment")
            else:
                futures.append(future)
        concurrent.futures.wait(futures, timeout=max(0.0, self._until - self._readers.now()))
        for future in futures:
            future.cancel()
        self._give_up(list(readings), f"no answer within {ANSWERED_WITHIN:g} s")
        return True

    def findings(self) -> list[CloudFinding]:
        """Return a finding for each service that has not told all that was asked."""
        reasons: dict[tuple[str, str], list[str]] = {}
        with self._answers.lock:
            for reading, problem in self._answers.problems.items():
                if problem:
                    reasons.setdefault((reading.service, problem), []).append(reading.path)
        return [
            CloudFinding(
                FindingKind.NOT_CHECKED,
                (),
                f"not checked: {service}: {problem} ({', '.join(paths)})",
                certainty=Certainty.NOT_KNOWN,
            )
            for (service, problem), paths in reasons.items()
        ]

    # -- inside ------------------------------------------------------------------------------------

    def _read(self, reading: Reading) -> Members | JsonMap | None:
        if self._readers.now() >= self._until + JUDGED_WITHIN:
            raise TooMuchToJudge
        with self._answers.lock:
            if reading in self._answers.values:
                return self._answers.values[reading]
            if reading in self._answers.problems:
                return None
            total = len(self._answers.values) + len(self._answers.problems) + len(self._open)
        if reading not in self._open:
            if total >= MOST_READINGS:
                self._give_up([reading], f"a preflight reads {MOST_READINGS} lists at most")
            else:
                self._open[reading] = None
        return None

    def _ask(self, readings: Sequence[Reading]) -> None:
        """Ask one service, on a thread of its own."""
        for reading in readings:
            try:
                self._check_time()
                answer = self._readers.ask(self._access, reading, self._check_time)
            except NotRead as error:
                self._give_up([reading], str(error))
                continue
            except Exception:
                # The top of this thread: nobody else would ever read of it.
                LOG.exception("Reading %s of %s failed", reading.path, reading.service)
                self._give_up([reading], "the reading has failed; the log of the API says why")
                continue
            with self._answers.lock:
                # What comes too late stays unknown: the judgement may be under way.
                if reading not in self._answers.problems:
                    self._answers.values[reading] = Members(answer) if reading.is_list else answer

    def _check_time(self) -> None:
        if self._readers.now() >= self._until:
            raise NotRead(f"no answer within {ANSWERED_WITHIN:g} s")

    def _give_up(self, readings: Sequence[Reading], problem: str) -> None:
        """Put down why some readings are not known, for those of them that are not.

        :param problem: "": there is no such service, so there is nothing to check.
        """
        with self._answers.lock:
            for reading in readings:
                if reading not in self._answers.values:
                    self._answers.problems.setdefault(reading, problem)
