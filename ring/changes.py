"""Changes of the ring that an operator considers: who leaves, joins or gets another weight, and the moves."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .hashring import Member, View, assign

PLANNED = "planned"
"""The incarnation of a member that is considered only."""


class WrongChange(ValueError):
    """A change does not fit the ring; the text says why."""


def changed_view(
    old: View, leave: Collection[str], join: Mapping[str, float], weight: Mapping[str, float]
) -> View:
    """Return the view after changes.

    :param leave: hosts that leave.
    :param join: hosts that join, with their weights.
    :param weight: new weights of hosts that are on the ring.
    :raises WrongChange: a host is missing, or on the ring already, or a weight is out of bounds.
    """
    members = {member.host: member for member in old.members}
    for host in leave:
        if host not in members:
            raise WrongChange(f"{host} is not on the ring, which has: {', '.join(sorted(members)) or 'none'}")
        del members[host]
    for weights, is_member in ((join, False), (weight, True)):
        for host, value in weights.items():
            if (host in members) != is_member:
                raise WrongChange(f"{host} is {'not' if is_member else 'already'} on the ring")
            try:
                members[host] = Member(host, PLANNED, value)
            except ValueError as error:
                raise WrongChange(str(error)) from error
    return View.of(members.values(), old.shard_count)


@dataclass(frozen=True)
class Moves:
    """The shards that change hands from one ring to another.

    :ivar moves: shard -> (from host, to host).
    """

    moves: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """Number of shards that move, by (from host, to host)."""
        counted: dict[tuple[str, str], int] = {}
        for pair in self.moves.values():
            counted[pair] = counted.get(pair, 0) + 1
        return counted


def plan(old: View, new: View) -> Moves:
    """Return the shards that would change hands.

    :raises NoMembersError: one of the views is empty.
    """
    before = assign(old).hosts
    after = assign(new).hosts
    pairs = enumerate(zip(before, after, strict=True))
    return Moves({shard: (b, a) for shard, (b, a) in pairs if b != a})
