"""Memory and processor time of processes."""

import pathlib
import time

from harness import proctree

PROCESSOR = 2
"""The clock of the processor time among the clocks of a process, as clock_getcpuclockid(3) makes its id."""


def memory(pid: int) -> dict[str, float]:
    """Return megabytes by kind: Rss is all memory, and Pss counts a page of several processes in parts."""
    return megabytes(pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text())


def megabytes(text: str) -> dict[str, float]:
    """Return the megabytes in a text of smaps_rollup, by kind."""
    pairs = (line.split(":") for line in text.strip().splitlines()[1:])
    return {name: int(value.split()[0]) * 1024 / 1e6 for name, value in pairs}


def seconds(pid: int) -> float:
    """Return the processor time of a process, with that of its ended threads."""
    return time.clock_gettime((~pid << 3) | PROCESSOR)


def seconds_of_tree(pid: int) -> float:
    """Return the processor time of a process and of those below it."""
    return sum(seconds(proc.pid) for proc in proctree.tree(pid))
