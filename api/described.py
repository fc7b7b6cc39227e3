"""The parts of operations that the table of routes does not name: bodies, parameters, codes of success."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from ..shapes import Json
from . import schemas

_NONE: Set[str] = frozenset()
_PAGE: Set[str] = frozenset({"limit", "marker"})


@dataclass(frozen=True)
class Description:
    """The parts of one operation that its route does not say.

    :ivar body: the JSON Schema that the handler validates the body by; None: it takes no body.
    :ivar query: the names of the query's parameters, besides those of shared answers.
    :ivar statuses: the status codes of success.
    :ivar summary: a line for readers; empty: that of the policy's rule, or of the handler.
    """

    body: Json = None
    query: Set[str] = _NONE
    statuses: tuple[int, ...] = (200,)
    summary: str = ""


USUAL = Description()
"""An operation without a body, and without parameters of the query."""

_ANY: Json = {"type": "object"}
_NO_CONTENT = Description(statuses=(204,))

DESCRIPTIONS: Mapping[str, Description] = {
    "actions_act": Description(
        {**schemas.GO_ON, "minProperties": 1, "maxProperties": 1},
        summary="Act on a stack: suspend, resume, check, cancel an update, continue at breakpoints.",
    ),
    "cloudformation_query": Description(summary="Answer an action of the CloudFormation API."),
    "cloudformation_root": Description(
        statuses=(200, 300), summary="Answer an action of the CloudFormation API, or list the versions."
    ),
    "description_show": Description(statuses=(200, 304), summary="Describe the API: this document."),
    "console_graph": Description(query=frozenset({"nested_depth", "since"}), statuses=(200, 304)),
    "events_of_resource": Description(summary="List the events of a resource."),
    "guests_metadata": Description(
        statuses=(200, 304), summary="Show the metadata of the guest's own server."
    ),
    "guests_metadata_by_account": Description(summary="Show the metadata of the account's own server."),
    "identity_token": Description(statuses=(201,), summary="Give a guest's agent a token, as Keystone does."),
    "identity_version": Description(summary="Show the version of the tokens' API."),
    "meta_health": Description(summary="Show whether the service can do its work."),
    "meta_list_functions": Description(query=frozenset({"with_condition_func"})),
    "meta_list_types": Description(
        query=frozenset({"name", "version", "support_status", "with_description"})
    ),
    "meta_show_type": Description(query=frozenset({"with_description"})),
    "meta_type_template": Description(query=frozenset({"template_type"})),
    "meta_versions": Description(statuses=(300,), summary="List the versions of the API."),
    "operators_counts": Description(query=frozenset({"show_hidden", "show_nested"})),
    "operators_counts_everywhere": Description(query=frozenset({"show_hidden", "show_nested"})),
    "operators_drain": Description(schemas.DRAIN, statuses=(202,)),
    "operators_plan": Description(schemas.RING_PLAN, query=frozenset({"shards"})),
    "operators_rebalance": Description(statuses=(202,)),
    "operators_undrain": Description(statuses=(202,)),
    "previews_create": Description(schemas.CREATE, query=frozenset({"check_cloud"})),
    "previews_update": Description(schemas.UPDATE, query=frozenset({"check_cloud", "show_nested"})),
    "previews_update_existing": Description(schemas.UPDATE, query=frozenset({"check_cloud", "show_nested"})),
    "previews_validate": Description(schemas.VALIDATE, query=frozenset({"show_nested", "ignore_errors"})),
    "resources_mark_unhealthy": Description(schemas.MARK_UNHEALTHY),
    "signals_signal": Description(_ANY, summary="Signal the resource that the signature is for."),
    "signals_signal_by_imported": Description(_ANY),
    "signals_signed_signal": Description(_ANY, summary="Signal the resource whose keys sign the request."),
    "signals_wait_condition": Description(
        _ANY, summary="Signal the wait condition whose keys sign the request."
    ),
    "snapshots_delete": _NO_CONTENT,
    "snapshots_index": Description(query=_PAGE),
    "snapshots_restore": Description(statuses=(202,)),
    "snapshots_take": Description(schemas.SNAPSHOT),
    "stack_list_lookup": Description(statuses=(302,)),
    "stacks_create": Description(schemas.CREATE, statuses=(201,)),
    "stacks_delete": _NO_CONTENT,
    "stacks_update": Description(schemas.UPDATE, statuses=(202,)),
    "stacks_update_existing": Description(
        schemas.UPDATE, statuses=(202,), summary="Update a stack, and keep what the request leaves out."
    ),
}
"""Descriptions by the name of the handler, with its module; those of others are usual."""

SIGNED_QUERY: Set[str] = frozenset({"Signature"})
"""The parameter of addresses with a signature."""

BOOLEANS: Set[str] = frozenset(
    {
        *(
            "check_cloud",
            "global_tenant",
            "resolve_outputs",
            "shards",
            "show_deleted",
            "show_hidden",
            "show_nested",
        ),
        *("with_condition_func", "with_count", "with_description", "with_detail"),
    }
)
"""Parameters of queries that are true or false."""

NUMBERS: Set[str] = frozenset({"limit", "nested_depth"})
"""Parameters of queries that are whole numbers of 0 or more."""
