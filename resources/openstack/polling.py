"""How steps poll: pauses that grow, and one list call for many waiting things instead of a call for each.

Few things are polled often, for a stack of a few resources waits for each of them in turn.  Many share their
lists, which are read less often.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from ...shapes import JsonMap
from ..contract import StepContext
from .service import Service

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
"""Seconds between two polls of one thing: at the beginning, and at most."""
STEADY_PAUSE = 0.5
"""Seconds between two polls whose pauses do not grow, and between two lists of many things, at least."""
PART = 0.125
"""The pause is this part of the time that the thing has been waited for: so late its end is seen, at most."""
SMALL_PART = 0.0625
"""The same for polls that cost the service little: a list of ids, where a thing's view has to be composed."""
FEW = 3
"""Things of one kind that are waited for at once, up to which each is read by a call of its own."""
LISTING = 0.25
"""A service lists during this part of the time at most: it has the things themselves to work on."""
FORGOTTEN = 3 * LONGEST_PAUSE
"""Seconds without a poll after which a thing is not waited for any more."""
KEPT = 86400.0


def pause(since: float, now: float, part: float = PART) -> float:
    """Return the seconds until the next poll of a state that is awaited since then.

    It follows from the moment, so that a poll that finds nothing new has nothing to store.
    """
    return min(LONGEST_PAUSE, max(FIRST_PAUSE, (now - since) * part))


class WaitedFor:
    """The things of one kind in one project that steps of this process wait for.  Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._polled: dict[str, tuple[float, float, str]] = {}
        self._list_age = STEADY_PAUSE

    @property
    def list_age(self) -> float:
        """The seconds after which the next list is due."""
        return self._list_age

    @property
    def are_few(self) -> bool:
        """Return whether so few are waited for that each is read by a call of its own."""
        return len(self._polled) <= FEW

    def listed(self, seconds: float) -> None:
        """Note how long a list has taken."""
        self._list_age = min(LONGEST_PAUSE, max(STEADY_PAUSE, seconds / LISTING - seconds))

    def note(self, remote_id: str, since: float, now: float, mark: str = "") -> int:
        """Note that a thing is polled now, and return how many are waited for.

        :param mark: the thing's mark, for `marks`.
        """
        with self._lock:
            self._polled[remote_id] = (now, since, mark)
            if len(self._polled) > FEW:
                self._polled = {key: at for key, at in self._polled.items() if now - at[0] < FORGOTTEN}
            return len(self._polled)

    def earliest(self) -> float:
        """Return the moment since which the first of them is waited for."""
        with self._lock:
            return min((since for _, since, _ in self._polled.values()), default=0.0)

    def marks(self, besides: Collection[str]) -> dict[str, str]:
        """Return the marks by id of the things that are waited for, but for those with these ids."""
        with self._lock:
            return {key: mark for key, (_, _, mark) in self._polled.items() if key not in besides}

    def forget(self, remote_id: str) -> None:
        """Forget a thing whose action has ended."""
        with self._lock:
            self._polled.pop(remote_id, None)


class Poller:
    """Reads the states of things of one collection for the steps of one project.

    :param path: path of the list that has all fields of its members, such as ``/servers/detail``.
    :param items: key of the members in the list's answer.
    :param queries: function that returns the parameters of the lists that have all that is waited for; its
        argument is the moment since which the first thing is.  Of a thing in two lists the later list counts.
    """

    def __init__(
        self, path: str, items: str, queries: Callable[[float], Sequence[Mapping[str, str]]]
    ) -> None:
        self._path = path
        self._items = items
        self._queries = queries

    def read(
        self,
        context: StepContext,
        service: Service,
        remote_id: str,
        get: Callable[[], JsonMap],
        since: float,
    ) -> JsonMap | None:
        """Return the thing as it is now, or was a moment ago where many are waited for.

        :returns: the thing; None: the last list is older than the action, and the next one is not due yet.
        :param get: function that reads the one thing alone.
        :param since: the moment since which the thing is waited for.
        :raises RemoteNotFound: the thing does not exist.
        :raises PermanentError, RetryableError: the errors of `Service`.
        """
        key = (service.name, self._path)
        waiting = self._waiting(context, service)
        if waiting.note(remote_id, since, context.now()) <= FEW:
            return get()
        listed_at, listed = context.shared(
            ("states", *key), lambda: self._list(context, service, waiting), waiting.list_age
        )
        if listed_at < since:
            return None
        return listed[remote_id] if remote_id in listed else get()

    def pause(self, context: StepContext, service: Service, since: float) -> float:
        """Return the seconds until the next poll; where many are waited for, the lists set the pace."""
        seconds = pause(since, context.now())
        return seconds if self._waiting(context, service).are_few else max(STEADY_PAUSE, seconds)

    def forget(self, context: StepContext, service: Service, remote_id: str) -> None:
        """Forget a thing whose action has ended."""
        self._waiting(context, service).forget(remote_id)

    def _waiting(self, context: StepContext, service: Service) -> WaitedFor:
        return context.shared(("waiting", service.name, self._path), WaitedFor, KEPT)

    def _list(
        self, context: StepContext, service: Service, waiting: WaitedFor
    ) -> tuple[float, Mapping[str, JsonMap]]:
        """Return the things by id, and the moment as of which they are listed."""
        began = context.now()
        remotes = {
            str(item["id"]): item
            for query in self._queries(waiting.earliest())
            for item in service.list_all(self._path, self._items, limit=1000, **query)
        }
        waiting.listed(context.now() - began)
        return began, remotes
