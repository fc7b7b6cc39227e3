"""The rules of the policy for the routes of this feature."""

from ...api.policy import OPERATOR, READER, Rule

_QUOTAS = "/v1/admin/quotas/{project_id}"
RULES: tuple[Rule, ...] = (
    ("quotas:delete", OPERATOR, "Reset the quotas of a project to the defaults.", "DELETE", _QUOTAS),
    (
        "quotas:global_index",
        OPERATOR,
        "List the projects with quotas of their own.",
        "GET",
        "/v1/admin/project_quotas",
    ),
    ("quotas:global_show", OPERATOR, "Show the quotas of any project.", "GET", _QUOTAS),
    ("quotas:show", READER, "Show the quotas of the own project.", "GET", "/v1/{tenant_id}/quotas"),
    ("quotas:update", OPERATOR, "Set quotas of a project.", "PUT", _QUOTAS),
)
