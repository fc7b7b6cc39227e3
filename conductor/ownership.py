"""Computes which shards this conductor owns, from the membership's view, which is swapped as a whole."""

import logging
import time
from collections.abc import Callable

from ..db.ids import MemberId
from ..ring.hashring import Assignment, View, assign
from ..ring.membership import Membership

LOG = logging.getLogger(__name__)


class Ownership:
    """Implements conductor.slice.Ring on a membership.

    Ownership is a hint about who acts: two conductors may for a moment both believe that they own a shard;
    every action is a compare-and-swap, so nothing is done twice.
    """

    def __init__(
        self, membership: Membership, host: str, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._changed_at = monotonic()
        self._membership = membership
        self._host = host
        self._assignment: Assignment | None = None
        self._without: dict[str, Assignment] = {}
        self._listeners: list[Callable[[], None]] = []
        membership.on_change(self._changed)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener`, in the membership's thread, after each change of the map."""
        self._listeners.append(listener)

    def member(self) -> MemberId | None:
        """Return our own name; None while we may not work: not in the group, or not sure of it."""
        name = self._membership.member()
        return None if name is None else MemberId(name)

    def owns(self, shard: int) -> bool:
        """Return whether the shard belongs to our slice."""
        assignment = self._assignment
        if assignment is None or self._membership.member() is None:
            return False
        return assignment.owner_of(shard) == self._host

    def is_deputy(self, shard: int) -> bool:
        """Return whether the shard would belong to our slice if its owner were gone.

        Such a deputy acts for a silent owner before the membership notices the silence.  It is the conductor
        that owns the shard afterwards.  It never acts just after a change, because the new owner needs time
        to see the change, too.
        """
        assignment = self._assignment
        if assignment is None or self._membership.member() is None:
            return False
        if self._monotonic() - self._changed_at < self._membership.timing.settling:
            return False
        owner = assignment.owner_of(shard)
        members = [member for member in assignment.view.owners if member.host != owner]
        if owner == self._host or not members:
            return False
        without = self._without
        if owner not in without:
            without[owner] = assign(View.of(members, assignment.view.shard_count))
        return without[owner].owner_of(shard) == self._host

    def shards_owned(self) -> int:
        """Return the number of shards in our slice."""
        return len(self.shards())

    def shards(self) -> frozenset[int]:
        """Return the shards of our slice."""
        assignment = self._assignment
        if assignment is None or self._membership.member() is None:
            return frozenset()
        return assignment.shards_of(self._host)

    def version(self) -> str:
        """Return the fingerprint of the view: equal on all conductors that see the same members."""
        return self._membership.view().version

    def present(self) -> frozenset[MemberId]:
        """Return all members of the group, including ourselves."""
        return frozenset(MemberId(member.name) for member in self._membership.view().members)

    def _changed(self, view: View) -> None:
        old = self._assignment
        if old is None or old.view.version != view.version or not view.owners:
            self._assignment = assign(view) if view.owners else None
            self._without = {}
            self._changed_at = self._monotonic()
            LOG.info("The ring is at version %s, %d shards owned", view.version, self.shards_owned())
        for listener in self._listeners:
            listener()
