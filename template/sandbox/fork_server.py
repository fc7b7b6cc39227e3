"""The process that forks helpers: ``python -m stoker.template.sandbox.fork_server FD``.

It has one thread and has YAQL loaded, so a fork is safe and takes a millisecond, where the daemon has many
threads and secrets in its memory and must not be forked.  As their parent it alone can kill helpers by a pid
that belongs to nobody else yet.  It ends, with all helpers, when the daemon closes its end of the socket or
dies.

The first message is HelperLimits as JSON.  The answer, when YAQL is loaded, says why the system does not
filter the calls of helpers, or "".  Then ``{"start": true}`` with a socket is answered by ``{"pid": N}``,
``{"end": N}`` by ``{"status": S}`` as of waitpid, an error by ``{"error": text}``.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping

from . import channel, system_calls
from .channel import CONTROL, SECONDS
from .evaluation import Evaluation
from .limits import HelperLimits

_LATE = ("_strptime", "unicodedata", "stringprep", "encodings.idna", "encodings.latin_1", "dateutil.tz")
"""Modules that Python loads when a function first needs them; helpers can open no file then."""
_MOST = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NPROC: 0,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_NOFILE: 8,
}
"""Limits of a helper besides its memory: it starts nothing and writes nothing; it reads its own size."""


class ForkServer:
    """Starts, ends and reaps helpers."""

    def __init__(self, evaluation: Evaluation, limits: HelperLimits) -> None:
        self._evaluation = evaluation
        self._limits = limits
        self._living: set[int] = set()
        self._ended: dict[int, int] = {}

    def answer(self, message: Mapping[str, int], handle: int | None) -> dict[str, int | str]:
        """Carry out the request of a message."""
        try:
            if "start" in message and handle is not None:
                return {"pid": self._start(handle)}
            return {"status": self._end(message["end"])}
        except OSError as error:
            return {"error": str(error)}

    def reap(self) -> None:
        """Take note of helpers that ended by themselves, so that none stays a zombie."""
        for pid in list(self._living):
            child, status = os.waitpid(pid, os.WNOHANG)
            if child:
                self._living.discard(pid)
                self._ended[pid] = status

    def end_all(self) -> None:
        """Kill all helpers."""
        for pid in list(self._living):
            self._end(pid)

    def _start(self, handle: int) -> int:
        pid = os.fork()
        if pid:
            self._living.add(pid)
            return pid
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(handle, 3)
            os.closerange(4, os.sysconf("SC_OPEN_MAX"))
            serve(socket.socket(fileno=3), self._evaluation, self._limits)
            status = 0
        finally:
            os._exit(status)

    def _end(self, pid: int) -> int:
        if pid in self._living:
            # Nobody else waits for it: until then the pid is its own, also where it has ended.
            os.kill(pid, signal.SIGKILL)
            self._ended[pid] = os.waitpid(pid, 0)[1]
            self._living.discard(pid)
        return self._ended.pop(pid, 0)


def serve(sock: socket.socket, evaluation: Evaluation, limits: HelperLimits) -> None:
    """Answer requests until the pool closes the connection."""
    statm = os.open("/proc/self/statm", os.O_RDONLY)
    idle = _address_space(statm)
    _restrict(idle + limits.memory)
    system_calls.restrict()  # From here on nothing can be opened.  The fork server has said whether it works.
    with contextlib.suppress(OSError, channel.TooLong):
        while (request := channel.receive(sock, limits.message + SECONDS.size)) is not None:
            # SIGPROF ends the process also where C code holds the interpreter.
            signal.setitimer(signal.ITIMER_PROF, *SECONDS.unpack_from(request))
            since = time.process_time()
            answer = evaluation.answer(request[SECONDS.size :])
            signal.setitimer(signal.ITIMER_PROF, 0)
            channel.send(sock, SECONDS.pack(time.process_time() - since) + answer)
            if _address_space(statm) > idle + limits.memory // 2:
                return  # Memory that malloc kept must not count against the next request.


def _restrict(address_space: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    for kind, most in _MOST.items():
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _address_space(statm: int) -> int:
    """Return the size of the process whose statm(5) is open."""
    pages = os.pread(statm, CONTROL, 0).split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Serve until the daemon is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    limits = HelperLimits(**json.loads(control.recv(CONTROL)))
    for name in _LATE:
        importlib.import_module(name)
    fork_server = ForkServer(Evaluation(limits), limits)
    system_calls.gain_nothing()
    unfiltered = system_calls.why_unfiltered()
    gc.freeze()  # A collection in a helper would copy the pages that all of them share.
    awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    with contextlib.suppress(OSError):
        control.send(json.dumps({"ready": True, "unfiltered": unfiltered}).encode())
        while True:
            ready, _, _ = select.select([control.fileno(), awake], [], [])
            fork_server.reap()
            if awake in ready:
                os.read(awake, CONTROL)
            if control.fileno() in ready and not _serve_one(control, fork_server):
                break
    fork_server.end_all()


def _serve_one(control: socket.socket, fork_server: ForkServer) -> bool:
    """Answer one message; False: the daemon is gone."""
    body, handles, _, _ = socket.recv_fds(control, CONTROL, 1)
    if not body:
        return False
    answer = fork_server.answer(json.loads(body), handles[0] if handles else None)
    for handle in handles:
        os.close(handle)
    control.send(json.dumps(answer).encode())
    return True


if __name__ == "__main__":
    main()
