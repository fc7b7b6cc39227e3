"""A proxy before the API that is slow or cut when a test says so; the console's own files pass always."""

import threading

from harness.fault_proxy import Fault, FaultProxy

LONGEST = 120.0
"""Seconds after which a request passes a closed gate: the test has failed by then."""


class GatedProxy(FaultProxy):
    """Passes requests on; those to the API wait while the gate is closed, and are dropped while `faulty`.

    :ivar gate: open while it is set.
    """

    def __init__(self, target: str) -> None:
        super().__init__(target, seed=0, share=1.0, hangs=0.0, faults=[Fault.DROPPED])
        self.gate = threading.Event()
        self.gate.set()

    def chosen(self, method: str, path: str) -> Fault | None:
        """Let a request of the API wait; then choose what becomes of it."""
        if not path.startswith("/v1/"):
            return None
        self.gate.wait(LONGEST)
        return super().chosen(method, path)

    def close(self) -> None:
        """Let all pass, and listen no more."""
        self.faulty.clear()
        self.gate.set()
        super().close()
