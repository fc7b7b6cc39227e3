"""Wildcards in names: ``*``, ``?`` and ``[abc]``."""

import fnmatch

MOST_CHARACTERS = 1000
"""Of a pattern with wildcards.  Names have 255, and Python compiles a long one in quadratic time: 40 KB with
open brackets take 15 s."""


def fits(name: str, pattern: str) -> bool:
    """Return whether the name is what the pattern says; a pattern that is too long is nothing but a name."""
    return name == pattern or (len(pattern) <= MOST_CHARACTERS and fnmatch.fnmatchcase(name, pattern))
