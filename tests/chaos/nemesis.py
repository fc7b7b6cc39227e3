"""The nemesis: lets faults happen and ends them, as its random numbers say."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from chaos.backends import Backend, BackendSet
from chaos.fleet import Daemon, Fleet, Host
from chaos.history import FaultSpan, History, Unsettled
from harness.fault_proxy import FaultProxy
from harness.tcp_link import Link, LinkState

PAUSE = 3.0
"""Seconds between the beginnings of two faults, on the average."""
AT_ONCE = 3
"""Faults that there are at the same time, at most."""
HOURS = 7200.0
SLOW = (TimeoutError, subprocess.TimeoutExpired)
"""Errors of a command or a server that takes too long: the machine is busy."""
TRIES = 5
"""Tries to end a fault, each of which may take too long."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that may happen.

    :ivar begin: lets it happen.
    :ivar end: ends it.
    :ivar seconds: the least and the most between both.
    :ivar group: targets of which only one has a fault at a time; "": the target alone.
    """

    kind: str
    target: str
    begin: Callable[[], None]
    end: Callable[[], None]
    seconds: tuple[float, float]
    group: str = ""

    @property
    def key(self) -> str:
        """Return the name under which it is busy."""
        return self.group or self.target


@dataclasses.dataclass(frozen=True)
class FaultyLedger:
    """The ledger's process, and the proxy in front of it."""

    daemon: Daemon
    proxy: FaultProxy


class Nemesis:
    """Faults for a fleet and its back ends.

    :param seed: seed of the choice of faults, targets and durations.
    """

    def __init__(
        self, fleet: Fleet, backends: BackendSet, ledger: FaultyLedger, history: History, *, seed: int
    ) -> None:
        self._random = random.Random(f"{seed} nemesis")
        self._history = history
        self._fleet = fleet
        self._ledger = ledger
        self._groups = [
            [fault for host in fleet.hosts.values() for fault in process_faults(host.daemon.name, host)],
            [fault for host in fleet.hosts.values() for fault in link_faults(host)],
            [fault for role, backend in backends.roles.items() for fault in node_faults(role, backend)],
            ledger_faults(ledger),
            [fault for host in fleet.hosts.values() for fault in clock_faults(host)],
        ]
        self._groups = [group for group in self._groups if group]
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Let faults happen until it is to stop; then end those that are there."""
        jobs = []
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            while not stop.wait(self._random.uniform(0.5, 1.5) * PAUSE):
                self._revive()
                fault = self._choose()
                if fault is not None:
                    seconds = self._random.uniform(*fault.seconds)
                    jobs.append(pool.submit(self._happen, fault, seconds, stop))
        for job in jobs:
            if (error := job.exception()) is not None:
                self._history.add(Unsettled(f"a fault could not happen or end: {error}"))

    def heal(self) -> None:
        """Let all daemons run, and wait until no late request to the ledger is under way."""
        self._revive()
        self._ledger.daemon.start()
        self._ledger.proxy.calm()

    def _revive(self) -> None:
        """Start daemons that have ended by themselves, as a service manager does."""
        for name, host in self._fleet.hosts.items():
            process = host.daemon.process
            with self._lock:
                if name in self._busy or process.is_running:
                    continue
            now = time.time()
            self._history.add(FaultSpan(f"exited with {process.exit_code}", name, now, now))
            host.daemon.start()

    def _choose(self) -> Fault | None:
        """Return a fault whose target has no other, unless there are enough."""
        fault = self._random.choice(self._random.choice(self._groups))
        with self._lock:
            if len(self._busy) >= AT_ONCE or fault.key in self._busy:
                return None
            self._busy.add(fault.key)
        return fault

    def _happen(self, fault: Fault, seconds: float, stop: threading.Event) -> None:
        began = time.time()
        try:
            undergo(fault, lambda: stop.wait(seconds))
        finally:
            self._history.add(FaultSpan(fault.kind, fault.target, began, time.time()))
            with self._lock:
                self._busy.discard(fault.key)


def undergo(fault: Fault, wait: Callable[[], object]) -> None:
    """Let a fault begin and, after a wait, end.

    A command that takes too long may have had a part of its effect.  So a fault that is slow to begin is
    ended like any other, and the end is tried until it has succeeded.

    :raises TimeoutError, subprocess.TimeoutExpired: no try to end it was quick enough.
    """
    try:
        with contextlib.suppress(*SLOW):
            fault.begin()
        wait()
    finally:
        for _ in range(TRIES - 1):
            try:
                fault.end()
            except SLOW:
                continue
            break
        else:
            fault.end()


def process_faults(name: str, host: Host) -> Sequence[Fault]:
    """Return the faults of a daemon's process."""
    daemon = host.daemon
    return [
        Fault("killed", name, daemon.kill, daemon.start, (0.2, 4.0)),
        Fault("killed", name, daemon.kill, daemon.start, (0.0, 0.1)),
        Fault("stopped", name, daemon.stop, daemon.start, (0.0, 2.0)),
        Fault("paused", name, daemon.pause, daemon.resume, (3.0, 8.0)),
    ]


def link_faults(host: Host) -> Sequence[Fault]:
    """Return the faults of a daemon's connections."""
    return [
        Fault(
            state.name.lower(),
            f"{host.daemon.name} to {role}",
            functools.partial(_set_links, links, state),
            functools.partial(_set_links, links, LinkState.OPEN),
            (1.0, 9.0),
        )
        for role, links in host.links.items()
        for state in LinkState
        if state != LinkState.OPEN
    ]


def _set_links(links: Sequence[Link], state: LinkState) -> None:
    for link in links:
        link.set(state)


def node_faults(role: str, backend: Backend) -> Sequence[Fault]:
    """Return the faults of a back end, of which there is one at a time: a cluster survives no more."""
    faults = [
        Fault(switch.kind, switch.target, switch.begin, switch.end, (1.0, 6.0), role)
        for switch in backend.switches
    ]
    for name, server in backend.nodes:
        faults += [
            Fault("killed", name, server.kill, server.start, (0.0, 4.0), role),
            Fault("restarted", name, server.stop, server.start, (0.0, 1.0), role),
            Fault("paused", name, server.pause, server.resume, (1.0, 8.0), role),
        ]
    return faults


def ledger_faults(ledger: FaultyLedger) -> Sequence[Fault]:
    """Return the faults of the service outside."""
    proxy = ledger.proxy
    faulty = Fault("faulty answers", "ledger", proxy.faulty.set, proxy.faulty.clear, (3.0, 10.0))
    killed = Fault("killed", "ledger", ledger.daemon.kill, ledger.daemon.start, (0.0, 3.0))
    return [faulty, faulty, killed]


def clock_faults(host: Host) -> Sequence[Fault]:
    """Return the faults of a host's clock."""
    if host.clock is None:
        return []
    return [
        Fault(
            "clock set",
            f"clock of {host.daemon.name}",
            functools.partial(host.set_clock, ahead),
            functools.partial(host.set_clock, 0.0),
            (2.0, 15.0),
        )
        for ahead in (-HOURS, -30.0, 30.0, HOURS)
    ]
