"""The rules of the policy for the routes of this feature."""

from ...api.paths import STACK
from ...api.policy import MEMBER, READER, Rule

RULES: tuple[Rule, ...] = (
    ("stacks:preview", READER, "Preview a stack.", "POST", "/v1/{tenant_id}/stacks/preview"),
    ("stacks:preview_update", MEMBER, "Preview an update.", "PUT", f"{STACK}/preview"),
    ("stacks:preview_update_patch", MEMBER, "Preview an update.", "PATCH", f"{STACK}/preview"),
    ("stacks:validate_template", MEMBER, "Validate a template.", "POST", "/v1/{tenant_id}/validate"),
)
