"""Processes as /proc shows them: a server's children are often in sessions of their own, out of reach of its
group's signals."""

import contextlib
import os
import pathlib
import signal
import time
import typing

PROC = pathlib.Path("/proc")


class Proc(typing.NamedTuple):
    """One process.

    :ivar started: clock ticks after boot; with the pid it names one process forever, while a pid alone is
        given to another one later.
    """

    pid: int
    parent: int
    state: str
    started: int


def read(pid: int) -> Proc | None:
    """The process of that pid, or None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, field 2, is in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return Proc(pid=pid, parent=int(fields[1]), state=fields[0], started=int(fields[19]))


def tree(pid: int) -> list[Proc]:
    """The process and all its descendants, parents first; empty if there is no such process."""
    first = read(pid)
    if first is None:
        return []
    children: dict[int, list[Proc]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (proc := read(int(entry.name))) is not None:
            children.setdefault(proc.parent, []).append(proc)
    procs = [first]
    for proc in procs:
        procs.extend(children.get(proc.pid, ()))
    return procs


def is_alive(proc: Proc) -> bool:
    """Return whether that very process still runs; a zombie does not."""
    now = read(proc.pid)
    return now is not None and now.started == proc.started and now.state not in ("Z", "X")


def send(procs: list[Proc], number: signal.Signals) -> None:
    """Signal those that still run."""
    for proc in procs:
        if is_alive(proc):
            with contextlib.suppress(ProcessLookupError):
                os.kill(proc.pid, number)


def wait_gone(procs: list[Proc], within: float) -> list[Proc]:
    """Wait until all have ended.

    :param within: seconds.
    :returns: those that still run after that time.
    """
    end = time.monotonic() + within
    while (remaining := [proc for proc in procs if is_alive(proc)]) and time.monotonic() < end:
        time.sleep(0.01)
    return remaining


def has_port(pid: int, port: int) -> bool:
    """Return whether a process has a connection from this port of an IPv4 address."""
    sockets = set()
    for line in (PROC / "net" / "tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port:
            sockets.add(f"socket:[{fields[9]}]")
    with contextlib.suppress(OSError):
        for entry in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(entry) in sockets:
                    return True
    return False
