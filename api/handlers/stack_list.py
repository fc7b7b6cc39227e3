"""Handlers that list stacks, or find one by its name."""

import urllib.parse
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ...db.errors import NotFound
from ...db.ids import StackId
from ...db.queries import stack_list
from ...db.queries.stack_list import SORT_KEYS, StackQuery
from ...db.rows import DetailedStack, ListedStack
from ...shapes import Json
from ..collaborators import Columns
from ..errors import bad_request, shortened
from ..operations import Request
from ..reply import Reply, link, quoted, stack_url
from ..stack_names import ARN, named
from ..views import stacks

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


def index(request: Request) -> Reply:
    """Answer GET /stacks."""
    everybody = request.flag("global_tenant")
    if everybody:
        request.auth.authorize(request.caller, "stacks:global_index")
    query = _query(request, everybody=everybody)
    counted = request.flag("with_count")

    def read(conn: Connection) -> tuple[Sequence[ListedStack], list[Columns], int | None]:
        _check_marker(conn, query)
        page = stack_list.list_stacks(conn, query, ListedStack)
        ids = [stack.id for stack in page]
        columns = [columns(conn, ids) for columns in request.services.columns]
        return page, columns, stack_list.count_stacks(conn, query) if counted else None

    page, columns, count = request.read(read)
    views: list[dict[str, Json]] = []
    for stack in page:
        view: dict[str, Json] = {**stacks.stack_summary(request, stack, project=everybody)}
        for of_feature in columns:
            view.update(of_feature.get(stack.id, {}))
        views.append(view)
    body: dict[str, Json] = {"stacks": views}
    if query.limit and len(page) == query.limit:
        body["links"] = [link(_next_page(request, "stacks", page[-1].id), "next")]
    if count is not None:
        body["count"] = count
    return Reply(body)


def detail(request: Request) -> Reply:
    """Answer GET /stacks/detail."""
    query = _query(request, everybody=False)

    def read(conn: Connection) -> Sequence[DetailedStack]:
        _check_marker(conn, query)
        return stack_list.list_stacks(conn, query, DetailedStack)

    return Reply({"stacks": [stacks.stack_detail(request, stack) for stack in request.read(read)]})


def _next_page(request: Request, path: str, marker: str) -> str:
    pairs = [
        (name, value) for name, value in urllib.parse.parse_qsl(request.query_string) if name != "marker"
    ]
    query = urllib.parse.urlencode([*pairs, ("marker", marker)])
    return f"{request.base_url}/v1/{quoted(request.caller.project_id)}/{path}?{query}"


def _query(request: Request, *, everybody: bool) -> StackQuery:
    hidden = () if request.flag("show_hidden") else request.limits.hidden_tags
    project_id = None if everybody else request.caller.project_id
    return StackQuery(
        project_id=project_id,
        filters=_filters(request),
        tags=request.values("tags", split=True),
        tags_any=request.values("tags_any", split=True) or request.values("tags-any", split=True),
        not_tags=request.values("not_tags", split=True) or request.values("not-tags", split=True),
        not_tags_any=request.values("not_tags_any", split=True) or request.values("not-tags-any", split=True),
        hidden_tags=hidden,
        show_deleted=request.flag("show_deleted"),
        show_nested=request.flag("show_nested"),
        limit=request.limit(),
        marker=StackId(request.one("marker") or "") or None,
        sort=_sort(request),
    )


def _check_marker(conn: Connection, query: StackQuery) -> None:
    """Check that the marker of a list is a stack that the list may show.

    :raises Fault: 400.
    """
    if query.marker is None:
        return
    try:
        stack = stack_list.get_listed(conn, query.marker)
    except NotFound:
        stack = None
    if stack is None or query.project_id not in (None, stack.project_id):
        raise bad_request(f'The marker "{shortened(query.marker)}" is not the id of a stack')


def _filters(request: Request) -> dict[str, list[str]]:
    filters: dict[str, list[str]] = {}
    for name, column in _FILTERS.items():
        if values := request.values(name):
            filters.setdefault(column, []).extend(values)
    actions, statuses = request.statuses(*_STATES)
    if statuses:
        filters["status"] = statuses
    if actions:
        filters.setdefault("action", []).extend(actions)
    return filters


def _sort(request: Request) -> list[tuple[str, bool]]:
    """Return columns, and whether each descends.  As in Heat unknown keys have no effect."""
    keys = [key for key in request.values("sort_keys", split=True) if key in SORT_KEYS]
    direction = request.direction()
    if not keys:
        return [("created_at", direction != "asc")]
    return [(SORT_KEYS[key], direction == "desc") for key in keys]


def lookup(request: Request) -> Reply:
    """Answer any method on /stacks/NAME_OR_ID_ORARN and the paths below it: redirect to the full path."""
    name = request.path["stack_name"]
    if (match := ARN.fullmatch(name)) is not None:
        return _redirect(request, _url_of_arn(request, *match.groups()))
    below = [part for part in (request.path.get("below"),) if part]
    found_stack = request.read(lambda conn: named(conn, request, name))
    return _redirect(request, stack_url(request, found_stack, *below))


def _url_of_arn(request: Request, project_id: str, name: str, stack_id: str, below: str | None) -> str:
    """Return the URL of the stack that an ARN names; as in Heat it may be missing, or another project's."""
    parts = ["stacks", name, stack_id, *(below or "").strip("/").split("/")]
    segments = ["v1", project_id, *(part for part in parts if part)]
    return "/".join([request.base_url, *(quoted(urllib.parse.unquote(part)) for part in segments)])


def _redirect(request: Request, url: str) -> Reply:
    """Return a redirect with an object, as Heat does: python-heatclient logs an error for an empty one."""
    target = f"{url}?{request.query_string}" if request.query_string else url
    body = {"code": "302 Found", "title": "Found", "message": f"It is at {target}"}
    return Reply(body, 302, {"Location": target})
