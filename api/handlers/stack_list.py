"""Handlers that list stacks, or find one by its name."""

import typing
import urllib.parse
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ...db.errors import NotFound
from ...db.ids import StackId
from ...db.queries import stack_list
from ...db.queries.stack_list import SORT_KEYS, StackQuery
from ...db.rows import DetailedStack, ListedStack
from ..context import Request
from ..errors import bad_request
from ..request import Reply, link, quoted, shortened, stack_url
from ..stack_names import ARN, named
from ..views import stacks

Json = typing.Any

_FILTERS = {
    "id": "id",
    "name": "name",
    "stack_name": "name",
    "action": "action",
    "stack_action": "action",
    "stack_status_reason": "reason",
    "tenant": "project_id",
    "stack_user_project_id": "project_id",
    "username": "owner",
    "stack_owner": "owner",
    "owner_id": "parent_id",
    "parent": "parent_id",
}
_STATES = ("status", "stack_status")
_TAGS = ("tags", "tags_any", "tags-any", "not_tags", "not-tags", "not_tags_any", "not-tags-any")
_OPTIONS = ("limit", "marker", "sort_keys", "sort_dir", "show_hidden", "show_deleted", "show_nested")
DETAIL_QUERY = frozenset({*_FILTERS, *_STATES, *_TAGS, *_OPTIONS})
INDEX_QUERY = DETAIL_QUERY | {"global_tenant", "with_count"}


def index(call: Request) -> Reply:
    """Answer GET /stacks."""
    everybody = call.flag("global_tenant")
    if everybody:
        call.auth.authorize(call.caller, "stacks:global_index")
    query, counted = _query(call, everybody=everybody), call.flag("with_count")

    def read(conn: Connection) -> tuple[Sequence[ListedStack], int | None]:
        _check_marker(conn, query)
        found = stack_list.list_stacks(conn, query, ListedStack)
        return found, stack_list.count_stacks(conn, query) if counted else None

    found, count = call.read(read)
    shown = [stacks.stack_summary(call, stack, project=everybody) for stack in found]
    body: dict[str, Json] = {"stacks": shown}
    if query.limit and len(found) == query.limit:
        body["links"] = [link(_next_page(call, "stacks", found[-1].id), "next")]
    if count is not None:
        body["count"] = count
    return Reply(body)


def detail(call: Request) -> Reply:
    """Answer GET /stacks/detail."""
    query = _query(call, everybody=False)

    def read(conn: Connection) -> Sequence[DetailedStack]:
        _check_marker(conn, query)
        return stack_list.list_stacks(conn, query, DetailedStack)

    return Reply({"stacks": [stacks.stack_detail(call, stack) for stack in call.read(read)]})


def _next_page(call: Request, path: str, marker: str) -> str:
    pairs = [(name, value) for name, value in urllib.parse.parse_qsl(call.query_string) if name != "marker"]
    query = urllib.parse.urlencode([*pairs, ("marker", marker)])
    return f"{call.base_url}/v1/{quoted(call.caller.project_id)}/{path}?{query}"


def _query(call: Request, *, everybody: bool) -> StackQuery:
    hidden = () if call.flag("show_hidden") else call.limits.hidden_tags
    project_id = None if everybody else call.caller.project_id
    return StackQuery(
        project_id=project_id,
        filters=_filters(call),
        tags=call.values("tags", split=True),
        tags_any=call.values("tags_any", split=True) or call.values("tags-any", split=True),
        not_tags=call.values("not_tags", split=True) or call.values("not-tags", split=True),
        not_tags_any=call.values("not_tags_any", split=True) or call.values("not-tags-any", split=True),
        hidden_tags=hidden,
        show_deleted=call.flag("show_deleted"),
        show_nested=call.flag("show_nested"),
        limit=call.limit(),
        marker=StackId(call.one("marker") or "") or None,
        sort=_sort(call),
    )


def _check_marker(conn: Connection, query: StackQuery) -> None:
    """Check that the marker of a list is a stack that the list may show.

    :raises Fault: 400.
    """
    if query.marker is None:
        return
    try:
        found = stack_list.get_listed(conn, query.marker)
    except NotFound:
        found = None
    if found is None or query.project_id not in (None, found.project_id):
        raise bad_request(f'The marker "{shortened(query.marker)}" is not the id of a stack')


def _filters(call: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, column in _FILTERS.items():
        if values := call.values(name):
            found.setdefault(column, []).extend(values)
    actions, statuses = call.statuses(*_STATES)
    if statuses:
        found["status"] = statuses
    if actions:
        found.setdefault("action", []).extend(actions)
    return found


def _sort(call: Request) -> list[tuple[str, bool]]:
    """Return columns, and whether each descends.  As in Heat unknown keys have no effect."""
    keys = [key for key in call.values("sort_keys", split=True) if key in SORT_KEYS]
    direction = call.direction()
    if not keys:
        return [("created_at", direction != "asc")]
    return [(SORT_KEYS[key], direction == "desc") for key in keys]


def lookup(call: Request) -> Reply:
    """Answer any method on /stacks/NAME_OR_ID_ORARN and what lies below it: redirect to the full path."""
    name = call.path["stack_name"]
    if (found := ARN.fullmatch(name)) is not None:
        return _redirect(call, _url_of_arn(call, *found.groups()))
    below = [part for part in (call.path.get("below"),) if part]
    found_stack = call.read(lambda conn: named(conn, call, name))
    return _redirect(call, stack_url(call, found_stack, *below))


def _url_of_arn(call: Request, project_id: str, name: str, stack_id: str, below: str | None) -> str:
    """Return the URL of what an ARN names; as in Heat it need not exist, and may be another project's."""
    parts = ["stacks", name, stack_id, *(below or "").strip("/").split("/")]
    given = ["v1", project_id, *(part for part in parts if part)]
    return "/".join([call.base_url, *(quoted(urllib.parse.unquote(part)) for part in given)])


def _redirect(call: Request, url: str) -> Reply:
    """Return a redirect with an object, as Heat does: python-heatclient logs an error for an empty one."""
    target = f"{url}?{call.query_string}" if call.query_string else url
    body = {"code": "302 Found", "title": "Found", "message": f"It is at {target}"}
    return Reply(body, 302, {"Location": target})
