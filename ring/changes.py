"""Changes of the ring that an operator considers: who leaves, joins or gets another weight."""

from collections.abc import Collection, Mapping

from .hashring import Member, View

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
            raise WrongChange(f"{host} is not on the ring; on it are: {', '.join(sorted(members)) or 'none'}")
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
