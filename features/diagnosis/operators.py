"""Handlers for operators: the ring, its conductors, and the stacks of all projects."""

import functools
import typing

from sqlalchemy.engine import Connection

from ...api.errors import Fault, bad_request, not_found
from ...api.operations import Request
from ...api.reply import Reply
from ...api.schemas import DRAIN, RING_PLAN
from ...db import conductors, stacks
from ...db.conductors import ACTIVE, DRAINING, StateRequest
from ...db.errors import NotFound
from ...db.queries import overview, stack_list
from ...db.queries.stack_list import StackQuery
from ...observe.instants import iso
from ...ring.changes import WrongChange
from ...rpc.contract import WORK_TOPIC
from ...shapes import Json
from . import operator_views as views
from .presence import Presence
from .ring import plan_change
from .services import ConsoleServices

RING_QUERY = frozenset({"shards"})
STUCK_QUERY = frozenset({"limit"})
MOST_CLAIMS = 200
"""Tasks in hand of a conductor that are shown at most."""
STUCK = 100
MOST_STUCK = 1000
"""Stuck stacks that are read for each cause where the query says nothing, and at most."""


def _presence(request: Request, read: typing.Callable[[Connection, Presence], Json]) -> Json:
    """Return the view of the conductors, read in one transaction.

    The group is asked before: it may take long to answer.
    """
    console = request.services.of(ConsoleServices)
    group = console.group()
    return request.read(lambda conn: read(conn, console.presence(conn, group, request.services.clock())))


def services(request: Request) -> Reply:
    """Answer GET /services."""
    group = request.services.of(ConsoleServices).group()
    views = [
        {
            "id": item.incarnation or item.host,
            "binary": "stoker-conductor",
            "hostname": item.host,
            "host": item.host,
            "engine_id": item.incarnation,
            "topic": WORK_TOPIC,
            "report_interval": 1,
            "status": "unknown" if isinstance(group, str) else "up" if item.host in group.hosts else "down",
            "created_at": iso(item.started_at),
            "updated_at": iso(item.heartbeat_at),
            "deleted_at": None,
            "state": item.state,
            "shards_owned": item.shards_owned,
        }
        for item in request.services.database.read(conductors.list_all)
    ]
    return Reply({"services": views})


def ring(request: Request) -> Reply:
    """Answer GET /admin/ring."""
    shards = request.flag("shards")

    def read(conn: Connection, presence: Presence) -> Json:
        done = overview.work_done(conn, presence.now - views.RATED)
        return views.ring(presence, stacks.in_progress_by_shard(conn), done, shards=shards)

    return Reply({"ring": _presence(request, read)})


def plan(request: Request) -> Reply:
    """Answer POST /admin/ring/plan."""
    change = request.valid(RING_PLAN)
    shards = request.flag("shards")

    def read(conn: Connection, presence: Presence) -> Json:
        if presence.group is None:
            raise Fault(503, "ServiceUnavailable", str(presence.unsettled()))
        try:
            planned = plan_change(presence.ring, change, stacks.in_progress_by_shard(conn))
        except WrongChange as error:
            raise bad_request(str(error)) from error
        return views.plan(planned, shards=shards)

    return Reply({"plan": _presence(request, read)})


def drain(request: Request) -> Reply:
    """Answer POST /admin/ring/HOST/drain."""
    body = {} if request.body is None else request.valid(DRAIN)
    return _request_state(request, DRAINING, body.get("reason") or "")


def undrain(request: Request) -> Reply:
    """Answer POST /admin/ring/HOST/undrain."""
    return _request_state(request, ACTIVE)


def rebalance(request: Request) -> Reply:
    """Answer POST /admin/ring/rebalance: all conductors read the ring's members now, and report."""
    request.services.poll_ring()
    return Reply(None, 202)


def _request_state(request: Request, state: str, reason: str = "") -> Reply:
    host = request.path["host"]
    state_request = StateRequest(state, request.caller.user or "", request.services.clock(), reason)
    try:
        request.services.database.write(lambda conn: conductors.request_state(conn, host, state_request))
    except NotFound as error:
        raise not_found("Conductor", host) from error
    return Reply({"host": host, **views.state_request(state_request)}, 202)


def conductor(request: Request) -> Reply:
    """Answer GET /admin/conductors/HOST."""
    host = request.path["host"]

    def read(conn: Connection, presence: Presence) -> Json:
        if host not in presence.hosts:
            raise not_found("Conductor", host)
        claims = overview.claims_of(conn, host, limit=MOST_CLAIMS + 1)
        done = overview.work_done(conn, presence.now - views.RATED).get(host)
        return views.conductor(presence, host, claims, MOST_CLAIMS, done)

    return Reply({"conductor": _presence(request, read)})


def stuck_stacks(request: Request) -> Reply:
    """Answer GET /admin/stuck_stacks."""
    limit = min(request.number("limit") or STUCK, MOST_STUCK)

    def read(conn: Connection, presence: Presence) -> Json:
        alive = None if presence.group is None else {row.incarnation for row in presence.alive}
        return overview.stuck_stacks(conn, now=presence.now, alive=alive, limit=limit)

    return Reply({"stuck_stacks": [views.stuck(item) for item in _presence(request, read)]})


def counts(request: Request) -> Reply:
    """Answer GET /PROJECT/stack_counts."""
    return _counted(request, request.path["tenant_id"])


def counts_everywhere(request: Request) -> Reply:
    """Answer GET /admin/stack_counts."""
    return _counted(request, None)


def _counted(request: Request, project_id: str | None) -> Reply:
    hidden = () if request.flag("show_hidden") else tuple(request.limits.hidden_tags)
    query = StackQuery(project_id, show_nested=request.flag("show_nested"), hidden_tags=hidden)
    read = functools.partial(stack_list.count_by_state, query=query)
    key = (project_id, query.show_nested, hidden)
    counts = request.services.of(ConsoleServices).counts.get(key, lambda before: request.read(read))
    return Reply({"stack_counts": views.counts(counts)})
