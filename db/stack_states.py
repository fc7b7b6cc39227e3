"""The states of stacks, which users see, and the table of transitions between them; `states.py` has a task's.

`work/stack_transitions.py` is the only module that writes a state, by this table.  The engine decides by it
which request a stack's state allows.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product

from .states import StackState, Status

IN_PROGRESS = Status.IN_PROGRESS
COMPLETE = Status.COMPLETE
FAILED = Status.FAILED


class Actor(enum.StrEnum):
    """The parties that may let a stack go to another state."""

    USER = "user"  #: a request to the API
    PARENT = "parent"  #: a step of the resource whose nested stack it is
    CONDUCTOR = "conductor"  #: the end of the work, its deadline, or a duty
    OPERATOR = "operator"  #: a command


Arrow = tuple[StackState | None, StackState]
"""A state, and the next one; None: the stack does not exist before."""


@dataclass(frozen=True)
class StackTransition:
    """The arrows of the table that one word names."""

    word: str
    actors: frozenset[Actor]
    arrows: frozenset[Arrow]


class ForbiddenTransition(Exception):
    """A stack was to go to a state to which no arrow of the table leads.

    This is a mistake of the caller, which has locked the stack and has seen its state.
    """

    def __init__(self, source: StackState | None, target: StackState) -> None:
        super().__init__(f"no stack goes from {source or 'nothing'} to {target}")


def _states(actions: Iterable[str], *statuses: Status) -> frozenset[StackState]:
    return frozenset(StackState(action, status) for action, status in product(actions, statuses))


def _start(word: str, action: str, sources: Set[StackState | None], *actors: Actor) -> StackTransition:
    target = StackState(action, IN_PROGRESS)
    return StackTransition(word, frozenset(actors), frozenset((source, target) for source in sources))


def _end(word: str, actions: Set[str], status: Status, *actors: Actor) -> StackTransition:
    arrows = {(StackState(action, IN_PROGRESS), StackState(action, status)) for action in actions}
    return StackTransition(word, frozenset(actors), frozenset(arrows))


GOALS = frozenset({"CREATE", "UPDATE", "ROLLBACK", "ADOPT", "RESTORE"})
"""Actions that bring a stack to a goal; the others leave it as it is."""
ROLLED_BACK = frozenset({"CREATE", "UPDATE", "ADOPT", "RESTORE"})
"""Actions whose failure is rolled back if the user asked for that."""
ACTIONS = GOALS | {"SUSPEND", "RESUME", "CHECK", "SNAPSHOT", "DELETE"}

_LIVING = ACTIONS - {"DELETE"}
_ENDED = _states(_LIVING, COMPLETE, FAILED)
_IMPORTED = _ENDED | _states({"DELETE"}, FAILED)
_SUSPENDED = frozenset({*_states({"SUSPEND"}, COMPLETE, FAILED), StackState("RESUME", FAILED)})
_UPDATABLE = _states(_LIVING - {"SUSPEND"}, *Status)
"""A new goal may come at any moment, but not while the stack is suspended."""
_REQUESTED = (Actor.USER, Actor.PARENT)
_BEFORE: frozenset[StackState | None] = frozenset({None})

TRANSITIONS = (
    _start("create", "CREATE", _BEFORE, *_REQUESTED),
    _start("adopt", "ADOPT", _BEFORE, *_REQUESTED),
    # A stack inside of another one, which deletes what late calls have made: see orphans.py.
    _start("dispose", "DELETE", _BEFORE, Actor.CONDUCTOR, Actor.OPERATOR),
    StackTransition("import", frozenset({Actor.OPERATOR}), frozenset(product(_BEFORE, _IMPORTED))),
    _start("update", "UPDATE", _UPDATABLE, *_REQUESTED, Actor.CONDUCTOR),
    _start("restore", "RESTORE", _UPDATABLE, Actor.USER),
    _start("cancel_and_roll_back", "ROLLBACK", _states({"CREATE", "UPDATE"}, IN_PROGRESS), Actor.USER),
    _start("fail_and_roll_back", "ROLLBACK", _states(ROLLED_BACK, FAILED), Actor.CONDUCTOR),
    _start("plan_rollback", "ROLLBACK", _states({"ROLLBACK"}, IN_PROGRESS), Actor.CONDUCTOR),
    _start("suspend", "SUSPEND", _ENDED - _SUSPENDED, *_REQUESTED),
    _start("resume", "RESUME", _SUSPENDED, *_REQUESTED),
    _start("check", "CHECK", _ENDED - _SUSPENDED, *_REQUESTED),
    _start("snapshot", "SNAPSHOT", _ENDED - _SUSPENDED, *_REQUESTED),
    _start("delete", "DELETE", _states(_LIVING, *Status) | _states({"DELETE"}, FAILED), *_REQUESTED),
    _end("complete", ACTIONS, COMPLETE, Actor.CONDUCTOR),
    _end("fail", ACTIONS, FAILED, Actor.CONDUCTOR, Actor.OPERATOR),
    _end("cancel", _LIVING, FAILED, Actor.USER),
)


def check(transitions: Sequence[StackTransition]) -> None:
    """Check that no stack is stuck: each state is reached and can be left, and each action can end or fail.

    :raises ValueError: a state is not reached, cannot be left or has no end, or an actor has two words for
        an arrow.
    """
    words: dict[tuple[Actor, Arrow], str] = {}
    targets: dict[StackState | None, set[StackState]] = {}
    for transition in transitions:
        for actor, arrow in product(sorted(transition.actors), transition.arrows):
            if (word := words.setdefault((actor, arrow), transition.word)) != transition.word:
                raise ValueError(f"{word} and {transition.word} of the {actor} both go to {arrow[1]}")
            targets.setdefault(arrow[0], set()).add(arrow[1])
    reached: set[StackState | None] = {None}
    while more := {state for source in reached for state in targets.get(source, ())} - reached:
        reached |= more
    for action, status in product(sorted({state.action for state in reached if state}), Status):
        state = StackState(action, status)
        if state not in reached:
            raise ValueError(f"no stack comes to {state}")
        if status == IN_PROGRESS and not {*_states({action}, COMPLETE, FAILED)} <= targets.get(state, set()):
            raise ValueError(f"{state} cannot end as complete and as failed")
        if state not in targets and state != StackState("DELETE", COMPLETE):
            raise ValueError(f"no stack leaves {state}")


check(TRANSITIONS)
ARROWS: Mapping[Arrow, frozenset[Actor]] = {
    arrow: frozenset(
        actor for transition in TRANSITIONS if arrow in transition.arrows for actor in transition.actors
    )
    for arrow in {arrow for transition in TRANSITIONS for arrow in transition.arrows}
}
"""All arrows, each with the parties that may go it."""


def allows(source: StackState, action: str, actor: Actor | None = None) -> bool:
    """Return whether a stack in a state may begin an action.

    :param actor: the party that requests it; None: any.
    """
    actors = ARROWS.get((source, StackState(action, IN_PROGRESS)), frozenset())
    return bool(actors) if actor is None else actor in actors


def check_arrow(source: StackState | None, target: StackState) -> None:
    """Check that a stack may go from one state to another.

    :raises ForbiddenTransition: the table has no such arrow.
    """
    if (source, target) not in ARROWS:
        raise ForbiddenTransition(source, target)


def may_end(source: StackState, actor: Actor) -> bool:
    """Return whether a party may end the action of a stack in a state as failed."""
    return actor in ARROWS.get((source, StackState(source.action, FAILED)), ())
