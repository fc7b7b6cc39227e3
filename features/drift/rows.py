"""Rows of what the observation of stacks has found: projects, stacks, and resources that differ."""

import enum
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db import bulk, statements
from ...db.bulk import OneOf
from ...db.ids import ResourceId, StackId, TraversalId
from ...db.schema import tables
from ...db.states import Status
from ...settings import Seconds, setting
from ...shapes import Json, JsonMap

SEARCH = ""
"""The row of ``drift_project`` that is no project's: it is due when new projects are to be searched for."""


@dataclass(frozen=True)
class DriftSettings:
    """The observation of what users change in the cloud behind their stacks."""

    enabled: bool = setting(
        "enabled",
        False,
        "Whether conductors observe drift: resources that are gone from the cloud, or differ from their "
        "templates. Each interval costs lists of each project's resources.",
    )
    interval: Seconds = setting(
        "interval",
        3600.0,
        "Seconds between two observations of a project's stacks, and minimum seconds between two healings "
        "of a stack. A shorter interval detects drift sooner, and sends more requests to the services.",
        least=60.0,
    )
    heal: bool = setting(
        "heal",
        True,
        "Whether stacks whose environments ask for it heal themselves by an update. False: their drift is "
        "only reported.",
    )


class DriftState(enum.StrEnum):
    """The outcome of an observation of a stack."""

    IN_SYNC = "IN_SYNC"  #: all that was observed is as the template has it
    DRIFTED = "DRIFTED"  #: something is gone, or differs
    UNKNOWN = "UNKNOWN"  #: a service did not answer, and nothing else is known to differ
    NOT_CHECKED = "NOT_CHECKED"  #: it was not observed since its last action; never stored


class DriftKind(enum.StrEnum):
    """The ways in which a resource differs."""

    GONE = "GONE"
    CHANGED = "CHANGED"


@dataclass(frozen=True)
class DueProject:
    """A project whose stacks are to be observed; or SEARCH."""

    project_id: str
    shard: int
    due_at: float


@dataclass(frozen=True)
class QuietStack:
    """A stack that does nothing, as it was before the lists of its project were read.

    :ivar reader: the user with whose rights its things are read, by the id: two domains may have users of one
        name.  Where that is not known, it is the tree itself, which shares its readings with nobody; None: no
        user has given rights to the tree.
    """

    id: StackId
    root_id: StackId
    parent_id: StackId | None
    project_id: str
    name: str
    reader: str | None
    action: str
    status: str
    traversal: TraversalId
    created_at: float
    has_sinks: bool


@dataclass(frozen=True)
class ObservedResource:
    """The columns of a resource that its observation needs."""

    id: ResourceId
    stack_id: StackId
    name: str
    type: str
    plugin: str
    physical_id: str
    definition: JsonMap | None
    properties: Json


@dataclass(frozen=True)
class StackDrift:
    """The outcome of the last observation of a stack.

    :ivar reason: why its state is unknown; empty: it is known.
    :ivar since: the moment since which it has the state.
    :ivar healed_at: when it began to heal itself last; None: never.
    """

    stack_id: StackId
    root_id: StackId
    traversal: TraversalId
    state: DriftState
    reason: str
    since: float
    healed_at: float | None = None


@dataclass(frozen=True)
class ResourceDrift:
    """A resource whose thing is gone or differs.

    :ivar since: when that was seen first.
    :ivar properties: ``{name: {"template": value, "cloud": value}}``, secrets masked.
    """

    resource_id: ResourceId
    stack_id: StackId
    kind: DriftKind
    since: float
    properties: JsonMap


# -- projects ---------------------------------------------------------------------------------------


def add_projects(conn: Connection, projects: Iterable[DueProject]) -> None:
    """Store projects that are to be observed; those that are stored stay as they are."""
    for project in projects:
        row = {**vars(project), "observed_at": None}
        conn.execute(statements.insert_or_update(conn, tables.drift_project, row, []))


def with_stacks(conn: Connection, *, after: str, limit: int) -> list[str]:
    """Return the projects that have stacks, in the order of their ids, by one read of an index for each.

    :param after: id of the last project of the page before; empty: the first page.
    """
    s = tables.stack
    following = sa.select(s.c.project_id).where(s.c.project_id > sa.bindparam("last"))
    following = following.order_by(s.c.project_id).limit(1)
    projects: list[str] = []
    last: str | None = after
    while len(projects) < limit and last is not None:
        last = conn.execute(following, {"last": last}).scalar()
        if last is not None:
            projects.append(last)
    return projects


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, str]) -> list[DueProject]:
    """Return the projects that are to be observed now, those that have waited longest first.

    :param after: (due_at, project_id) of the last one of the page before.
    """
    p = tables.drift_project
    (last_at, last_id) = after
    later = sa.or_(p.c.due_at > last_at, p.c.project_id > last_id)
    rows = conn.execute(
        sa.select(p.c.project_id, p.c.shard, p.c.due_at)
        .where(p.c.due_at <= now, p.c.due_at >= last_at, later)
        .order_by(p.c.due_at, p.c.project_id)
        .limit(limit)
    )
    return [DueProject(**row) for row in rows.mappings()]


def take(conn: Connection, project: DueProject, due_at: float) -> bool:
    """Make a project due again later; return False where another conductor has taken it."""
    p = tables.drift_project
    is_same = sa.and_(p.c.project_id == project.project_id, p.c.due_at == project.due_at)
    return conn.execute(sa.update(p).where(is_same).values(due_at=due_at)).rowcount == 1


def observed(conn: Connection, project_id: str, now: float) -> None:
    """Store that the observation of a project's stacks has ended."""
    p = tables.drift_project
    conn.execute(sa.update(p).where(p.c.project_id == project_id).values(observed_at=now))


def forget_project(conn: Connection, project_id: str) -> None:
    """Delete the row of a project, unless it has stacks, deleted ones included."""
    p = tables.drift_project
    s = tables.stack
    has_stacks = sa.exists().where(s.c.project_id == project_id)
    conn.execute(sa.delete(p).where(p.c.project_id == project_id, sa.not_(has_stacks)))


def observed_at(conn: Connection, project_id: str) -> float | None:
    """Return when the last observation of a project's stacks ended; None: there was none."""
    p = tables.drift_project
    return conn.execute(sa.select(p.c.observed_at).where(p.c.project_id == project_id)).scalar()


# -- what is observed --------------------------------------------------------------------------------


def quiet_stacks(
    conn: Connection, project_id: str, *, limit: int, after: tuple[float, str]
) -> list[QuietStack]:
    """Return the stacks of a project that do nothing, nested ones too, the oldest first.

    :param after: (created_at, id) of the last one of the page before.
    """
    s = tables.stack
    (last_at, last_id) = after
    later = sa.or_(s.c.created_at > last_at, s.c.id > last_id)
    is_quiet = sa.and_(s.c.status != Status.IN_PROGRESS, s.c.action != "DELETE", s.c.rollback_at.is_(None))
    reader = sa.func.coalesce(tables.credential.c.user_id, tables.credential.c.root_id).label("reader")
    columns = (s.c[name].label(name) for name in QuietStack.__dataclass_fields__ if name != reader.name)
    rows = conn.execute(
        sa.select(*columns, reader)
        .outerjoin_from(s, tables.credential, tables.credential.c.root_id == s.c.root_id)
        .where(s.c.project_id == project_id, s.c.created_at >= last_at, later)
        .where(is_quiet, s.c.deleted_at.is_(None))
        .order_by(s.c.created_at, s.c.id)
        .limit(limit)
    )
    return [QuietStack(**row) for row in rows.mappings()]


_OBSERVED = (
    sa.select(*(tables.resource.c[name] for name in ObservedResource.__dataclass_fields__))
    .where(
        OneOf(tables.resource.c.stack_id),
        tables.resource.c.id > sa.bindparam("last"),
        OneOf(tables.resource.c.plugin, "plugins"),
        tables.resource.c.status == Status.COMPLETE,
        tables.resource.c.action != "DELETE",
        tables.resource.c.physical_id.is_not(None),
        tables.resource.c.replaced_by.is_(None),
        tables.resource.c.snapshot_id.is_(None),
    )
    .order_by(tables.resource.c.id)
    .limit(sa.bindparam("most"))
)


def to_observe(
    conn: Connection,
    stack_ids: Sequence[StackId],
    plugins: Sequence[str],
    *,
    limit: int,
    after: ResourceId,
) -> list[ObservedResource]:
    """Return the resources of stacks that exist in the cloud, in the order of their ids.

    :param plugins: names of the types.
    :param after: id of the last resource of the page before.
    """
    values = {"ids": stack_ids, "plugins": plugins, "last": after, "most": limit}
    return [ObservedResource(**row) for row in conn.execute(_OBSERVED, values).mappings()]


# -- outcomes ----------------------------------------------------------------------------------------


def of_stacks(conn: Connection, stack_ids: Collection[StackId]) -> dict[StackId, StackDrift]:
    """Return the outcomes that are stored of stacks, by their ids, whatever happened since."""
    d = tables.drift_stack
    rows = conn.execute(sa.select(d).where(d.c.stack_id.in_(sorted(stack_ids)))).mappings()
    return {row["stack_id"]: _stack_drift(dict(row)) for row in rows}


def _stack_drift(row: Mapping[str, typing.Any]) -> StackDrift:
    return StackDrift(**{**row, "state": DriftState(row["state"])})


def differences(conn: Connection, stack_ids: Collection[StackId]) -> list[ResourceDrift]:
    """Return the resources of stacks that differ, in the order of their ids."""
    d = tables.drift_resource
    rows = conn.execute(sa.select(d).where(d.c.stack_id.in_(sorted(stack_ids))).order_by(d.c.resource_id))
    return [ResourceDrift(**{**row, "kind": DriftKind(row["kind"])}) for row in rows.mappings()]


def store(conn: Connection, outcome: StackDrift, resources: Iterable[ResourceDrift]) -> None:
    """Store the outcome of an observation in the place of the one before.

    :param resources: all resources of the stack that differ.
    """
    row = {name: value for name, value in vars(outcome).items() if name != "healed_at"}
    changed = [name for name in row if name != "stack_id"]
    conn.execute(statements.insert_or_update(conn, tables.drift_stack, row, changed))
    d = tables.drift_resource
    conn.execute(sa.delete(d).where(d.c.stack_id == outcome.stack_id))
    bulk.insert(conn, d, [vars(resource) for resource in resources])


def take_healing(conn: Connection, stack_id: StackId, now: float, before: float) -> bool:
    """Store that a stack heals itself; return False where it began to after `before`."""
    d = tables.drift_stack
    may_heal = sa.or_(d.c.healed_at.is_(None), d.c.healed_at <= before)
    healing = sa.update(d).where(d.c.stack_id == stack_id, may_heal).values(healed_at=now)
    return conn.execute(healing).rowcount == 1


@dataclass(frozen=True)
class DriftSummary:
    """The drift of a stack with all stacks nested in it.

    :ivar state: the state of the tree: DRIFTED where one stack is, else UNKNOWN where one is.
    :ivar resources: number of the resources that differ.
    """

    state: DriftState
    resources: int


_ORDER = (DriftState.DRIFTED, DriftState.UNKNOWN, DriftState.IN_SYNC)


def _states_query() -> sa.Select[typing.Any]:
    """Return the query for the states of stacks, and of those nested in them, since their last action."""
    d = tables.drift_stack
    s = tables.stack
    r = tables.drift_resource
    count = sa.select(sa.func.count()).where(r.c.stack_id == d.c.stack_id).scalar_subquery()
    return (
        sa.select(d.c.stack_id, d.c.root_id, d.c.state, count.label("resources"))
        .join(s, sa.and_(s.c.id == d.c.stack_id, s.c.traversal == d.c.traversal))
        .where(sa.or_(OneOf(d.c.stack_id), OneOf(d.c.root_id)), s.c.deleted_at.is_(None))
    )


_STATES = _states_query()


def summaries(conn: Connection, stack_ids: Collection[StackId]) -> dict[StackId, DriftSummary]:
    """Return the drift of stacks, each with its nested ones if it is a root.

    A stack is missing that was not observed since its last action, as far as that is its own.
    """
    if not stack_ids:
        return {}
    ids = set(stack_ids)
    of_tree: dict[StackId, list[tuple[DriftState, int]]] = {}
    for row in conn.execute(_STATES, {"ids": sorted(ids)}).all():
        for stack_id in {row.stack_id, row.root_id} & ids:
            of_tree.setdefault(stack_id, []).append((DriftState(row.state), row.resources))
    return {
        stack_id: DriftSummary(
            min((state for state, _ in parts), key=_ORDER.index), sum(number for _, number in parts)
        )
        for stack_id, parts in of_tree.items()
    }


@dataclass(frozen=True)
class ShownDrift:
    """A resource that differs, for the answer to a user.

    :ivar path: names of the resources that lead to its stack, and its own: ``NESTED/NAME``.
    """

    path: str
    name: str
    type: str
    physical_id: str | None
    stack_id: StackId
    stack_name: str
    kind: DriftKind
    since: float
    properties: JsonMap


@dataclass(frozen=True)
class TreeDrift:
    """The outcome of the observation of a stack and of those nested in it.

    :ivar observed_at: when the last observation of the project ended; None: there was none.
    :ivar reasons: why the state of a part of it is unknown.
    """

    state: DriftState
    observed_at: float | None
    healed_at: float | None
    reasons: Sequence[str]
    resources: Sequence[ShownDrift]


def of_tree(conn: Connection, stack_id: StackId, project_id: str) -> TreeDrift:
    """Return the drift of a stack and of all stacks nested in it, as far as it is up to date."""
    d = tables.drift_stack
    s = tables.stack
    r = tables.resource
    f = tables.drift_resource
    is_current = sa.and_(s.c.id == d.c.stack_id, s.c.traversal == d.c.traversal)
    rows = conn.execute(
        sa.select(d, s.c.name).join(s, is_current).where(d.c.stack_id.in_(statements.below(stack_id)))
    ).mappings()
    names: dict[StackId, str] = {}
    outcomes: list[StackDrift] = []
    for row in rows:
        names[row["stack_id"]] = row["name"]
        outcomes.append(_stack_drift({key: value for key, value in row.items() if key != "name"}))
    differences = conn.execute(
        sa.select(f, r.c.name, r.c.type, r.c.physical_id)
        .join(r, r.c.id == f.c.resource_id)
        .where(f.c.stack_id.in_(sorted(names)))
        .order_by(f.c.stack_id, r.c.name)
    ).mappings()
    paths = statements.paths(conn, stack_id, names)
    resources = [
        ShownDrift(
            path=f"{paths.get(row['stack_id'], '')}{row['name']}",
            name=row["name"],
            type=row["type"],
            physical_id=row["physical_id"],
            stack_id=row["stack_id"],
            stack_name=names[row["stack_id"]],
            kind=DriftKind(row["kind"]),
            since=row["since"],
            properties=row["properties"],
        )
        for row in differences
    ]
    states = [outcome.state for outcome in outcomes]
    return TreeDrift(
        state=min(states, key=_ORDER.index, default=DriftState.NOT_CHECKED),
        observed_at=observed_at(conn, project_id),
        healed_at=max((one.healed_at for one in outcomes if one.healed_at is not None), default=None),
        reasons=sorted({outcome.reason for outcome in outcomes if outcome.reason}),
        resources=resources,
    )
