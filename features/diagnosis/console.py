"""Handlers of the views that consoles have of a stack, beyond Heat's routes."""

import functools

from sqlalchemy.engine import Connection

from ...api.errors import not_found
from ...api.etags import has_latest
from ...api.operations import Request
from ...api.policy import SHOWS_HOSTS
from ...api.reply import Reply
from ...db.rows import Stack
from ...db.statements import LEVELS
from . import graphs
from .graph_views import SharedGraph
from .presence import fleet_by_reports
from .report import StackReport, as_json, read_report
from .services import ConsoleServices

INSPECT_QUERY = frozenset({"limit"})
MOST_RESOURCES = 10_000
"""Resources that a graph shows at most."""
TASKS = 20
MOST_TASKS = 200
"""Tasks of an inspection where the query says nothing, and at most."""


def graph(request: Request) -> Reply:
    """Answer GET …/graph: 304 where the caller has the present change number already."""
    stack_id = request.path["stack_id"]
    depth = min(request.number("nested_depth") or 0, LEVELS)
    read = functools.partial(_read_graph, request, depth)
    graph = request.services.of(ConsoleServices).graphs.get((stack_id, depth), read)
    if not request.caller.may_see(graph.stack.project_id) or graph.stack.name != request.path["stack_name"]:
        raise not_found("Stack", f"{request.path['stack_name']}/{stack_id}")
    tag = f'"{graph.change}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "X-Auth-Token"}
    if has_latest(request.headers.get("IF-NONE-MATCH", ""), tag) or request.one("since") == graph.change:
        return Reply(None, 304, headers)
    text = graph.with_hosts if request.may(SHOWS_HOSTS) else graph.without_hosts
    return Reply(headers=headers, text=text)


def _read_graph(request: Request, depth: int, before: SharedGraph | None) -> SharedGraph:
    """Read the graph, unless one statement shows that nothing has changed."""

    def read(conn: Connection) -> SharedGraph:
        stack = request.find_stack(conn)
        version = _version(conn, stack)
        if before is not None and before.version == version and not before.graph.in_progress:
            return before
        rows = graphs.read(conn, stack.id, deepest=stack.depth + depth, most=MOST_RESOURCES)
        return SharedGraph(stack, rows, version)

    return request.read(read)


def _version(conn: Connection, stack: Stack) -> tuple[object, ...]:
    of_stack = (stack.traversal, stack.action, stack.status, stack.updated_at, stack.deleted_at)
    return (*of_stack, graphs.last_event(conn, stack.id))


def inspect(request: Request) -> Reply:
    """Answer GET …/inspect."""
    limit = min(request.number("limit") or TASKS, MOST_TASKS)
    hosts = request.may(SHOWS_HOSTS)
    console = request.services.of(ConsoleServices)
    group = console.group()

    def read(conn: Connection) -> StackReport:
        stack = request.find_stack(conn)
        fleet = fleet_by_reports(console.presence(conn, group, request.services.clock()), console.fleet)
        return read_report(conn, stack, fleet, limit=limit, hosts=hosts)

    return Reply(as_json(request.read(read)))
