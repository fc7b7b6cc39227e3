"""The rules of the policy for the routes of this feature."""

from ...api.paths import STACK
from ...api.policy import ADMIN, OPERATOR, READER, Rule

RULES: tuple[Rule, ...] = (
    ("conductors:show", OPERATOR, "Show a conductor.", "GET", "/v1/admin/conductors/{host}"),
    ("ring:show", OPERATOR, "Show the ring.", "GET", "/v1/admin/ring"),
    (
        "ring:plan",
        OPERATOR,
        "Show the shards that a change of the ring would move.",
        "POST",
        "/v1/admin/ring/plan",
    ),
    ("ring:drain", OPERATOR, "Drain a conductor.", "POST", "/v1/admin/ring/{host}/drain"),
    ("ring:rebalance", OPERATOR, "Let all conductors settle now.", "POST", "/v1/admin/ring/rebalance"),
    ("ring:undrain", OPERATOR, "Return a conductor to the ring.", "POST", "/v1/admin/ring/{host}/undrain"),
    ("service:index", ADMIN, "List the conductors.", "GET", "/v1/{tenant_id}/services"),
    ("stacks:count", READER, "Count stacks by state.", "GET", "/v1/{tenant_id}/stack_counts"),
    ("stacks:global_count", OPERATOR, "Count all projects' stacks.", "GET", "/v1/admin/stack_counts"),
    ("stacks:global_stuck", OPERATOR, "List all stuck stacks.", "GET", "/v1/admin/stuck_stacks"),
    ("stacks:graph", READER, "Show the graph of a stack.", "GET", f"{STACK}/graph"),
    ("stacks:inspect", READER, "Explain why a stack is not finished.", "GET", f"{STACK}/inspect"),
)
