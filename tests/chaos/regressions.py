"""The seeds with which chaos has found a fault of Stoker, and the fault."""

import typing


class Regression(typing.NamedTuple):
    """A run that has failed once.

    :ivar name: the set of back ends.
    :ivar fault: the fault, in words.
    """

    name: str
    seed: int
    fault: str


REGRESSIONS = (
    Regression(
        "postgresql", 2, "a database that takes no writes was an unexpected error, and stayed connected"
    ),
)
