"""A conductor asks the others to read the ring when it has joined or drains, and only then."""

import types
import typing
from collections.abc import Callable

import pytest
from stoker.conductor.service import Conductor, ConductorParts
from stoker.db.ids import MemberId
from stoker.ring.hashring import ACTIVE, DRAINING, Member, View


class Scene:
    """A conductor whose ring the test sets.

    :ivar announced: how often it asked the others.
    :ivar stirs: how often its duties were woken.
    :ivar wakes: how often its work loop was woken.
    """

    def __init__(self) -> None:
        self.announced = 0
        self.stirs = 0
        self.wakes = 0
        self._view = View(frozenset(), 64)
        self._name: MemberId | None = None
        self._changed: Callable[[], None] = lambda: None
        parts = types.SimpleNamespace(
            host="a",
            drain=0.0,
            monitor=None,
            membership=types.SimpleNamespace(view=lambda: self._view),
            ownership=types.SimpleNamespace(member=lambda: self._name, on_change=self._listen),
            scheduler=types.SimpleNamespace(soon=lambda name: None),
            lookout=types.SimpleNamespace(stir=self._stir),
            work_thread=types.SimpleNamespace(wake=self._wake),
            ring_changed=lambda: None,
            announce_change=self._announce,
        )
        self.conductor = Conductor(typing.cast(ConductorParts, parts))

    def _listen(self, listener: Callable[[], None]) -> None:
        self._changed = listener

    def _stir(self) -> None:
        self.stirs += 1

    def _wake(self) -> None:
        self.wakes += 1

    def _announce(self) -> None:
        self.announced += 1

    def see(self, incarnation: str | None, state: str = ACTIVE, others: int = 1) -> None:
        """Let the ring have this conductor, or not, and some others."""
        members = [Member(f"b{number}", "1") for number in range(others)]
        if incarnation is not None:
            members.append(Member("a", incarnation, state=state))
        self._name = None if incarnation is None else MemberId(f"a/{incarnation}")
        self._view = View.of(members, 64)
        self._changed()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_it_announces_itself_when_it_has_joined(scene: Scene) -> None:
    scene.see(None)
    assert scene.announced == 0
    scene.see("1")
    assert scene.announced == 1


def test_it_announces_that_it_drains_and_each_new_incarnation(scene: Scene) -> None:
    scene.see("1")
    scene.see("1", DRAINING)
    assert scene.announced == 2
    scene.see(None)
    scene.see("2")
    assert scene.announced == 3


def test_changes_of_others_are_theirs_to_announce(scene: Scene) -> None:
    scene.see("1")
    scene.see("1", others=3)
    scene.see("1", others=0)
    assert scene.announced == 1


def test_each_change_of_the_ring_ends_the_rest_and_the_sleep_of_the_work_loop(scene: Scene) -> None:
    scene.see("1")
    scene.see("1", others=3)
    assert (scene.stirs, scene.wakes) == (2, 2)
