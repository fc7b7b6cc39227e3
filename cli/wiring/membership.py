"""Building a conductor's membership in the group."""

from ...ring.group import Group
from ...ring.membership import Membership, Self
from .connections import check_backend, make_timing
from .parts import Parts


def make_membership(parts: Parts, host: str) -> Membership:
    """Return a membership that is not started yet.

    :raises WrongConfiguration: the coordination backend cannot have groups.
    """
    conf = parts.conf
    check_backend(conf)
    return Membership(
        Group(conf.coordination.backend_url, conf.coordination.group, host),
        Self(host, conf.conductor.weight),
        shard_count=parts.shard_count,
        timing=make_timing(conf),
        clock=parts.database.clock,
    )
