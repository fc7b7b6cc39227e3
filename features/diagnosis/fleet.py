"""The fleet of conductors as the operator's commands see it, and its health problems."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...db.conductors import STOPPED, ConductorRecord
from ...db.ids import MemberId, StackId, host_of
from ...observe.instants import describe_age, describe_moment, describe_span

SKEW = 2.0
"""Seconds by which two clocks may differ without a warning."""


@dataclass(frozen=True)
class ConductorFleet:
    """The fleet of conductors.

    :ivar now: seconds since the epoch, by this host's clock.
    :ivar conductors: the last report of each, by host.
    :ivar alive: hosts of the conductors that are alive by their group; while the group is unreachable, hosts
        of the conductors that report.
    :ivar owner_of: returns the host that owns a shard; None: nobody does.
    :ivar takeover: seconds after a conductor's last report until the others have its work.
    :ivar grace: seconds that a cancelled step has to end.
    :ivar manage: the operator's command line of ``stoker-manage``.
    :ivar skews: seconds by which the clocks of hosts are ahead of this one's, where that is much.
    :ivar unsettled: why the ring is not settled.
    :ivar unreachable: why the group cannot be reached.
    :ivar is_discreet: whether facts of other projects' stacks are left out.
    """

    now: float
    conductors: Mapping[str, ConductorRecord]
    alive: frozenset[str]
    owner_of: Callable[[int], str | None]
    takeover: float
    grace: float
    manage: str
    skews: Mapping[str, float]
    unsettled: str | None = None
    unreachable: str | None = None
    is_discreet: bool = False

    def works(self, member: MemberId) -> bool:
        """Return whether this very incarnation is alive."""
        host = host_of(member)
        return host in self.alive and self.conductors[host].incarnation == member

    @property
    def present(self) -> list[str]:
        """Return the incarnations that are alive."""
        return [self.conductors[host].incarnation for host in sorted(self.alive)]

    @property
    def is_busy(self) -> bool:
        """Return whether no conductor has a free thread."""
        return bool(self.alive) and len(self.fully_busy) == len(self.alive)

    @property
    def fully_busy(self) -> list[str]:
        """Return the incarnations that have no free thread."""
        living = (self.conductors[host] for host in sorted(self.alive))
        return [c.incarnation for c in living if 0 < c.threads <= c.threads_busy]

    def revive(self) -> tuple[str, ...]:
        """Return the commands that bring conductors back."""
        hosts = sorted(self.conductors) or ["HOST"]
        return (
            f"{self.manage} config validate --connect",
            *(restart(host) for host in hosts),
        )

    def retry(self, stack_id: StackId, resource: str | None = None) -> str:
        """Return the command that requeues stuck tasks."""
        named = "" if resource is None else f" --resource {shlex.quote(resource)}"
        return f"{self.manage} stack retry {stack_id}{named}"


@dataclass(frozen=True)
class Reason:
    """The reason why something is unfinished.

    :ivar cause: a word for programs.
    :ivar why: the reason, in words.
    :ivar next: the event that happens by itself.
    :ivar at: the instant of that event, if it is known.
    :ivar commands: commands that bring the event about sooner, the best one first.
    """

    cause: str
    why: str
    next: str
    at: float | None = None
    commands: tuple[str, ...] = ()


def health_problems(fleet: ConductorFleet, *, unsettled: str | None, database: float | None) -> list[Reason]:
    """Return the problems of conductors and clocks, which concern every stack.

    :param unsettled: why the ring is not settled.
    :param database: seconds by which the database's clock is ahead; None: it has none of its own.
    """
    problems = _of_ring(fleet, unsettled)
    for name, skew in [*fleet.skews.items(), *([] if database is None else [("the database", database)])]:
        if abs(skew) >= SKEW:
            way = "ahead of" if skew > 0 else "behind"
            text = f"the clock of {name} is {describe_span(abs(skew))} {way} this host's"
            why = f"{text}: what is due comes late or early"
            problems.append(Reason("clock", why, "nothing: synchronize the clocks (NTP)", None, ()))
    for host in sorted(fleet.alive):
        if lost := fleet.conductors[host].threads_written_off:
            description = f"{lost} thread{'s hang' if lost > 1 else ' hangs'} in calls that were cancelled"
            why = f"{host}: {description}, and {'were' if lost > 1 else 'was'} detached"
            then = (
                "a thread that returns counts no longer; "
                "at [conductor] most_written_off the conductor restarts"
            )
            problems.append(Reason("written-off", why, then, None, (restart(host),)))
    return problems


def _of_ring(fleet: ConductorFleet, unsettled: str | None) -> list[Reason]:
    text = (
        ", ".join(f"{host} ({_last_report(fleet, host)})" for host in sorted(fleet.conductors))
        or "none was ever started"
    )
    if fleet.unreachable is not None:
        why = f"the group of conductors is unreachable, so it is unknown which are alive: {fleet.unreachable}"
        then = "those that report continue" if fleet.alive else "nothing until it can be reached"
        command = f"{fleet.manage} config validate --connect"
        return [Reason("group", f"{why}; last reports: {text}", then, None, (command,))]
    if not fleet.alive:
        guess = "they have stopped, hang, or cannot reach the coordination backend"
        why = f"no conductor is alive; last reports: {text}; {guess}"
        return [Reason("conductors", why, "nothing until one is back", None, fleet.revive())]
    if unsettled is None:
        return []
    command = f"{fleet.manage} ring rebalance --wait"
    return [Reason("ring", f"the ring is not settled: {unsettled}", "it settles", None, (command,))]


def _last_report(fleet: ConductorFleet, host: str) -> str:
    conductor = fleet.conductors[host]
    if conductor.state == STOPPED:
        return "stopped"
    return describe_age(fleet.now - conductor.heartbeat_at)


def ago(fleet: ConductorFleet, moment: float) -> str:
    """Return the age of a moment for people."""
    return describe_age(fleet.now - moment)


def when(fleet: ConductorFleet, moment: float | None) -> str:
    """Return a moment for people; "" for None."""
    return "" if moment is None else describe_moment(moment, fleet.now)


def restart(host: str) -> str:
    """Return the command that restarts a conductor on its host.

    The unit names its conductor after the machine and its own instance: ``%l-%i``.
    """
    return f"systemctl restart stoker-conductor@{host.rpartition('-')[2]}"
