"""The states of a server, as the compute service reports them."""

from collections.abc import Callable, Mapping

from ...contract.views import Json
from ...errors import PermanentError
from ..statuses import StatusMeaning

TASK_STATE = "OS-EXT-STS:task_state"
DELETING = ("deleting", "soft-deleting")
"""Task states of a server whose deletion has begun."""
PENDING = (
    *("BUILD", "HARD_REBOOT", "PASSWORD", "REBOOT", "RESCUE", "RESIZE"),
    *("REVERT_RESIZE", "SHUTOFF", "SUSPENDED", "VERIFY_RESIZE"),
)
"""States from which a server becomes ACTIVE again, by itself or by a user."""
RUNS = "ACTIVE"
STOPPED = "SHUTOFF"


class ServerStatus(StatusMeaning):
    """The meaning of a server's status: ACTIVE is good, and what is not listed is unknown."""

    def of(self, server: Mapping[str, Json]) -> str:
        """Return the status in capitals; some clouds append more in parentheses."""
        return super().of(server).split("(")[0]

    def is_pending(self, server: Mapping[str, Json], problem: Callable[[Mapping[str, Json]], str]) -> bool:
        """Return whether the server is on its way to ACTIVE.

        :raises PermanentError: it is in a bad state, or in an unknown one.
        """
        status = self.of(server)
        if super().is_pending(server, problem) or not status:
            return True
        if status not in self.good:
            raise unknown_status("Server is not active", status)
        return False


SERVER_STATUS = ServerStatus(pending=PENDING, good=(RUNS,))


def fault_of(server: Mapping[str, Json]) -> str:
    """Return the service's message and code of what has gone wrong with a server."""
    fault = server.get("fault") or {}
    return f"Message: {fault.get('message', 'Unknown')}, Code: {fault.get('code', 'Unknown')}"


def unknown_status(kind: str, status: str) -> PermanentError:
    """Return the error of a server in a state in which the action cannot end well."""
    return PermanentError(f'{kind} - Unknown status {status} due to "Unknown"', kind="ResourceUnknownStatus")


def is_settled(server: Mapping[str, Json]) -> bool:
    """Return whether the service works on nothing of the server."""
    return server.get(TASK_STATE) is None and SERVER_STATUS.of(server) in (RUNS, STOPPED)
