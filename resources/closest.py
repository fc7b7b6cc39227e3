"""Which known name the user may have meant."""

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` where a known name is close, else an empty text."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
