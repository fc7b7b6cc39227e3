"""Views of the ring, of conductors and of the stacks of all projects, for operators."""

import typing
from collections.abc import Mapping, Sequence

from ...db.conductors import ConductorRecord
from ...db.queries.overview import ClaimInHand, StuckStack, WorkDone
from ...db.states import TaskState
from ...engine.diagnosis.presence import Presence
from ...engine.diagnosis.ring import RingChange, health, stacks_by_owner, sums
from ...engine.quotas import QuotaUsage
from ...observe.instants import exact_or_none
from ...ring.hashring import assign

Json = typing.Any


RATED = 10.0
"""Seconds over which the rates of conductors are averages."""


def ring(
    found: Presence, by_shard: Mapping[int, int], done: Mapping[str, WorkDone], *, shards: bool
) -> dict[str, Json]:
    """Return the view of the ring.

    :param by_shard: number of stacks in progress.
    :param done: in the last RATED seconds, by host.
    :param shards: with the owner of each shard.
    """
    owned, stacks = found.shards(), stacks_by_owner(found.ring, by_shard)
    view: dict[str, Json] = {
        "settled": found.unsettled() is None,
        "health": health(found),
        "sums": sums(found, sum(by_shard.values())),
        "version": found.ring.version,
        "shard_count": found.shard_count,
        "stacks_in_progress": sum(by_shard.values()),
        "conductors": [
            _place(found, host, owned.get(host, 0), stacks[host]) | _rates(done.get(host))
            for host in found.hosts
        ],
    }
    if shards:
        owners = assign(found.ring).hosts if found.ring.owners else []
        hosts = sorted(set(owners))
        number = {host: index for index, host in enumerate(hosts)}
        view |= {"owners": hosts, "shards": [number[host] for host in owners]}
    return view


def _place(found: Presence, host: str, owned: int, stacks: int) -> dict[str, Json]:
    row = found.rows.get(host)
    weights = {member.host: member.weight for member in found.members}
    return {
        "host": host,
        "state": found.state(host),
        "alive": found.is_alive(host),
        "weight": weights.get(host, 1.0 if row is None else row.weight),
        "shards": owned,
        "share": round(owned / found.shard_count, 4),
        "stacks_in_progress": None if found.group is None else stacks,
        **_report(row),
    }


def _rates(done: WorkDone | None) -> dict[str, Json]:
    done = done or WorkDone()
    rates = {"tasks_per_second": done.tasks, "events_per_second": done.events}
    return {name: round(count / RATED, 1) for name, count in rates.items()}


def _report(row: ConductorRecord | None) -> dict[str, Json]:
    """Return what a conductor has reported last; nulls where it has not yet."""
    names = ("wanted", "incarnation", "threads", "threads_busy", "ring_version", "rpc_version")
    return {
        **{name: None if row is None else getattr(row, name) for name in names},
        "threads_hung": None if row is None else row.threads_written_off,
        "schema": None if row is None else row.schema_number,
        "clock_ahead": None if row is None else row.clock_ahead,
        "started_time": None if row is None else exact_or_none(row.started_at),
        "reported_time": None if row is None else exact_or_none(row.heartbeat_at),
    }


def plan(found: RingChange, *, shards: bool) -> dict[str, Json]:
    """Return the view of a plan.

    :param shards: with each shard that moves.
    """
    view: dict[str, Json] = {
        "summary": found.summary(),
        "warnings": found.warnings(),
        "moved_shards": len(found.moves.moves),
        "moved_share": round(found.share, 4),
        "moved_stacks_in_progress": found.stacks,
        "shard_count": found.shard_count,
        "before": dict(sorted(found.before.items())),
        "after": dict(sorted(found.after.items())),
        "moves": [
            {"from": source, "to": target, "shards": count}
            for (source, target), count in sorted(found.moves.counts.items())
        ],
    }
    if shards:
        view["shards"] = {str(shard): pair[1] for shard, pair in sorted(found.moves.moves.items())}
    return view


def conductor(
    found: Presence, host: str, claims: Sequence[ClaimInHand], most: int, done: WorkDone | None
) -> dict[str, Json]:
    """Return the view of one conductor, with the tasks that it has in hand.

    :param claims: up to one more than `most` of them, which are shown.
    :param done: in the last RATED seconds.
    """
    owned = found.shards().get(host, 0)
    return {
        **_place(found, host, owned, 0),
        **_rates(done),
        "stacks_in_progress": None,
        "tasks": [_claim(found, claim) for claim in claims[:most]],
        "more_tasks": len(claims) > most,
    }


def _claim(found: Presence, claim: ClaimInHand) -> dict[str, Json]:
    row = found.rows.get(claim.member.rsplit("/", 1)[0])
    hung = claim.state == TaskState.CANCELLED or (claim.stop_by is not None and claim.stop_by < found.now)
    return {
        "stack": claim.stack_id,
        "stack_name": claim.stack_name,
        "project": claim.project_id,
        "resource": claim.resource,
        "type": claim.type,
        "action": claim.kind,
        "attempt": claim.attempt,
        "claimed_time": exact_or_none(claim.claimed_at),
        "seconds": None if claim.claimed_at is None else round(found.now - claim.claimed_at, 3),
        "expires_time": exact_or_none(claim.expires_at),
        "polled": claim.begun,
        "cancelled": claim.stop_by is not None or claim.state == TaskState.CANCELLED,
        "hung": hung,
        "orphan": row is None or row.incarnation != claim.member,
    }


def counts(found: Mapping[tuple[str, str], int]) -> dict[str, Json]:
    """Return the view of numbers of stacks.

    :param found: by action and status.
    """
    by_status: dict[str, int] = {}
    for (_, status), count in found.items():
        by_status[status] = by_status.get(status, 0) + count
    by_state = {f"{action}_{status}": count for (action, status), count in sorted(found.items())}
    total = sum(found.values())
    return {"total": total, "by_status": dict(sorted(by_status.items())), "by_state": by_state}


def stuck(item: StuckStack) -> dict[str, Json]:
    """Return the view of a stuck stack."""
    return {
        "id": item.id,
        "stack_name": item.name,
        "project": item.project_id,
        "parent": item.parent_id,
        "stack_status": f"{item.action}_{item.status}",
        "causes": sorted(item.causes),
        "since": exact_or_none(item.since),
    }


def quota(usage: QuotaUsage) -> dict[str, int]:
    """Return the view of a quota of a project; -1: no limit."""
    return {"limit": usage.limit, "default": usage.default, "used": usage.used}
