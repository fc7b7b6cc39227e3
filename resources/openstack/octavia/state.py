"""The states of balancers and their parts, as steps that wait for them share them."""

import threading

from ..statuses import StatusMeaning

BALANCERS = "/lbaas/loadbalancers"
"""Path of the collection of balancers."""
PENDING = ("PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE")
PROVISIONED = StatusMeaning(pending=PENDING, field="provisioning_status")


class ReadState:
    """The state of a balancer as it was read, for all steps that wait for it.  One of them may continue.

    The others would be refused: the first one's change makes the service work on the balancer again.
    Thread-safe.

    :ivar status: its state; "": there is no such thing.
    """

    def __init__(self, status: str) -> None:
        self.status = status
        self._taken = threading.Lock()

    def take(self) -> bool:
        """Return whether the caller is the first one."""
        return self._taken.acquire(blocking=False)
