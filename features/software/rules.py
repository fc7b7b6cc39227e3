"""The rules of the policy for the routes of this feature."""

from ...api.paths import TENANT
from ...api.policy import MEMBER, NOBODY, READER, READER_OR_STACK_USER, Rule

_CONFIGS = f"{TENANT}/software_configs"
_DEPLOYMENTS = f"{TENANT}/software_deployments"
_DEPLOYMENT = f"{_DEPLOYMENTS}/{{deployment_id}}"
RULES: tuple[Rule, ...] = (
    ("software_configs:create", MEMBER, "Create a config.", "POST", _CONFIGS),
    ("software_configs:delete", MEMBER, "Delete a config.", "DELETE", f"{_CONFIGS}/{{config_id}}"),
    ("software_configs:global_index", NOBODY, "List the configs of all projects.", "GET", _CONFIGS),
    ("software_configs:index", READER, "List configs.", "GET", _CONFIGS),
    ("software_configs:show", READER, "Show a config.", "GET", f"{_CONFIGS}/{{config_id}}"),
    ("software_deployments:create", MEMBER, "Create a deployment.", "POST", _DEPLOYMENTS),
    ("software_deployments:delete", MEMBER, "Delete a deployment.", "DELETE", _DEPLOYMENT),
    ("software_deployments:index", READER, "List deployments.", "GET", _DEPLOYMENTS),
    (
        "software_deployments:metadata",
        READER_OR_STACK_USER,
        "Show the configs that are deployed to a server.",
        "GET",
        f"{_DEPLOYMENTS}/metadata/{{server_id}}",
    ),
    ("software_deployments:show", READER, "Show a deployment.", "GET", _DEPLOYMENT),
    ("software_deployments:update", MEMBER, "Update a deployment.", "PUT", _DEPLOYMENT),
)
