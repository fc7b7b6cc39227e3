"""Memory and processor time of processes, as /proc tells them."""

import pathlib


def memory(pid: int) -> dict[str, float]:
    """Return megabytes by kind: Rss is all memory, and Pss counts a page of several processes in parts."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(value.split()[0]) * 1024 / 1e6 for name, value in (line.split(":") for line in lines)}


def running_seconds(pid: int) -> float:
    """Return the seconds that a process's present threads have run, to the nanosecond."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
