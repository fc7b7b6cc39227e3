"""The cloud as the caller of a request sees it: its services, and the objects that values name.

A request asks with the caller's token and waits for a short time only.  A value
is accepted if its service does not answer in time, or refuses to answer: the step that uses the value finds
out.
"""

import concurrent.futures
import datetime
import functools
import logging
import threading
from collections.abc import Callable, Collection, Mapping

import futurist
from futurist import rejection

from ..keystone.caller import CallerAccess
from ..keystone.client_options import ClientOptions
from .planning.requests import CallersCloud, Question

LOG = logging.getLogger(__name__)
ANSWERED_WITHIN = 1.0
"""Seconds that a request waits for the services."""
KEPT = 10.0
"""Seconds for which a value that was right is not asked about again."""
MOST_KEPT = 10_000
"""Values that are kept."""
THREADS = 16
MOST_WAITING = 200
"""Questions that are asked at a time, in one process; and those that wait for that."""


class NotAnswered(Exception):
    """A service has not answered a question; the text says why."""


Ask = Callable[[CallerAccess, Question], str | None]
"""Returns the error of a question's value, None if the value is right.

It is called on a thread of its own, and raises NotAnswered.
"""


class CloudChecks:
    """Answers questions about the clouds of callers.  Thread-safe.

    :param enabled: whether services are asked at all.
    :param clock: seconds since the epoch, UTC.
    :param monotonic: seconds that never jump.
    """

    def __init__(
        self,
        *,
        options: ClientOptions,
        ask: Ask,
        enabled: Callable[[], bool],
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._options = options
        self._ask = ask
        self._enabled = enabled
        self._clock = clock
        self._monotonic = monotonic
        full = rejection.reject_when_reached(MOST_WAITING)
        self._pool = futurist.ThreadPoolExecutor(max_workers=THREADS, check_and_reject=full)
        self._lock = threading.Lock()
        self._right: dict[tuple[str, str, Question], float] = {}

    def of(self, access: CallerAccess) -> CallersCloud:
        """Return the cloud as the owner of the access sees it."""
        return _Cloud(access, self._options, functools.partial(self._problems, access))

    # -- inside ------------------------------------------------------------------------------------

    def _problems(self, access: CallerAccess, questions: Collection[Question]) -> Mapping[Question, str]:
        if not self._enabled():
            return {}
        answers: dict[Question, str | None] = {}
        running: dict[Question, concurrent.futures.Future[str | None]] = {}
        for question in questions:
            if question.check == "expiration":
                answers[question] = _expired(question.value, self._clock())
            elif not self._is_known(access, question):
                try:
                    running[question] = self._pool.submit(self._ask, access, question)
                except (futurist.RejectedSubmission, RuntimeError):
                    LOG.warning("Custom constraint %s is not checked: too many are", question.check)
        concurrent.futures.wait(running.values(), timeout=ANSWERED_WITHIN)
        # From the last one on: threads whose calls have timed out take the first ones that wait.
        for future in reversed(running.values()):
            future.cancel()
        for question, future in running.items():
            answers[question] = self._answer(access, question, future)
        return {question: problem for question, problem in answers.items() if problem is not None}

    def _answer(
        self, access: CallerAccess, question: Question, future: concurrent.futures.Future[str | None]
    ) -> str | None:
        try:
            problem = future.result(timeout=0)
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
            LOG.warning(
                "Custom constraint %s is not checked: no answer within %s s", question.check, ANSWERED_WITHIN
            )
            return None
        except NotAnswered as error:
            LOG.warning("Custom constraint %s is not checked: %s", question.check, error)
            return None
        if problem is None:
            self._keep(access, question)
        return problem

    def _is_known(self, access: CallerAccess, question: Question) -> bool:
        # Key pairs belong to a user, and a user's roles decide what they see: nothing is shared beyond.
        with self._lock:
            until = self._right.get((access.user_id, access.project_id, question))
        return until is not None and self._monotonic() < until

    def _keep(self, access: CallerAccess, question: Question) -> None:
        now = self._monotonic()
        with self._lock:
            if len(self._right) >= MOST_KEPT:
                self._right = {key: until for key, until in self._right.items() if now < until}
            if len(self._right) < MOST_KEPT:
                self._right[access.user_id, access.project_id, question] = now + KEPT


class _Cloud:
    """Implements CallersCloud for one request."""

    def __init__(
        self,
        access: CallerAccess,
        options: ClientOptions,
        problems: Callable[[Collection[Question]], Mapping[Question, str]],
    ) -> None:
        self._access = access
        self._options = options
        self._services: dict[str, bool] = {}
        self.problems = problems

    @property
    def project_id(self) -> str:
        """The project that the caller's token is for."""
        return self._access.project_id

    def has_service(self, service_type: str) -> bool:
        """Return whether the caller's service catalog has a service; True where there is no catalog."""
        if service_type not in self._services:
            options = self._options.of(service_type)
            self._services[service_type] = self._access.has_service(service_type, options)
        return self._services[service_type]


def _expired(value: str, now: float) -> str | None:
    if not value:
        return None
    try:
        instant = datetime.datetime.fromisoformat(value.strip())
    except ValueError:
        return f"Expiration {value} is invalid: it is not a time in ISO 8601"
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=datetime.UTC)
    return None if instant.timestamp() > now else f"Expiration {value} is invalid: it is over"
