"""The faults that live for a reason: tests/mutate/survivors.txt has a line for each, with its reason."""

import pathlib
import typing

FILE = pathlib.Path(__file__).with_name("survivors.txt")


class Known(typing.NamedTuple):
    """A line of the file: ``KEY  REASON, WHY: WHERE: BEFORE -> AFTER``."""

    reason: str
    why: str
    fault: str


REASONS = ("equivalent", "only time", "words")
"""It changes nothing that anybody can observe; only how long it takes; only what a log or an error says."""


def read() -> dict[str, Known]:
    """Return the known survivors by their keys."""
    known = {}
    for line in FILE.read_text().splitlines() if FILE.exists() else ():
        if line and not line.startswith("#"):
            key, text = line.split("  ", 1)
            cause, fault = text.split(": ", 1)
            reason, why = cause.split(", ", 1)
            known[key] = Known(reason, why, fault)
    return known


KNOWN = read()
