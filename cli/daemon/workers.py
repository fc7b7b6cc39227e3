"""Several worker processes of one daemon, under oslo.service's process launcher.

The launcher forks the workers, starts one again that ends, and passes SIGTERM on.  It lacks the parts
that this module adds: messages to systemd at the right moment, the exit code, a reload that keeps the
processes, an orderly stop on SIGINT, and an end for a worker that hangs.  A worker sends its parent the
messages that a daemon sends to systemd (sd_notify(3)).

The parent has read the configuration, made what the workers serve, and listens; before the first fork it has
neither an open connection nor a thread.  A worker that replaces one begins as those did, with the options as
they are reloaded since then.  The workers inherit the socket, and the kernel gives a connection to one that
waits for it: a worker that hangs delays none (with sockets of their own, by SO_REUSEPORT, it would), and none
is refused while one is replaced.
"""

import contextlib
import logging
import math
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oslo_config import cfg
from oslo_service import service

from .main_loop import OperatorSignal, SignalQueue, end_process
from .main_thread import Daemon, DaemonService, Streams
from .systemd import Systemd

LOG = logging.getLogger(__name__)
BLOCKED = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGUSR2})
"""Signals that the launcher must not see: on SIGINT it would kill the workers, on SIGHUP replace them."""
START_WITHIN = 90.0
"""Seconds that a worker may take to start."""
ABORT_WITHIN = 5.0
"""Seconds in which an aborted worker prints its threads' stacks; then it is killed."""
STOP_MARGIN = 5.0
"""Seconds for which the launcher waits for workers beyond the time that they ask for."""
MakeDaemon = Callable[[SignalQueue, Systemd], Daemon]


@dataclass(frozen=True)
class WorkerSettings:
    """The worker processes of a daemon.

    :ivar count: how many; the launcher keeps their number.
    :ivar stops_within: the seconds that a worker may take to stop.
    :ivar status: shown in systemd while all of them serve.
    """

    program: str
    count: int
    stops_within: float
    status: str


def run_workers(
    settings: WorkerSettings,
    conf: cfg.ConfigOpts,
    signals: SignalQueue,
    make: MakeDaemon,
    reload: Callable[[], str],
    listener: socket.socket,
) -> int:
    """Run worker processes until SIGTERM or SIGINT; return the exit code, with which to call end_process.

    The code is 0 if all workers stopped in order, 1 if one could not start at first, left something
    unfinished, or if nobody reads the daemon's output any more.  The main thread calls it, before any other
    thread was started: the workers are forks of this process.

    :param signals: the signals of the process so far; a stop or a reload that arrived early is obeyed.
    :param make: a function that makes the daemon, in each worker.
    :param reload: a function that reads the configuration for later workers and returns the status.
    :param listener: the socket that the workers inherit.  It stays open here, so that no connection is
        refused while a worker is replaced.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    parent = WorkerParent(settings, Systemd(), reload, listener)
    # The launcher would send READY=1 itself, before the first worker has started.
    os.environ.pop("NOTIFY_SOCKET", None)
    launcher = service.ProcessLauncher(conf)
    conf.set_override("graceful_shutdown_timeout", math.ceil(settings.stops_within + STOP_MARGIN))
    launcher.launch_service(WorkerService(settings.program, make, parent.link), workers=settings.count)
    # The launcher learns of signals by the interpreter's wakeup descriptor; its own handler does nothing.
    signal.signal(signal.SIGTERM, lambda number, frame: parent.stopping())
    if stops_early(signals, reload):
        return 0
    parent.start()
    with contextlib.suppress(SystemExit):  # The launcher's end after SIGTERM, with the code 0 in any case.
        launcher.wait()
    return parent.exit_code()


def stops_early(signals: SignalQueue, reload: Callable[[], str]) -> bool:
    """Obey the signals that arrived during the start; return whether the process shall stop."""
    while (early := signals.next(0.0)) is not None:
        if early == OperatorSignal.STOP:
            return True
        if early == OperatorSignal.RELOAD:
            reload()
    return False


class WorkerLink(Systemd):
    """A worker's messages to its parent, in place of systemd.

    :param outbox: one end of a pair of datagram sockets.
    :param watchdog: the seconds between two messages after which the parent ends the worker; None: never.
    """

    def __init__(self, outbox: socket.socket, watchdog: float | None) -> None:
        super().__init__({})
        self._outbox = outbox
        self.watchdog = watchdog

    def ended(self, code: int, *, closed: bool) -> None:
        """Announce the end: the exit code, and whether nobody reads the daemon's output any more."""
        self._notify(f"EXIT={code}\nCLOSED={int(closed)}")

    def _notify(self, text: str) -> None:
        # Where the parent hangs the socket's buffer is full; systemd restarts the whole daemon then.
        with contextlib.suppress(OSError):
            self._outbox.send(f"PID={os.getpid()}\n{text}".encode())


class WorkerService(service.ServiceBase):  # type: ignore[misc]
    """A daemon as the process launcher runs it in each worker.

    Two threads of the launcher call it: one `start` and then `wait`, on SIGTERM another one `stop`.
    """

    def __init__(self, program: str, make: MakeDaemon, link: WorkerLink) -> None:
        self._program = program
        self._make = make
        self._link = link
        self._signals: SignalQueue | None = None
        self._made = threading.Event()
        self._running: DaemonService | None = None

    def start(self) -> None:
        """Start the daemon."""
        self._link.waiting("starting", START_WITHIN)
        self._signals = SignalQueue(caught=())
        self._made.set()
        threading.Thread(target=_take_signals, args=(self._signals,), name="signals", daemon=True).start()
        self._running = DaemonService(self._program, self._make(self._signals, self._link))
        self._running.start()

    def wait(self) -> None:
        """Serve until a stop is asked for, stop, and end the process: the launcher has no exit code."""
        running = self._running
        assert running is not None
        running.wait()
        running.stop()
        self._link.ended(running.code, closed=running.streams.closed)
        end_process(running.code)

    def stop(self) -> None:
        """Ask the daemon to stop, and wait: when this returns the launcher ends the process."""
        self._made.wait()
        assert self._signals is not None
        self._signals.put(OperatorSignal.STOP)
        threading.Event().wait()

    def reset(self) -> None:
        """Do nothing: the launcher does not call it, SIGHUP reaches the daemon's main loop."""


def _take_signals(signals: SignalQueue) -> None:
    """Take the signals that the parent passes on to this worker."""
    while True:
        number = signal.sigwait(BLOCKED - {signal.SIGINT})
        if number == signal.SIGHUP:
            signals.put(OperatorSignal.RELOAD)
        else:
            signals.report()


@dataclass
class _Worker:
    """A worker process as its parent knows it.

    :ivar handle: pidfd_open(2): unlike a pid it never means another process.
    :ivar due: the time limit of the next message, in seconds of the monotonic clock.
    """

    pid: int
    handle: int
    due: float
    ready: bool = False
    aborted: bool = False

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)


class WorkerParent:
    """The parent of the workers: two threads besides the launcher's, which reads no messages.

    :param systemd: the connection to systemd, made before the launcher takes systemd's address away.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        systemd: Systemd,
        reload: Callable[[], str],
        listener: socket.socket,
    ) -> None:
        self._settings = settings
        self._systemd = systemd
        self._reload = reload
        self._listener = listener
        self._pid = os.getpid()
        self._inbox, outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        outbox.setblocking(False)
        self.link = WorkerLink(outbox, systemd.watchdog)
        self._workers: dict[int, _Worker] = {}
        self._ended: dict[int, int] = {}
        self._reloading: set[int] = set()
        self._status = settings.status
        self._lock = threading.Lock()
        self._announced = False
        self._serving = False
        self._stopping = False
        self._code = 0
        self._signals = SignalQueue(caught=())
        self._streams = Streams(self._signals)
        self._messages = threading.Thread(target=self._read_messages, name="workers", daemon=True)

    def start(self) -> None:
        """Watch the workers that will be forked; called before the launcher forks the first one."""
        self._streams.watch()
        self._messages.start()
        threading.Thread(target=self._take_signals, name="signals", daemon=True).start()

    def stopping(self) -> None:
        """Begin to stop; the handler of SIGTERM."""
        if os.getpid() == self._pid:  # A worker has this handler until the launcher sets its own.
            self._stopping = True
            self._systemd.stopping(self._settings.stops_within + STOP_MARGIN)
            self._listener.close()  # As the workers do: connections that arrive now are refused.

    def exit_code(self) -> int:
        """Return the exit code, once all workers have ended."""
        self.link.ended(0, closed=False)  # Comes after all that they have sent.
        self._messages.join(STOP_MARGIN)
        unfinished = any(self._ended.get(pid) != 0 for pid in self._workers)
        return self._code or int(unfinished) or int(self._streams.closed)

    def _stop(self, code: int) -> None:
        self._code = self._code or code
        os.kill(self._pid, signal.SIGTERM)

    def _take_signals(self) -> None:
        while True:
            number = signal.sigwait(BLOCKED)
            if number == signal.SIGINT:
                self._stop(0)
                continue
            status = self._reload() if number == signal.SIGHUP else ""
            with self._lock:
                workers = list(self._workers.values())
                if number == signal.SIGHUP:
                    self._status = status
                    self._announced = False
                    self._reloading = {worker.pid for worker in workers}
                    self._systemd.reloading()
            for worker in workers:
                worker.send(signal.Signals(number))

    def _read_messages(self) -> None:
        inbox = self._inbox.fileno()
        while True:
            handles = {} if self._stopping else {w.handle: w for w in self._workers.values()}
            readable = select.select([inbox, *handles], [], [], min(1.0, self._systemd.pause or 1.0))[0]
            if inbox in readable:
                lines = self._inbox.recv(4096).decode().split("\n")
                message = dict(line.partition("=")[::2] for line in lines)
                if int(message["PID"]) == self._pid:
                    return
                self._take(int(message["PID"]), message)
            for handle in set(readable) & handles.keys():
                self._forget(handles[handle])
            if self._signals.next(0.0) == OperatorSignal.STOP:  # Nobody reads the log.
                self._stop(1)
            if not self._stopping:
                self._end_late(time.monotonic())
                self._systemd.alive()

    def _take(self, pid: int, message: Mapping[str, str]) -> None:
        """Take a worker's message."""
        if pid not in self._workers:
            with self._lock, contextlib.suppress(ProcessLookupError):  # It has ended already.
                self._workers[pid] = _Worker(pid, os.pidfd_open(pid), math.inf)
        if (worker := self._workers.get(pid)) is not None:
            extended = int(message.get("EXTEND_TIMEOUT_USEC", 0)) / 1e6
            if watchdog := self._systemd.watchdog:
                worker.due = time.monotonic() + (extended or watchdog)
            if "READY" in message:
                self._announce(worker)
        if "EXIT" in message:
            self._ended[pid] = int(message["EXIT"])
            if message["CLOSED"] == "1" or not (self._serving or self._stopping):
                self._stop(1)

    def _announce(self, worker: _Worker) -> None:
        """Notify systemd that all workers serve: once after the start, and after each reload."""
        with self._lock:
            worker.ready = True
            self._reloading.discard(worker.pid)
            complete = sum(other.ready for other in self._workers.values()) == self._settings.count
            if self._announced or self._reloading or not complete:
                return
            self._announced = True
            if not self._serving:
                self._serving = True
                LOG.info("%s %s", self._settings.program, self._status)
            self._systemd.ready(self._status)

    def _forget(self, worker: _Worker) -> None:
        """Forget a worker that has ended; the launcher starts another one."""
        with self._lock:
            del self._workers[worker.pid]
            self._reloading.discard(worker.pid)
        os.close(worker.handle)
        if self._ended.pop(worker.pid, None) is None:
            LOG.error("Worker process %s of %s died; it is restarted", worker.pid, self._settings.program)

    def _end_late(self, now: float) -> None:
        """End the workers whose message is late."""
        for worker in self._workers.values():
            if now > worker.due:
                LOG.critical("Worker process %s hangs; it is ended and restarted", worker.pid)
                worker.send(signal.SIGKILL if worker.aborted else signal.SIGABRT)
                worker.due = now + ABORT_WITHIN
                worker.aborted = True
