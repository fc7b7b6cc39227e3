"""Search for the known name that a user may have meant."""

import bisect
import difflib
from collections.abc import Iterable

_LONGEST = 64
"""Characters of a name that is compared: the time grows with their square."""
_MOST = 500
"""Names that are compared.  Of more names these are the nearest in the alphabet: most errors are behind
the first letters."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar; None: none is.

    The number and the length of the compared names are bounded, because users choose them.
    """
    found = all_near(name, known, most=1)
    return found[0] if found else None


def all_near(name: str, known: Iterable[str], *, most: int) -> list[str]:
    """Return the similar ones of the known names, best first; bounded as `nearest` is."""
    if len(name) > _LONGEST:
        return []
    names = sorted(other for other in known if len(other) <= _LONGEST)
    middle = bisect.bisect(names, name)
    start = max(0, min(middle - _MOST // 2, len(names) - _MOST))
    return difflib.get_close_matches(name, names[start : start + _MOST], n=most)
