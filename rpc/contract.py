"""Topics, methods and versions of the messages between Stoker's processes.

Every message is a cast that carries ids only.  It may be lost, doubled, late or out of order, and nothing
but latency may change: the database says what is to be done, a message says where to look.

========== ============ ======= ========================================================
method     to           since   arguments
========== ============ ======= ========================================================
run_tasks  any one      1.0     traversal: str, tasks: list[int]
cancel     all          1.0     traversal: str, spared: list[int]
..         ..           1.1     request: str, the id of the user's request that wishes it; for the log
stop_tasks one host     1.0     claims: list[[task id, attempt]]: stop them, or say that you do not hold them
look_now   all          1.0     none: look at the ring's members now, and report
========== ============ ======= ========================================================

Additions raise the minor version and keep old arguments; what removes or changes something raises the major
one.  A message carries the version in which its form came up, and is sent in no newer form than all its
neighbours know: see level.py.
"""

from collections.abc import Iterable

WORK_TOPIC = "stoker.work"
VERSIONS = {"1.0": "conductors of before release 0.1", "1.1": "conductors of release 0.1"}
"""Those that can be sent, each with who understands it; the oldest first."""
LOWEST, *_, VERSION = VERSIONS
"""VERSION is the highest one: what conductors say of themselves."""


def parsed(version: str) -> tuple[int, int]:
    """(major, minor); of what is none: (0, 0).

    >>> parsed("1.10") > parsed("1.9")
    True
    """
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def understood(spoken: Iterable[str]) -> str:
    """The highest version that all understand who speak these; the lowest one where nobody is known, or one
    of them cannot be reached by any."""
    least = min(map(parsed, spoken), default=(0, 0))
    fitting = [v for v in VERSIONS if parsed(v)[0] == least[0] and parsed(v) <= least]
    return max(fitting, key=parsed, default=LOWEST)
