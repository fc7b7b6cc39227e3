"""Which known name the user may have meant."""

from collections.abc import Iterable

from ..template.near import nearest


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` where a known name is close, else an empty text."""
    close = nearest(name, known)
    return f'; did you mean "{close}"?' if close is not None else ""
