"""Views of the ring, of conductors and of the stacks of all projects, for operators."""

from collections.abc import Mapping, Sequence

from ...db.conductors import ConductorRecord, StateRequest
from ...db.queries.overview import ClaimInHand, StuckStack, WorkDone
from ...db.states import TaskState
from ...observe.instants import exact_or_none
from ...ring.hashring import assign
from ...shapes import Json
from .presence import Presence
from .ring import RingChange, health, stacks_by_owner, sums

RATED = 10.0
"""Seconds over which the rates of conductors are averages."""


def ring(
    presence: Presence, by_shard: Mapping[int, int], done: Mapping[str, WorkDone], *, shards: bool
) -> dict[str, Json]:
    """Return the view of the ring.

    :param by_shard: the number of stacks in progress, by shard.
    :param done: the work that was done in the last RATED seconds, by host.
    :param shards: whether the owner of each shard is in the view.
    """
    owned = presence.shards()
    stacks = stacks_by_owner(presence.ring, by_shard)
    view: dict[str, Json] = {
        "time": exact_or_none(presence.now),
        "settled": presence.unsettled() is None,
        "health": health(presence),
        "sums": sums(presence, sum(by_shard.values())),
        "version": presence.ring.version,
        "shard_count": presence.shard_count,
        "stacks_in_progress": sum(by_shard.values()),
        "conductors": [
            _place(presence, host, owned.get(host, 0), stacks[host]) | _rates(done.get(host))
            for host in presence.hosts
        ],
    }
    if shards:
        owners = assign(presence.ring).hosts if presence.ring.owners else []
        hosts = sorted(set(owners))
        number = {host: index for index, host in enumerate(hosts)}
        view |= {"owners": hosts, "shards": [number[host] for host in owners]}
    return view


def _place(presence: Presence, host: str, owned: int, stacks: int) -> dict[str, Json]:
    row = presence.rows.get(host)
    weights = {member.host: member.weight for member in presence.members}
    return {
        "host": host,
        "state": presence.state(host),
        "alive": presence.is_alive(host),
        "weight": weights.get(host, 1.0 if row is None else row.weight),
        "shards": owned,
        "share": round(owned / presence.shard_count, 4),
        "stacks_in_progress": None if presence.group is None else stacks,
        **report(row),
    }


def _rates(done: WorkDone | None) -> dict[str, Json]:
    done = done or WorkDone()
    rates = {"tasks_per_second": done.tasks, "events_per_second": done.events}
    return {name: round(count / RATED, 1) for name, count in rates.items()}


def report(row: ConductorRecord | None) -> dict[str, Json]:
    """Return the last report of a conductor; nulls where it has not reported yet."""
    request = state_request(StateRequest() if row is None else row.request)
    names = ("incarnation", "threads", "threads_busy", "ring_version", "rpc_version")
    return {
        **{name: None if row is None else getattr(row, name) for name in names},
        **(request if row is not None else dict.fromkeys(request)),
        "state_reported": None if row is None else row.state,
        "shards_reported": None if row is None else row.shards_owned,
        "threads_hung": None if row is None else row.threads_written_off,
        "schema": None if row is None else row.schema_number,
        "clock_ahead": None if row is None else row.clock_ahead,
        "started_time": None if row is None else exact_or_none(row.started_at),
        "reported_time": None if row is None else exact_or_none(row.heartbeat_at),
    }


def state_request(request: StateRequest) -> dict[str, Json]:
    """Return the view of the state that an operator has requested of a conductor."""
    return {
        "wanted": request.state,
        "wanted_by": request.by or None,
        "wanted_time": exact_or_none(request.at),
        "wanted_reason": request.reason or None,
    }


def plan(change: RingChange, *, shards: bool) -> dict[str, Json]:
    """Return the view of a plan.

    :param shards: whether each shard that moves is in the view.
    """
    view: dict[str, Json] = {
        "summary": change.summary(),
        "warnings": change.warnings(),
        "moved_shards": len(change.moves.moves),
        "moved_share": round(change.share, 4),
        "moved_stacks_in_progress": change.stacks,
        "shard_count": change.shard_count,
        "before": dict(sorted(change.before.items())),
        "after": dict(sorted(change.after.items())),
        "moves": [
            {"from": source, "to": target, "shards": count}
            for (source, target), count in sorted(change.moves.counts.items())
        ],
    }
    if shards:
        moves = sorted(change.moves.moves.items())
        view["shards"] = {str(shard): target for shard, (_, target) in moves}
        view["former_owners"] = {str(shard): source for shard, (source, _) in moves}
    return view


def conductor(
    presence: Presence, host: str, claims: Sequence[ClaimInHand], most: int, done: WorkDone | None
) -> dict[str, Json]:
    """Return the view of one conductor, with the tasks that it has in hand.

    :param claims: the claims, up to one more than the `most` that are shown.
    :param done: the work that was done in the last RATED seconds.
    """
    owned = presence.shards().get(host, 0)
    return {
        **_place(presence, host, owned, 0),
        **_rates(done),
        "stacks_in_progress": None,
        "tasks": [_claim(presence, claim) for claim in claims[:most]],
        "more_tasks": len(claims) > most,
    }


def _claim(presence: Presence, claim: ClaimInHand) -> dict[str, Json]:
    row = presence.rows.get(claim.member.rsplit("/", 1)[0])
    hung = claim.state == TaskState.CANCELLED or (claim.stop_by is not None and claim.stop_by < presence.now)
    return {
        "stack": claim.stack_id,
        "stack_name": claim.stack_name,
        "project": claim.project_id,
        "resource": claim.resource,
        "type": claim.type,
        "action": claim.kind,
        "attempt": claim.attempt,
        "claimed_time": exact_or_none(claim.claimed_at),
        "seconds": None if claim.claimed_at is None else round(presence.now - claim.claimed_at, 3),
        "expires_time": exact_or_none(claim.expires_at),
        "polled": claim.begun,
        "cancelled": claim.stop_by is not None or claim.state == TaskState.CANCELLED,
        "hung": hung,
        "orphan": row is None or row.incarnation != claim.member,
    }


def counts(totals: Mapping[tuple[str, str], int]) -> dict[str, Json]:
    """Return the view of numbers of stacks.

    :param totals: the numbers of stacks by action and status.
    """
    by_status: dict[str, int] = {}
    for (_, status), count in totals.items():
        by_status[status] = by_status.get(status, 0) + count
    by_state = {f"{action}_{status}": count for (action, status), count in sorted(totals.items())}
    total = sum(totals.values())
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
