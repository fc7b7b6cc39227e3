"""The table of the kernel's routes: path -> method -> operation.

A new route is a handler, in a file of its own or beside its like, and a line here; that of a feature is
beside its handler in the feature's folder.
"""

import functools
from collections.abc import Iterable, Set

from ..engine.signal_urls import IDENTITY
from .handlers import (
    actions,
    description,
    events,
    guests,
    identity,
    meta,
    resources,
    signals,
    snapshots,
    stack_list,
    stacks,
)
from .operations import Operation, Routes
from .paths import RESOURCE, STACK, STACK_NAME, TENANT
from .policy import Rule

_SNAPSHOT = f"{STACK}/snapshots/{{snapshot_id}}"
_ACCOUNT = "/v1/guest/{tenant_id}/{row}/stacks/{stack_name}/{stack_id}/resources/{resource_name}"
_TYPES = f"{TENANT}/resource_types"
_VERSIONS = f"{TENANT}/template_versions"

DESCRIPTION = "/v1/openapi.json"
_NO_QUERY: Set[str] = frozenset()
_LOOKUP = Operation(stack_list.lookup, "stacks:lookup")
_operators = functools.partial(Operation, everywhere=True)
_EVERY_METHOD = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), _LOOKUP)

KERNEL_ROUTES: Routes = {
    "/": {"GET": Operation(meta.versions, None)},
    "/v1/signal/{arn:path}": {"POST": Operation(signals.signed_signal, None, signed=True)},
    "/v1/waitcondition/{arn:path}": {"PUT": Operation(signals.wait_condition, None, signed=True)},
    IDENTITY: {"GET": Operation(identity.version, None)},
    f"{IDENTITY}/auth/tokens": {"POST": Operation(identity.token, None, signed=True)},
    f"{_ACCOUNT}/metadata": {"GET": Operation(guests.metadata_by_account, None, presigned=guests.PURPOSE)},
    f"{_ACCOUNT}/signal": {"POST": Operation(signals.signal, None, presigned=signals.PURPOSE)},
    "/healthcheck": dict.fromkeys(("GET", "HEAD"), Operation(meta.health, None)),
    _TYPES: {"GET": Operation(meta.list_types, "stacks:list_resource_types")},
    f"{_TYPES}/{{type_name}}": {"GET": Operation(meta.show_type, "stacks:resource_schema")},
    f"{_TYPES}/{{type_name}}/template": {"GET": Operation(meta.type_template, "stacks:generate_template")},
    _VERSIONS: {"GET": Operation(meta.list_versions, "stacks:list_template_versions")},
    f"{_VERSIONS}/{{template_version}}/functions": {
        "GET": Operation(meta.list_functions, "stacks:list_template_functions")
    },
    f"{TENANT}/build_info": {"GET": Operation(meta.build_info, "build_info:build_info")},
    f"{TENANT}/stacks": {
        "GET": Operation(stack_list.index, "stacks:index", shared=stack_list.INDEX_QUERY),
        "POST": Operation(stacks.create, "stacks:create"),
    },
    f"{TENANT}/stacks/detail": {
        "GET": Operation(stack_list.detail, "stacks:detail", shared=stack_list.DETAIL_QUERY)
    },
    STACK_NAME: _EVERY_METHOD,
    STACK: {
        "GET": Operation(stacks.show, "stacks:show", shared=stacks.SHOW_QUERY),
        "DELETE": Operation(stacks.delete, "stacks:delete"),
        "PUT": Operation(stacks.update, "stacks:update"),
        "PATCH": Operation(stacks.update_existing, None),  # The rule follows from the body.
    },
    f"{STACK}/template": {"GET": Operation(stacks.template, "stacks:template")},
    f"{STACK}/environment": {"GET": Operation(stacks.environment, "stacks:environment")},
    f"{STACK}/files": {"GET": Operation(stacks.files, "stacks:files")},
    f"{STACK}/outputs": {"GET": Operation(stacks.outputs, "stacks:list_outputs", shared=_NO_QUERY)},
    f"{STACK}/outputs/{{output_key}}": {"GET": Operation(stacks.output_show, "stacks:show_output")},
    f"{STACK}/actions": {"POST": Operation(actions.act, None)},
    f"{STACK}/snapshots": {
        "GET": Operation(snapshots.index, "stacks:list_snapshots"),
        "POST": Operation(snapshots.take, "stacks:snapshot"),
    },
    _SNAPSHOT: {
        "GET": Operation(snapshots.show, "stacks:show_snapshot"),
        "DELETE": Operation(snapshots.delete, "stacks:delete_snapshot"),
    },
    f"{_SNAPSHOT}/restore": {"POST": Operation(snapshots.restore, "stacks:restore_snapshot")},
    f"{STACK}/abandon": {"DELETE": Operation(stacks.abandon, "stacks:abandon")},
    f"{STACK}/export": {"GET": Operation(stacks.export, "stacks:export")},
    f"{STACK}/resources": {"GET": Operation(resources.index, "resource:index", shared=resources.INDEX_QUERY)},
    RESOURCE: {
        "GET": Operation(resources.show, "resource:show", shared=resources.SHOW_QUERY),
        "PATCH": Operation(resources.mark_unhealthy, "resource:mark_unhealthy"),
    },
    f"{RESOURCE}/metadata": {
        "GET": Operation(guests.metadata_by_imported(resources.metadata), "resource:metadata")
    },
    f"{RESOURCE}/signal": {
        "POST": Operation(signals.signal_by_imported(resources.signal), "resource:signal")
    },
    f"{RESOURCE}/signal/{{row}}": dict.fromkeys(
        ("POST", "PUT"), Operation(signals.signal, None, presigned=signals.PURPOSE)
    ),
    f"{RESOURCE}/guest/{{row}}": dict.fromkeys(
        ("GET", "HEAD"), Operation(guests.metadata, None, presigned=guests.PURPOSE)
    ),
    f"{STACK}/events": {"GET": Operation(events.index, "events:index", shared=events.QUERY)},
    f"{RESOURCE}/events": {"GET": Operation(events.of_resource, "events:index", shared=events.QUERY)},
    f"{RESOURCE}/events/{{event_id}}": {"GET": Operation(events.show, "events:show")},
}


def compose(of_features: Iterable[Routes], rules: Iterable[Rule]) -> Routes:
    """Return the routes of the kernel and those of features, with the one that describes them all.

    :param rules: the policy's rules, of the features, too.
    """
    routes = {
        path: operations for table in (KERNEL_ROUTES, *of_features) for path, operations in table.items()
    }
    routes[DESCRIPTION] = {"GET": Operation(description.ApiDescription(lambda: routes, rules).show, None)}
    return routes
