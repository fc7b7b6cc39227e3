"""The ring as operators see it: its sums, its health, and the shards that a change would move."""

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...db.conductors import STOPPED, ConductorRecord
from ...ring.changes import Moves, WrongChange, changed_view, plan
from ...ring.hashring import View, assign
from ...shapes import Json
from .presence import Presence


def stacks_by_owner(view: View, by_shard: Mapping[int, int]) -> collections.Counter[str]:
    """Count the stacks in progress of each conductor."""
    counts: collections.Counter[str] = collections.Counter()
    if view.owners:
        assignment = assign(view)
        for shard, count in by_shard.items():
            counts[assignment.owner_of(shard)] += count
    return counts


def reporting(presence: Presence) -> list[ConductorRecord]:
    """Return the reports of conductors that have not stopped."""
    return [row for row in presence.rows.values() if row.state != STOPPED or presence.is_alive(row.host)]


def health(presence: Presence) -> str:
    """Return the health of the ring in one line."""
    reason = presence.unsettled()
    if presence.group is None:
        return f"unknown: {reason}; the last reports are shown"
    if reason is not None:
        return f"not settled: {reason}"
    settled = f"every one of {presence.shard_count} shards has one owner"
    if down := sorted(row.host for row in reporting(presence) if not presence.is_alive(row.host)):
        return f"settled: {settled}; not alive: {', '.join(down)}"
    return f"healthy: {settled}"


@dataclass(frozen=True)
class RingChange:
    """The effects of a change of the ring.

    :ivar before, after: number of shards of each conductor, before and after the change.
    :ivar stacks: number of stacks in progress in the shards that move.
    """

    moves: Moves
    before: Mapping[str, int]
    after: Mapping[str, int]
    stacks: int
    shard_count: int

    @property
    def share(self) -> float:
        """Return the part of the ring that moves, from 0 to 1."""
        return len(self.moves.moves) / self.shard_count

    def summary(self) -> str:
        """Return the effects in one sentence."""
        if not self.moves.moves:
            return "nothing moves"
        owners = sorted(self.after.items(), key=lambda pair: (-pair[1], pair[0]))
        shares = ", ".join(f"{host} {count / self.shard_count:.0%}" for host, count in owners[:SHARES_SHOWN])
        more = f", and {len(owners) - SHARES_SHOWN} others less" if len(owners) > SHARES_SHOWN else ""
        stacks = f"{self.stacks} stack{'' if self.stacks == 1 else 's'} in progress"
        return f"{self.share:.0%} of the ring moves, with {stacks}; then the shares are {shares}{more}"

    def warnings(self) -> list[str]:
        """Return the dangers of the change."""
        if len(self.after) > 1:
            return []
        return [
            f"only {host} would be left: no conductor takes over its work if it fails" for host in self.after
        ]


SHARES_SHOWN = 5
"""Conductors whose shares the sentence on a plan names."""


def plan_change(
    old: View,
    change: Mapping[str, Json],
    by_shard: Mapping[int, int],
) -> RingChange:
    """Return the effects of a change that is described as in the API.

    :param old: the ring before the change.
    :param change: the hosts that ``leave``, and weights by host of those that ``join`` or have another
        ``weight``; each may be missing.
    :param by_shard: number of stacks in progress.
    :raises WrongChange: a host cannot leave or join, or the ring is empty, or would be.
    """
    leave, join, weight = (change.get(name) or () for name in ("leave", "join", "weight"))
    new = changed_view(old, leave, dict(join), dict(weight))
    if not old.owners or not new.owners:
        raise WrongChange("the ring is empty, or would be: nothing can be planned")
    return ring_plan(old, new, by_shard)


def ring_plan(old: View, new: View, by_shard: Mapping[int, int]) -> RingChange:
    """Return the effects of a change.

    :param by_shard: number of stacks in progress.
    :raises NoMembersError: the ring is empty, or would be.
    """
    moves = plan(old, new)
    before, after = (
        {host: len(owned) for host, owned in assign(view).by_host.items()} for view in (old, new)
    )
    stacks = sum(by_shard.get(shard, 0) for shard in moves.moves)
    return RingChange(moves, before, after, stacks, old.shard_count)


def sums(presence: Presence, in_progress: int) -> str:
    """Return the sums over all conductors in one line.

    :param in_progress: number of stacks.
    """
    rows = reporting(presence)
    owned = sum(presence.shards().values())
    working: Sequence[ConductorRecord] = rows if presence.group is None else presence.alive
    alive = "?" if presence.group is None else len(presence.group.alive)
    return (
        f"alive: {alive} of {max(len(rows), len(presence.members))} conductors; "
        f"shards: {owned} of {presence.shard_count} ({owned / presence.shard_count:.1%}); "
        f"stacks in progress: {in_progress}; "
        f"threads busy: {sum(r.threads_busy for r in working)} of {sum(r.threads for r in working)}"
    )
