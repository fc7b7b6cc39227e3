"""Handlers of the resources of a stack."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ...db import resources
from ...db.errors import NotFound
from ...db.ids import ResourceId, StackId
from ...db.queries import nesting, stack_list
from ...db.rows import ListedStack, Resource, Stack
from ...db.states import Status
from ...db.work.breakpoints import HeldTask, held_of
from ...sealing.stored import masked, metadata_in_clear
from ...shapes import Json
from .. import parse
from ..errors import bad_request, resource_not_found
from ..operations import Request
from ..reply import Reply
from ..request import shortened
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
    fits = _filter(request)
    depth = request.number("nested_depth") or 0
    detailed = request.flag("with_detail")

    def read(conn: Connection) -> _Tree:
        stack = request.find_stack(conn)
        rows = resources.of_tree(conn, stack, depth, values=detailed)
        others = {item.stack_id for item, _ in rows} - {stack.id}
        homes = {stack.id: stack, **stack_list.get_many(conn, others)}
        return _tree(conn, request, stack, rows, homes)

    tree = request.read(read)
    required = _required_by([item for item, _ in tree.rows])
    summaries = []
    for item, stack_name in tree.rows:
        if item.stack_id in tree.homes and fits(item):
            home = tree.homes[item.stack_id]
            needed_by = required.get(item.id, ())
            view = views.resource_summary(
                request, home, item, needed_by, tree.held.get(item.id), tree.nesting
            )
            if depth:
                view["stack_name"] = stack_name
            summaries.append({**view, **_values(request, tree.stack, item)} if detailed else view)
    return Reply({"resources": summaries})


@dataclass(frozen=True)
class _Tree:
    """Resources of a stack and of its nested stacks.

    :ivar rows: the resources, each with the name of its stack.
    :ivar homes: the stacks of the resources, by id.
    :ivar held: the breakpoints that hold resources, by the resource's id.
    :ivar nesting: the nesting of all these stacks.
    """

    stack: Stack
    rows: Sequence[tuple[Resource, str]]
    homes: Mapping[StackId, ListedStack]
    held: Mapping[ResourceId, HeldTask]
    nesting: views.Nesting


def _tree(
    conn: Connection,
    request: Request,
    stack: Stack,
    rows: Sequence[tuple[Resource, str]],
    homes: Mapping[StackId, ListedStack],
) -> _Tree:
    """Return the tree with the data for views of its stacks; without nested stacks it costs no statement."""
    if any(item.status == Status.IN_PROGRESS for item, _ in rows):
        explained = request.services.guests.explained(conn, [item for item, _ in rows])
        rows = [(item, name) for item, (_, name) in zip(explained, rows, strict=True)]
    working = [home.traversal for home in homes.values() if home.status == Status.IN_PROGRESS]
    held = {item.resource_id: item for traversal in working for item in held_of(conn, traversal)}
    nested = [home.id for home in homes.values() if home.parent_id is not None]
    is_nested = request.services.registry.is_nested
    children = [StackId(item.physical_id) for item, _ in rows if item.physical_id and is_nested(item.plugin)]
    around = views.Nesting(
        parents=nesting.parent_resources(conn, nested) if nested else {},
        children=nesting.names(conn, children) if children else {},
    )
    return _Tree(stack, rows, homes, held, around)


def _required_by(items: Sequence[Resource]) -> dict[int, list[str]]:
    required: dict[int, list[str]] = {}
    for item in items:
        for needed in item.requires:
            required.setdefault(needed, []).append(item.name)
    return required


def _filter(request: Request) -> Callable[[Resource], bool]:
    """Return the filter that the query asks for.

    :raises Fault: 400, a parameter is not known.
    """
    if unknown := sorted(set(request.query) - INDEX_QUERY):
        raise bad_request(
            f"Invalid filter parameters {shortened(', '.join(unknown))}; "
            f"known are: {', '.join(sorted([*_COLUMNS, 'status']))}"
        )
    filters = {column: request.values(name) for name, column in _COLUMNS.items()}
    actions, filters["status"] = request.statuses("status")
    filters["action"] = [*filters["action"], *actions]
    limits = {column: values for column, values in filters.items() if values}

    def fits(item: Resource) -> bool:
        return all(str(getattr(item, column) or "") in values for column, values in limits.items())

    return fits


def _values(request: Request, stack: Stack, item: Resource) -> dict[str, Json]:
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

    def read(conn: Connection) -> tuple[_Tree, Resource]:
        stack, item = _find(conn, request)
        siblings = resources.of_tree(conn, stack, 0)
        if item.status == Status.IN_PROGRESS:
            [item] = request.services.guests.explained(conn, [item])
        return _tree(conn, request, stack, siblings, {stack.id: stack}), item

    tree, item = request.read(read)
    stack = tree.stack
    required = [other.name for other, _ in tree.rows if item.id in other.requires]
    view = views.resource_summary(request, stack, item, required, tree.held.get(item.id), tree.nesting)
    detail = {**view, **_values(request, stack, item)}
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
        request.services.breakpoints.clear(stack, item.name, request.body["unset_hook"])
    else:
        request.services.signals.signal(stack, item.name, request.body)
    return Reply(None, 200)


def mark_unhealthy(request: Request) -> Reply:
    """Answer PATCH …/resources/NAME_OR_PHYSICAL_ID."""
    body = request.valid(MARK_UNHEALTHY)
    stack = request.stack()
    name = request.path["resource_name"]
    try:
        request.services.signals.mark_unhealthy(
            stack,
            name,
            unhealthy=parse.boolean(body["mark_unhealthy"], "mark_unhealthy", default=False),
            reason=body.get("resource_status_reason") or "",
        )
    except NotFound as error:
        raise resource_not_found(name, stack.name) from error
    return Reply(None, 200)
