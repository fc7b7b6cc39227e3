"""Distributes the tests of a run among its processes, in two pools and within a budget.

Tests that compute go to as many processes as there are cores.  Tests that wait for other processes most of
the time go to a few more, which come first where both want a core.  So the cores are never idle, and never
have more computing tests than they can run.  A pool that has nothing left helps the other.
"""

import os
import random
import time
import typing
from collections.abc import Callable, Sequence

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

COMPUTES_LESS_URGENTLY = 5
"""Niceness of the processes whose tests compute."""


class Lane(typing.NamedTuple):
    """Tests that run in one process, one after the other.

    :ivar beginning: beginning of the names of the lane's tests.
    :ivar name: lanes of one name are one lane; "": each file is a lane by itself.
    """

    beginning: str
    name: str = ""


class Lanes:
    """Returns the lane of a test.

    :param waiting: the lanes whose tests wait most of the time; those that take longest come first.
    """

    def __init__(self, waiting: Sequence[Lane]) -> None:
        self._waiting = waiting

    def place(self, nodeid: str) -> int:
        """Return how early a test begins: what waits before what computes."""
        places = (index for index, lane in enumerate(self._waiting) if nodeid.startswith(lane.beginning))
        return next(places, len(self._waiting))

    def lane(self, nodeid: str) -> str:
        """Return the lane of a test; one that computes has a lane of its own."""
        place = self.place(nodeid)
        if place == len(self._waiting):
            return nodeid
        return self._waiting[place].name or nodeid.partition("::")[0]

    def waits(self, name: str) -> bool:
        """Return whether the tests of a lane wait most of the time."""
        return any(name == lane.name or name.startswith(lane.beginning) for lane in self._waiting)


def computing_processes() -> int:
    """Return how many processes run tests that compute: the first ones."""
    return len(os.sched_getaffinity(0))


def number_of(worker: str) -> int:
    """Return the number of a process by the name that pytest-xdist gives to it: gw0, gw1 …"""
    return int(worker.removeprefix("gw"))


def yield_the_processor() -> None:
    """Let the processes come first that wait most of the time, if this is one that computes."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and number_of(worker) < computing_processes():
        os.nice(COMPUTES_LESS_URGENTLY)


class Budget:
    """The seconds that a run may take; what has not begun by then is left out, and named.

    Without it each run has the same order.  With it the lanes begin in another order each time, so that
    what one run leaves out the next one runs.

    :param seconds: None: without limit.
    :ivar left: the lanes that were left out.
    """

    def __init__(self, seconds: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._end = None if seconds is None else now() + seconds
        self.left: list[str] = []

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit."""
        return self._end is not None

    @property
    def is_spent(self) -> bool:
        """Return whether no more lanes may begin."""
        return self._end is not None and self._now() >= self._end

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Leave out a test that has not begun, where one process runs all."""
        if not self.is_spent:
            return None
        self.left.append(item.nodeid)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was left out."""
        if self.left:
            terminalreporter.write_line("Not run, for it did not fit into the budget of time:", yellow=True)
        for name in self.left:
            terminalreporter.write_line(f"    {name}")


class PooledScheduling(LoadScopeScheduling):
    """Distributes lanes.

    pytest-xdist 3.8 has marks that keep tests together, but they do not work with pytest 9.2.
    """

    def __init__(self, config: pytest.Config, log: typing.Any, *, lanes: Lanes, budget: Budget) -> None:
        config.option.loadscopereorder = False  # The order is ours.
        super().__init__(config, log)
        self._lanes = lanes
        self._budget = budget

    def _split_scope(self, nodeid: str) -> str:
        return self._lanes.lane(nodeid)

    def remove_node(self, node: typing.Any) -> str | None:
        """Remove a process; the lanes that it has not finished go to others, if it died.

        pytest-xdist 3.8 would give them its finished lanes, too.  A process that has nothing to do in a lane
        reports nothing, so it would get no other one, and the run would never end.
        """
        lanes = self.assigned_work[node]
        self.assigned_work[node] = {name: lane for name, lane in lanes.items() if not all(lane.values())}
        return super().remove_node(node)

    def _reschedule(self, node: typing.Any) -> None:
        if self._budget.is_spent:
            self._budget.left += self.workqueue
            self.workqueue.clear()
        super()._reschedule(node)

    def _assign_work_unit(self, node: typing.Any) -> None:
        waits = number_of(node.gateway.id) >= computing_processes()
        fitting = [name for name in self.workqueue if self._lanes.waits(name) == waits]
        candidates = fitting or list(self.workqueue)
        name = random.choice(candidates) if self._budget.is_limited else candidates[0]
        self.workqueue.move_to_end(name, last=False)
        super()._assign_work_unit(node)
