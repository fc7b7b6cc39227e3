"""Handlers of the resources of a stack."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy.engine import Connection

from ...db import resources
from ...db.errors import NotFound
from ...db.ids import ResourceId
from ...db.queries import nesting, stack_list
from ...db.rows import ListedResource, Resource, Stack
from ...db.states import Status
from ...db.work.breakpoints import held_of
from ...engine.breakpoints import clear_breakpoint
from ...engine.signals import send_signal, set_health
from ...sealing.stored import masked, metadata_in_clear
from ...shapes import Json
from ..errors import bad_request, resource_not_found, shortened
from ..operations import Request
from ..reply import Reply, listing, stack_url, url_of
from ..request import boolean
from ..schemas import MARK_UNHEALTHY
from ..views import resources as views

_COLUMNS = {
    "name": "name",
    "type": "type",
    "action": "action",
    "id": "id",
    "physical_resource_id": "physical_id",
}
_OPTIONS = {"nested_depth", "with_detail"}
INDEX_QUERY = frozenset({*_COLUMNS, *_OPTIONS, "status"})
SHOW_QUERY = frozenset({"with_attr"})


def index(request: Request) -> Reply:
    """Answer GET …/resources."""
    return listing("resources", list_views(request))


def list_views(request: Request) -> Iterator[dict[str, Json]]:
    """Return the views of the resources that a request lists; they are read at once, and made one by one."""
    limits = _limits(request)
    depth = request.number("nested_depth") or 0
    detailed = request.flag("with_detail")

    def read(conn: Connection) -> tuple[Stack, Sequence[ListedResource], views.Surroundings]:
        stack = request.find_stack(conn)
        rows = resources.of_tree(conn, stack, depth, details=detailed)
        return stack, rows, _surroundings(conn, request, stack, rows)

    stack, rows, surroundings = request.read(read)

    def view_of(item: ListedResource) -> dict[str, Json]:
        view = views.resource_summary(item, surroundings)
        if depth:
            view["stack_name"] = item.stack_name
        return view | _values(request, stack, item) if detailed else view

    listed = (item for item in rows if item.stack_id in surroundings.stacks)
    if limits:
        listed = (item for item in listed if _fits(item, limits))
    return map(view_of, listed)


def _surroundings(
    conn: Connection, request: Request, stack: Stack, rows: Sequence[ListedResource]
) -> views.Surroundings:
    """Return the values of the views of a tree's resources; without nested stacks they cost no statement.

    :param stack: the root of the tree.
    """
    required_by = _required_by(rows)
    others = {item.stack_id for item in rows} - {stack.id}
    homes = {stack.id: stack, **(stack_list.get_many(conn, others) if others else {})}
    urls = {home.id: stack_url(request, home) for home in homes.values()}
    is_busy = any(item.status == Status.IN_PROGRESS for item in rows)
    working = [home.traversal for home in homes.values() if home.status == Status.IN_PROGRESS]
    nested = [home.id for home in homes.values() if home.parent_id is not None]
    is_nested = request.services.registry.is_nested
    parents = [item for item in rows if is_nested(item.plugin)]
    children = nesting.children(conn, homes, [item.id for item in parents]) if parents else {}
    return views.Surroundings(
        required_by=required_by,
        stacks=urls,
        parents=nesting.parent_resources(conn, nested) if nested else {},
        children={
            owner: url_of(request, stack.project_id, name, child) for owner, (child, name) in children.items()
        },
        held={item.resource_id: item for traversal in working for item in held_of(conn, traversal)},
        reasons=request.services.guests.reasons(conn, rows) if is_busy else {},
    )


def _required_by(items: Iterable[ListedResource]) -> dict[ResourceId, list[str]]:
    required: dict[ResourceId, list[str]] = {}
    for item in items:
        for needed in item.requires:
            required.setdefault(needed, []).append(item.name)
    return required


def _limits(request: Request) -> dict[str, list[str]]:
    """Return the columns that the query filters by, each with the values that a resource may have.

    :raises Fault: 400, a parameter is not known.
    """
    if unknown := sorted(set(request.query) - INDEX_QUERY):
        raise bad_request(
            f"Invalid filter parameters {shortened(', '.join(unknown))}; "
            f"known: {', '.join(sorted([*_COLUMNS, 'status']))}"
        )
    filters = {column: request.values(name) for name, column in _COLUMNS.items()}
    actions, filters["status"] = request.statuses("status")
    filters["action"] = [*filters["action"], *actions]
    return {column: values for column, values in filters.items() if values}


def _fits(item: ListedResource, limits: Mapping[str, Sequence[str]]) -> bool:
    return all(str(getattr(item, column) or "") in values for column, values in limits.items())


def _values(request: Request, stack: Stack, item: Resource | ListedResource) -> dict[str, Json]:
    return {
        "attributes": views.attributes(item, views.unsealer(request.sealer_of(stack))),
        "description": (item.definition or {}).get("description", ""),
        "properties": masked(item.properties or {}),
    }


def _find(conn: Connection, request: Request) -> tuple[Stack, Resource]:
    stack = request.find_stack(conn)
    name = request.path["resource_name"]
    try:
        return stack, resources.by_name(conn, stack.id, name)
    except NotFound as error:
        raise resource_not_found(name, stack.name) from error


def show(request: Request) -> Reply:
    """Answer GET …/resources/NAME."""

    def read(conn: Connection) -> tuple[Stack, Resource, views.Surroundings]:
        stack, item = _find(conn, request)
        siblings = resources.of_tree(conn, stack, 0)
        return stack, item, _surroundings(conn, request, stack, siblings)

    stack, item, surroundings = request.read(read)
    detail = {**views.resource_summary(item, surroundings), **_values(request, stack, item)}
    for name in request.values("with_attr"):
        detail["attributes"].setdefault(name, None)
    return Reply({"resource": detail})


def metadata(request: Request) -> Reply:
    """Answer GET …/resources/NAME/metadata; a server's have the configs that its guest applies."""

    def read(conn: Connection) -> tuple[Stack, Resource, Sequence[Json]]:
        stack, item = _find(conn, request)
        return stack, item, request.services.guests.deployments(conn, stack, item)

    stack, item, deployments = request.read(read)
    clear = metadata_in_clear(item, views.unsealer(request.sealer_of(stack)))
    return Reply({"metadata": {**clear, "deployments": deployments} if deployments else clear})


def signal(request: Request) -> Reply:
    """Answer POST …/resources/NAME/signal."""
    if request.body is not None and not isinstance(request.body, Mapping):
        raise bad_request("The body of a signal must be a JSON object, or empty")
    stack, item = request.read(lambda conn: _find(conn, request))
    if request.body is not None and "unset_hook" in request.body:
        # As in Heat, these details clear a breakpoint and are not for the resource.
        clear_breakpoint(request.services.context, stack, item.name, request.body["unset_hook"])
    else:
        send_signal(request.services.context, stack, item.name, request.body)
    return Reply(None, 200)


def mark_unhealthy(request: Request) -> Reply:
    """Answer PATCH …/resources/NAME_OR_PHYSICAL_ID."""
    body = request.valid(MARK_UNHEALTHY)
    stack = request.stack()
    name = request.path["resource_name"]
    try:
        set_health(
            request.services.context,
            stack,
            name,
            unhealthy=boolean(body["mark_unhealthy"], "mark_unhealthy", default=False),
            reason=body.get("resource_status_reason") or "",
        )
    except NotFound as error:
        raise resource_not_found(name, stack.name) from error
    return Reply(None, 200)
