"""Diagnoses for users: without the names of hosts, and without facts of other projects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...db.ids import MemberId, host_of
from .fleet import ConductorFleet, Reason
from .inspections import Waiting

USERS_COMMANDS = "openstack "
"""How the commands begin that users of a stack may run."""
_CONCERNS_USERS = frozenset({"conductors", "deleted", "rollback", "failed", "complete", "duties", "lost"})


@dataclass(frozen=True)
class Aliases:
    """Names of conductors that say which is which, and not where they run: ``conductor 1``."""

    names: dict[str, str]

    @classmethod
    def of(cls, fleet: ConductorFleet) -> "Aliases":
        """Return the aliases of a fleet."""
        return cls({host: f"conductor {number}" for number, host in enumerate(sorted(fleet.conductors), 1)})

    def host(self, host: str) -> str:
        """Return the alias of a host."""
        return self.names.get(host, "a conductor")

    def member(self, member: MemberId) -> MemberId:
        """Return an incarnation with its host's alias."""
        return MemberId(member.replace(host_of(member), self.host(host_of(member)), 1))


def without_hosts(fleet: ConductorFleet, alias: Aliases) -> ConductorFleet:
    """Return the fleet with aliases for hosts, and without problems that only operators can solve."""
    return replace(
        fleet,
        conductors={
            alias.host(host): replace(
                row, host=alias.host(host), incarnation=alias.member(MemberId(row.incarnation))
            )
            for host, row in fleet.conductors.items()
        },
        alive=frozenset(alias.host(host) for host in fleet.alive),
        owner_of=_aliased(fleet.owner_of, alias),
        skews={},
        unsettled=None,
        unreachable=None,
        is_discreet=True,
    )


def _aliased(owner_of: Callable[[int], str | None], alias: Aliases) -> Callable[[int], str | None]:
    def owner(shard: int) -> str | None:
        owner = owner_of(shard)
        return None if owner is None else alias.host(owner)

    return owner


def waiting_without_hosts(waiting: Waiting, alias: Aliases) -> Waiting:
    """Return the unfinished work with aliases for the conductors that hold it."""
    return replace(
        waiting,
        tasks=[
            task if task.member is None else replace(task, member=alias.member(task.member))
            for task in waiting.tasks
        ],
    )


def for_users(reason: Reason) -> Reason:
    """Return a reason with those of its commands that users may run."""
    return replace(
        reason, commands=tuple(text for text in reason.commands if text.startswith(USERS_COMMANDS))
    )


def general_for_users(reasons: Sequence[Reason]) -> list[Reason]:
    """Return the general reasons that concern users of the stack."""
    return [for_users(reason) for reason in reasons if reason.cause in _CONCERNS_USERS]
