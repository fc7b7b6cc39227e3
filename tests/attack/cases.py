"""The table of attacks: what is sent, what must be answered, and the function that tries it."""

from collections.abc import Callable
from dataclasses import dataclass

from attack.target import Target

Try = Callable[[Target], None]


@dataclass(frozen=True)
class Case:
    """An attack.

    :ivar kind: who attacks, or by which means.
    :ivar sends: what is sent.
    :ivar expects: the answer that must come.
    :ivar attempt: function that raises Unexpected where the answer is another one.
    """

    name: str
    kind: str
    sends: str
    expects: str
    attempt: Try


CASES: dict[str, Case] = {}
"""All attacks by name, in the order in which they are tried."""


def case(kind: str, sends: str, expects: str) -> Callable[[Try], Try]:
    """Register a function as an attack; its name is the attack's."""

    def register(attempt: Try) -> Try:
        name = attempt.__name__
        assert name not in CASES, name
        CASES[name] = Case(name, kind, sends, expects, attempt)
        return attempt

    return register
