"""Suggestions: the known names that a user may have meant by an unknown one."""

import bisect
import difflib
import heapq
from collections.abc import Iterable

_LONGEST = 64
"""Characters of a name that is compared: the time grows with their square."""
_MOST = 500
"""Names that are compared.  Of more names these are the nearest in the alphabet: most errors are behind
the first letters."""


_ALIKE = 0.6
"""Likeness from which names are similar; difflib's, 1.0: the same."""


def nearest(name: str, names: Iterable[str], *, alike: float = _ALIKE) -> str | None:
    """Return the known name that is most similar; None: none is.

    :param alike: the likeness from which one is similar; difflib's, 1.0: the same.

    The number and the length of the compared names are bounded, because users choose them.
    """
    matches = all_near(name, names, most=1, alike=alike)
    return matches[0] if matches else None


def all_near(name: str, candidates: Iterable[str], *, most: int, alike: float = _ALIKE) -> list[str]:
    """Return the similar ones of the known names, best first; bounded as `nearest` is."""
    if len(name) > _LONGEST:
        return []
    names = sorted(candidate for candidate in candidates if len(candidate) <= _LONGEST)
    middle = bisect.bisect(names, name)
    start = max(0, min(middle - _MOST // 2, len(names) - _MOST))
    return difflib.get_close_matches(name, names[start : start + _MOST], n=most, cutoff=alike)


def did_you_mean(name: str, names: Iterable[str], *, alike: float = _ALIKE) -> str:
    """Return ``; did you mean "x"?`` where a known name is similar, else an empty text."""
    guess = nearest(name, names, alike=alike)
    return f'; did you mean "{guess}"?' if guess is not None else ""


def closest(name: str, candidates: Iterable[str]) -> str:
    """Return the suggestion of `did_you_mean`, or else the first of the known names."""
    names = list(candidates)
    if hint := did_you_mean(name, names):
        return hint
    return f"; there are: {', '.join(heapq.nsmallest(20, names))}" if names else "; there are none"
