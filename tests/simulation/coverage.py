"""Coverage of the random schedules: the arrows of the state table they took, and the faults that met actions.

A schedule may have a focus, a pair of a fault and an action that earlier ones seldom had: then the fault
happens most often while a stack is in that action.  A focus is part of a run's name, as its seed is, so a
run with a focus replays exactly, too.
"""

import dataclasses
import random
import typing
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from stoker.db.states import FINAL, TRANSITIONS, TaskState

ACTIONS: Mapping[str, str | None] = {
    "CREATE": "create",
    "UPDATE": "update",
    "DELETE": "delete",
    "ROLLBACK": None,
    "SUSPEND": "act",
    "RESUME": "act",
    "CHECK": "act",
    "SNAPSHOT": "snapshot",
    "RESTORE": "restore",
    "ADOPT": "hand_over",
}
"""Actions of stacks -> the method of Users that requests them; None: a failure begins it."""
FAULTS = (
    *("kill", "pause", "cut_off", "revive", "lose", "double", "lose_cancel", "flap", "exhaust"),
    *("hold_up", "fail_before", "fail_after"),
)
"""Names of the faults: methods of Weather, then those that happen inside of a transaction."""
CHOSEN_FAULTS = FAULTS[:9]
"""Faults that a schedule can choose to happen now."""
FOCUSED = 0.3
"""Probability that the fault of the focus follows an event while its action is in progress."""
REQUESTED = 4
"""Factor by which users request the action of the focus more often."""


class Pair(typing.NamedTuple):
    """A fault while a stack is in an action."""

    fault: str
    action: str

    @classmethod
    def parse(cls, text: str) -> typing.Self:
        """Return the pair of a text such as `kill:UPDATE`.

        :raises ValueError: there is no such pair.
        """
        fault, _, action = text.partition(":")
        if fault not in FAULTS or action not in ACTIONS:
            raise ValueError(f"{text}: no pair of {', '.join(FAULTS)} and {', '.join(ACTIONS)}")
        return cls(fault, action)

    def __str__(self) -> str:
        return f"{self.fault}:{self.action}"


PAIRS = tuple(Pair(fault, action) for fault in FAULTS for action in ACTIONS)


class Arrow(typing.NamedTuple):
    """A change of a task's state."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


ARROWS = tuple(
    Arrow(source, target)
    for source, targets in TRANSITIONS.items()
    if source not in FINAL
    for target in targets
    if target != source
)
"""The arrows of the state table between different states."""


@dataclasses.dataclass
class Coverage:
    """Counts over any number of runs.

    :ivar runs: the runs that are counted here.
    :ivar arrows: changes of tasks' states.
    :ivar pairs: faults, each once for every action that was in progress.
    """

    runs: int = 0
    arrows: Counter[Arrow] = dataclasses.field(default_factory=Counter)
    pairs: Counter[Pair] = dataclasses.field(default_factory=Counter)

    def add(self, other: "Coverage") -> None:
        """Add the counts of other runs."""
        self.runs += other.runs
        self.arrows.update(other.arrows)
        self.pairs.update(other.pairs)

    def note(self, fault: str, actions: Iterable[str]) -> None:
        """Count a fault while these actions are in progress."""
        self.pairs.update(Pair(fault, action) for action in actions)

    def rarest(self, count: int) -> list[Pair]:
        """Return the pairs that a schedule can seek and that were the rarest, rarest first."""
        sought = [pair for pair in PAIRS if pair.fault in CHOSEN_FAULTS]
        return sorted(sought, key=lambda pair: (self.pairs[pair], PAIRS.index(pair)))[:count]

    def missing(self) -> tuple[list[Arrow], list[Pair]]:
        """Return the arrows and the pairs that never occurred."""
        return [a for a in ARROWS if not self.arrows[a]], [p for p in PAIRS if not self.pairs[p]]

    def report(self) -> str:
        """Return tables of all counts, and a list of what never occurred."""
        width = max(map(len, FAULTS)) + 2
        table = _table(self.pairs, width)
        arrows = [f"{str(arrow):{2 * width}} {self.arrows[arrow]:>12,}" for arrow in ARROWS]
        no_arrows, no_pairs = self.missing()
        never = ", ".join(map(str, (*no_arrows, *no_pairs))) or "nothing"
        summary = (
            f"{self.runs:,} runs; {len(ARROWS) - len(no_arrows)} of {len(ARROWS)} changes of a task's state, "
            f"{len(PAIRS) - len(no_pairs)} of {len(PAIRS)} pairs of a fault and an action"
        )
        return "\n".join([*arrows, "", *table, "", f"Never: {never}", summary])


def _table(pairs: Mapping[Pair, int], width: int) -> Sequence[str]:
    head = " " * width + "".join(f"{action:>10}" for action in ACTIONS)
    return [head] + [
        f"{fault:{width}}" + "".join(f"{pairs.get(Pair(fault, action), 0):>10,}" for action in ACTIONS)
        for fault in FAULTS
    ]


class Focus:
    """Decides when the fault of a pair happens.

    :param pair: None: never.
    """

    def __init__(self, pair: Pair | None, seed: int) -> None:
        self._pair = pair
        self._dice = random.Random(f"focus {seed} {pair}")

    def weight(self, request: str, usual: float) -> float:
        """Return the weight of a method of Users among all events."""
        is_sought = self._pair is not None and ACTIONS[self._pair.action] == request
        return REQUESTED * usual if is_sought else usual

    @property
    def is_set(self) -> bool:
        """Return whether there is a pair."""
        return self._pair is not None

    def fault_now(self, actions: Iterable[str]) -> str | None:
        """Return the name of the fault that happens while these actions are in progress; None: none does."""
        if self._pair is None or self._pair.action not in actions or self._dice.random() >= FOCUSED:
            return None
        return self._pair.fault


def arrow_of(row: Sequence[str]) -> Arrow:
    """Return the arrow of a row (old state, new state)."""
    return Arrow(TaskState(row[0]), TaskState(row[1]))
