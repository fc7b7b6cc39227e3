"""A helper process: evaluates one request after another under the kernel's limits, and ends with its pool."""

import contextlib
import os
import pathlib
import resource
import signal
import socket
import time

from . import channel
from .channel import SECONDS
from .evaluation import Evaluation
from .limits import HelperLimits


def serve(sock: socket.socket, evaluation: Evaluation, limits: HelperLimits) -> None:
    """Answer requests until the pool closes the connection."""
    idle = _address_space()
    _restrict(idle + limits.memory)
    with contextlib.suppress(OSError, channel.TooLong):
        while (request := channel.receive(sock, limits.message + SECONDS.size)) is not None:
            # SIGPROF ends the process also where C code holds the interpreter.
            signal.setitimer(signal.ITIMER_PROF, *SECONDS.unpack_from(request))
            since = time.process_time()
            answer = evaluation.answer(request[SECONDS.size :])
            signal.setitimer(signal.ITIMER_PROF, 0)
            channel.send(sock, SECONDS.pack(time.process_time() - since) + answer)
            if _address_space() > idle + limits.memory // 2:
                return  # What malloc kept must not count against the next request.


def _restrict(address_space: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _address_space() -> int:
    pages = pathlib.Path("/proc/self/statm").read_text().split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
