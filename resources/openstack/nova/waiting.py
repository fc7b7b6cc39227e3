"""How steps wait for servers that are built or deleted: by lists of ids.

The view of a server costs the compute service two requests to the network service, and a list of ids none:
a fifth of the time.  So lists of ids say which servers are not ready yet, and each server is read once, when
they do not have it any more.  Where many are waited for the steps share the lists; the servers that are built
since the last list are then read together, with their ports.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ....shapes import JsonMap
from ...contract import StepContext
from ..polling import FEW, KEPT, SMALL_PART, STEADY_PAUSE, WaitedFor, pause
from ..service import Service, object_of, service_of
from .compute import RUNS, STOPPED

TOGETHER = 40
"""Servers whose marks or ids are in one address: services and proxies refuse addresses above 8 KiB."""
BUILDING = "BUILD"
ENDED = (RUNS, "ERROR")
"""States of a server after its creation."""
STANDING = (RUNS, BUILDING, STOPPED, "SUSPENDED", "PAUSED")
"""States of a server of which nothing but its deletion is to be expected once that is accepted."""


@dataclass(frozen=True)
class BuiltServer:
    """A server that is not being built any more.

    :ivar ports: the ports that it has; None: they were not read.
    """

    server: JsonMap
    ports: Sequence[JsonMap] | None = None


class _Waiting(WaitedFor):
    """The servers that steps wait for, and for a moment those that they have waited for.

    The steps of many servers that are built already ask one after the other, and are many all the same.

    :ivar built: those that were read, until their steps take them; for the one thread that reads lists.
    """

    def __init__(self) -> None:
        super().__init__()
        self.built: dict[str, BuiltServer] = {}
        self._recent: dict[str, float] = {}

    def note(self, remote_id: str, since: float, now: float, mark: str = "") -> int:
        count = super().note(remote_id, since, now, mark)
        with self._lock:
            self._recent = {key: at for key, at in self._recent.items() if now - at < STEADY_PAUSE}
            self._recent[remote_id] = now
            return max(count, len(self._recent))


@dataclass(frozen=True)
class _Lists:
    """An answer to all steps that wait.

    :ivar at: moment as of which the ids are listed.
    :ivar ids: ids of the servers that are to be waited for.
    :ivar built: servers that were waited for, and are not in the list, by id.
    """

    at: float
    ids: Collection[str]
    built: Mapping[str, BuiltServer]


class ServerLists:
    """The lists for one step."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._service = service_of(context, "compute")
        self._are_few = True

    def pause(self, since: float) -> float:
        """Return the seconds until the next poll; where many are waited for, the lists set the pace."""
        now = self._context.now()
        return pause(since, now, SMALL_PART) if self._are_few else max(STEADY_PAUSE, pause(since, now))

    def built(self, server: str, mark: str, since: float) -> BuiltServer | None:
        """Return a server once it is built or has failed; None: it is being built, or nothing newer is known.

        :param mark: the mark of the server, one of its tags.
        :param since: moment since which it is waited for.
        :raises RemoteNotFound: the server does not exist.
        :raises PermanentError, RetryableError: the errors of `Service`.
        """
        lists = self._lists("built", (BUILDING,), server, mark, since)
        if lists is None:
            return None
        return lists.built.get(server) or BuiltServer(
            object_of(self._service.get(f"/servers/{server}"), "server")
        )

    def is_standing(self, server: str, mark: str, since: float) -> bool:
        """Return whether a server that is being deleted is there still, or nothing newer is known.

        :raises PermanentError, RetryableError: the errors of `Service`.
        """
        return self._lists("deleted", STANDING, server, mark, since) is None

    def _lists(
        self, purpose: str, statuses: Sequence[str], server: str, mark: str, since: float
    ) -> _Lists | None:
        """Return lists without the server; None: they have it, or are older than the action."""
        now = self._context.now()
        waiting = self._context.shared((f"waiting to be {purpose}",), _Waiting, KEPT)
        self._are_few = waiting.note(server, since, now, mark) <= FEW
        if self._are_few:
            lists = _Lists(now, _ids(self._service, statuses, tags=mark), {})
        else:
            lists = self._context.shared(
                (f"lists of {purpose}",), lambda: self._read(purpose, statuses, waiting), waiting.list_age
            )
        if lists.at < since or server in lists.ids:
            return None
        waiting.forget(server)
        return lists

    def _read(self, purpose: str, statuses: Sequence[str], waiting: _Waiting) -> _Lists:
        began = self._context.now()
        ids = _ids(self._service, statuses)
        if purpose == "built":
            marks = waiting.marks(besides=ids)
            built = {key: waiting.built[key] for key in marks if key in waiting.built}
            waiting.built = built | self._read_built([marks[key] for key in marks if key not in built])
        waiting.listed(self._context.now() - began)
        return _Lists(began, ids, waiting.built)

    def _read_built(self, marks: Sequence[str]) -> dict[str, BuiltServer]:
        """Read the servers with these marks that are built or have failed."""
        servers: dict[str, JsonMap] = {}
        ports: list[JsonMap] = []
        for chunk in _parts(marks):
            tags = {"tags-any": ",".join(chunk)}
            listed = self._service.list_all("/servers/detail", "servers", **tags)
            servers |= {str(item["id"]): item for item in listed if item["status"] in ENDED}
        network = service_of(self._context, "network")
        for chunk in _parts([*servers]):
            ports += network.list_all("/ports", "ports", device_id=chunk)
        return {
            key: BuiltServer(item, [port for port in ports if port["device_id"] == key])
            for key, item in servers.items()
        }


def _ids(service: Service, statuses: Sequence[str], **query: str) -> frozenset[str]:
    """Return the ids of the servers in one of these states."""
    listed = service.list_all("/servers", "servers", limit=1000, status=statuses, **query)
    return frozenset(str(item["id"]) for item in listed)


def _parts(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[start : start + TOGETHER] for start in range(0, len(values), TOGETHER)]
