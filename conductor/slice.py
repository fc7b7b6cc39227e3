"""The slice of this conductor, and the members that are gone."""

import typing
from collections.abc import Callable

from ..db.ids import MemberId, host_of


class Ring(typing.Protocol):
    """The ring as the conductor sees it.  All methods may be called from any thread."""

    def member(self) -> MemberId | None:
        """Return our own name; None while we may not work: not in the group, or not sure of it."""

    def owns(self, shard: int) -> bool:
        """Return whether the shard belongs to our slice."""

    def is_deputy(self, shard: int) -> bool:
        """Return whether the shard would belong to our slice if its owner were gone."""

    def shards_owned(self) -> int:
        """Return the number of shards in our slice."""

    def version(self) -> str:
        """Return the fingerprint of the view: equal on all conductors that see the same members."""

    def present(self) -> frozenset[MemberId]:
        """Return all members of the group, including ourselves."""


class Absentees:
    """Finds claiming members that are gone for good.

    A member that is not in our view may be one that joined a moment ago.  It counts as gone when we have
    seen it leave, or when it stays away for `patience` seconds (longer than a view can be old).  Not
    thread-safe: one duty uses it.
    """

    def __init__(self, *, patience: float, clock: Callable[[], float]) -> None:
        self._patience = patience
        self._clock = clock
        self._known: set[MemberId] = set()
        self._missing: dict[MemberId, float] = {}

    def departed(self, claiming: frozenset[MemberId], present: frozenset[MemberId]) -> frozenset[MemberId]:
        """Return the claiming members that are gone."""
        now = self._clock()
        absent = claiming - present
        left_the_view = absent & self._known
        self._known = (self._known | present) & (claiming | present)
        self._missing = {member: self._missing.get(member, now) for member in absent}
        late = {member for member, since in self._missing.items() if now - since >= self._patience}
        return frozenset(left_the_view | late | self._succeeded(absent, present))

    @staticmethod
    def _succeeded(absent: frozenset[MemberId], present: frozenset[MemberId]) -> set[MemberId]:
        """Return members whose host has a newer incarnation in the group: a host runs one at a time."""
        hosts = {host_of(member) for member in present}
        return {member for member in absent if host_of(member) in hosts}
