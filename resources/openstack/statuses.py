"""The meaning of the states that services report of their things."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ...shapes import JsonMap
from ..contract import PermanentError


@dataclass(frozen=True)
class StatusMeaning:
    """The meanings of a thing's status.

    :ivar pending: statuses of a thing that the service works on.
    :ivar bad: statuses after an action that has failed.
    :ivar deleted: statuses of a thing that is gone, though it can be read.
    :ivar field: name of the field that holds the status.
    :ivar good: statuses after an action that is complete.  A type that names some refuses each status that is
        listed nowhere; empty: such a status is good.
    """

    pending: Collection[str] = ()
    bad: Collection[str] = ("ERROR",)
    deleted: Collection[str] = ("DELETED", "SOFT_DELETED")
    field: str = "status"
    good: Collection[str] = ()

    def of(self, remote: JsonMap) -> str:
        """Return the thing's status in capitals."""
        return str(remote.get(self.field) or "").upper()

    def is_pending(self, remote: JsonMap, problem: Callable[[JsonMap], str]) -> bool:
        """Return whether the service works on the thing.

        :param problem: function that returns why a thing is in a bad state.
        :raises PermanentError: the thing is in a bad state.
        """
        status = self.of(remote)
        if status in self.bad:
            why = problem(remote) or "Unknown"
            raise PermanentError(f'Went to status {status} due to "{why}"', kind="ResourceInError")
        return status in self.pending
