"""The handlers and the routes of quotas."""

import functools

from ...api.described import Description
from ...api.errors import bad_request
from ...api.operations import Operation, Request, Routes
from ...api.paths import ADMIN, TENANT
from ...api.reply import Reply
from ...engine.quotas import LARGEST, UNLIMITED, QuotaName, Quotas
from ...shapes import Json
from . import views
from .operations import QuotaOperations

PROJECT_LENGTH = 64
_LIMIT: Json = {"type": ["integer", "null"], "minimum": UNLIMITED, "maximum": LARGEST}
QUOTAS: Json = {
    "type": "object",
    "properties": {
        "quotas": {
            "type": "object",
            "properties": {name.value: _LIMIT for name in QuotaName},
            "minProperties": 1,
            "additionalProperties": False,
        },
    },
    "required": ["quotas"],
    "additionalProperties": False,
}


def own_quotas(request: Request) -> Reply:
    """Answer GET /PROJECT/quotas."""
    return _quotas(request, request.caller.project_id)


def quotas(request: Request) -> Reply:
    """Answer GET /admin/quotas/PROJECT."""
    return _quotas(request, _project(request))


def list_quotas(request: Request) -> Reply:
    """Answer GET /admin/project_quotas: the projects whose quotas an admin has set, a page of them."""
    operations = _operations(request)
    page = operations.list_changed(request.one("marker") or "", request.limit())
    return Reply(views.quotas_by_project(operations.defaults, page))


def set_quotas(request: Request) -> Reply:
    """Answer PUT /admin/quotas/PROJECT: those that are not named stay."""
    _operations(request).change(_project(request), request.valid(QUOTAS)["quotas"])
    return quotas(request)


def reset_quotas(request: Request) -> Reply:
    """Answer DELETE /admin/quotas/PROJECT: it has the defaults again."""
    _operations(request).reset(_project(request))
    return Reply(None, 204)


def _operations(request: Request) -> QuotaOperations:
    context = request.services.context
    return QuotaOperations(context.database, context.settings.quotas or Quotas())


def _project(request: Request) -> str:
    project_id = request.path["project_id"]
    if len(project_id) > PROJECT_LENGTH:
        raise bad_request(f"A project's id has {PROJECT_LENGTH} characters or less")
    return project_id


def _quotas(request: Request, project_id: str) -> Reply:
    usage = _operations(request).usage(project_id)
    return Reply({"project": project_id, "quotas": {item.name: views.quota(item) for item in usage}})


_operators = functools.partial(Operation, everywhere=True)

ROUTES: Routes = {
    f"{ADMIN}/project_quotas": {
        "GET": _operators(
            list_quotas,
            "quotas:global_index",
            description=Description(query=frozenset({"limit", "marker"})),
            name="operators_list_quotas",
        )
    },
    f"{ADMIN}/quotas/{{project_id}}": {
        "GET": _operators(quotas, "quotas:global_show", name="operators_quotas"),
        "PUT": _operators(
            set_quotas, "quotas:update", description=Description(QUOTAS), name="operators_set_quotas"
        ),
        "DELETE": _operators(
            reset_quotas,
            "quotas:delete",
            description=Description(statuses=(204,)),
            name="operators_reset_quotas",
        ),
    },
    f"{TENANT}/quotas": {"GET": Operation(own_quotas, "quotas:show", name="operators_own_quotas")},
}
