"""The policy: Heat's rules with Heat's defaults, which an operator's policy file may override."""

from collections.abc import Iterable

from oslo_policy import policy

Rule = tuple[str, str, str, str, str]
"""Name, default, description, method and path."""

MEMBER = "role:member and project_id:%(project_id)s"
READER = "role:reader and project_id:%(project_id)s"
ADMIN = "role:admin and project_id:%(project_id)s"
STACK_USER = "role:heat_stack_user and project_id:%(project_id)s"
READER_OR_STACK_USER = f"({READER}) or ({STACK_USER})"
NOBODY = "rule:deny_everybody"
OPERATOR = "rule:context_is_admin"

TYPE_RULE = "resource_types:"
TYPES_OF_ADMINS = (
    "OS::Blazar::Host",
    "OS::Cinder::EncryptedVolumeType",
    "OS::Cinder::QoSAssociation",
    "OS::Cinder::QoSSpecs",
    "OS::Cinder::Quota",
    "OS::Cinder::VolumeType",
    "OS::Keystone::*",
    "OS::Manila::ShareType",
    "OS::Neutron::ProviderNet",
    "OS::Neutron::QoSBandwidthLimitRule",
    "OS::Neutron::QoSDscpMarkingRule",
    "OS::Neutron::QoSMinimumBandwidthRule",
    "OS::Neutron::QoSMinimumPacketRateRule",
    "OS::Neutron::QoSPolicy",
    "OS::Neutron::Quota",
    "OS::Neutron::Segment",
    "OS::Nova::Flavor",
    "OS::Nova::HostAggregate",
    "OS::Nova::Quota",
    "OS::Octavia::AvailabilityZone",
    "OS::Octavia::AvailabilityZoneProfile",
    "OS::Octavia::Flavor",
    "OS::Octavia::FlavorProfile",
    "OS::Octavia::Quota",
)
"""Types that Heat keeps for admins, wherever they come from.  Others have no rule, unless the operator's file
gives them one."""

IS_ADMIN = "context_is_admin"
"""Name of the rule of those who may see and change the stacks of all projects."""

SHOWS_HOSTS = "service:hosts"
"""Name of the rule of those who may see which conductor's host has done something."""

BASE = (
    ("context_is_admin", "role:admin and is_admin_project:True", "Works on the stacks of all projects."),
    ("project_admin", "role:admin", "For rules of an operator's own."),
    ("deny_stack_user", "not role:heat_stack_user", "For rules of an operator's own."),
    ("deny_everybody", "!", "Nobody."),
    ("allow_everybody", "", "Everybody."),
)

_STACK = "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}"
_QUOTAS = "/v1/admin/quotas/{project_id}"
_RESOURCE = f"{_STACK}/resources/{{resource_name}}"

KERNEL_RULES: tuple[Rule, ...] = (
    ("actions:action", MEMBER, "Act on a stack.", "POST", f"{_STACK}/actions"),
    ("actions:suspend", MEMBER, "Suspend a stack.", "POST", f"{_STACK}/actions"),
    ("actions:resume", MEMBER, "Resume a suspended stack.", "POST", f"{_STACK}/actions"),
    ("actions:continue", MEMBER, "Continue at breakpoints.", "POST", f"{_STACK}/actions"),
    ("actions:step", MEMBER, "Continue, and break again.", "POST", f"{_STACK}/actions"),
    ("actions:check", READER, "Check the resources of a stack.", "POST", f"{_STACK}/actions"),
    ("actions:snapshot", MEMBER, "Take a snapshot.", "POST", f"{_STACK}/actions"),
    ("actions:cancel_update", MEMBER, "Cancel an update, and roll back.", "POST", f"{_STACK}/actions"),
    ("actions:cancel_without_rollback", MEMBER, "Cancel without rollback.", "POST", f"{_STACK}/actions"),
    ("build_info:build_info", READER, "Show which version runs.", "GET", "/v1/{tenant_id}/build_info"),
    ("events:index", READER, "List events.", "GET", f"{_STACK}/events"),
    ("events:show", READER, "Show an event.", "GET", f"{_RESOURCE}/events/{{event_id}}"),
    ("resource:index", READER, "List the resources of a stack.", "GET", f"{_STACK}/resources"),
    ("resource:show", READER, "Show a resource.", "GET", _RESOURCE),
    ("resource:metadata", READER_OR_STACK_USER, "Show metadata.", "GET", f"{_RESOURCE}/metadata"),
    ("resource:signal", READER_OR_STACK_USER, "Signal a resource.", "POST", f"{_RESOURCE}/signal"),
    ("resource:mark_unhealthy", MEMBER, "Mark a resource as unhealthy.", "PATCH", _RESOURCE),
    (
        SHOWS_HOSTS,
        OPERATOR,
        "See the names of conductors' hosts in events, graphs and inspections.",
        "GET",
        f"{_STACK}/events",
    ),
    ("stacks:abandon", MEMBER, "Abandon a stack.", "DELETE", f"{_STACK}/abandon"),
    ("stacks:create", MEMBER, "Create a stack.", "POST", "/v1/{tenant_id}/stacks"),
    ("stacks:delete", MEMBER, "Delete a stack.", "DELETE", _STACK),
    ("stacks:delete_snapshot", MEMBER, "Delete a snapshot.", "DELETE", f"{_STACK}/snapshots/{{id}}"),
    ("stacks:detail", READER, "List stacks in detail.", "GET", "/v1/{tenant_id}/stacks/detail"),
    ("stacks:environment", READER, "Show the environment.", "GET", f"{_STACK}/environment"),
    ("stacks:export", MEMBER, "Export a stack.", "GET", f"{_STACK}/export"),
    ("stacks:files", READER, "Show the files.", "GET", f"{_STACK}/files"),
    (
        "stacks:generate_template",
        MEMBER,
        "Generate a template of a resource type.",
        "GET",
        "/v1/{tenant_id}/resource_types/{type_name}/template",
    ),
    ("stacks:global_index", NOBODY, "List all projects' stacks.", "GET", "/v1/{tenant_id}/stacks"),
    ("stacks:index", READER, "List stacks.", "GET", "/v1/{tenant_id}/stacks"),
    ("stacks:list_outputs", READER, "List outputs.", "GET", f"{_STACK}/outputs"),
    ("stacks:list_resource_types", READER, "List types.", "GET", "/v1/{tenant_id}/resource_types"),
    ("stacks:list_snapshots", READER, "List snapshots.", "GET", f"{_STACK}/snapshots"),
    (
        "stacks:list_template_functions",
        READER,
        "List the functions of a template version.",
        "GET",
        "/v1/{tenant_id}/template_versions/{template_version}/functions",
    ),
    (
        "stacks:list_template_versions",
        READER,
        "List template versions.",
        "GET",
        "/v1/{tenant_id}/template_versions",
    ),
    (
        "stacks:lookup",
        READER_OR_STACK_USER,
        "Find a stack.",
        "GET",
        "/v1/{tenant_id}/stacks/{stack_identity}",
    ),
    (
        "stacks:resource_schema",
        READER,
        "Show a resource type.",
        "GET",
        "/v1/{tenant_id}/resource_types/{type_name}",
    ),
    ("stacks:restore_snapshot", MEMBER, "Restore.", "POST", f"{_STACK}/snapshots/{{id}}/restore"),
    ("stacks:show", READER, "Show a stack.", "GET", _STACK),
    ("stacks:show_output", READER, "Show an output.", "GET", f"{_STACK}/outputs/{{output_key}}"),
    ("stacks:show_snapshot", READER, "Show a snapshot.", "GET", f"{_STACK}/snapshots/{{id}}"),
    ("stacks:snapshot", MEMBER, "Take a snapshot.", "POST", f"{_STACK}/snapshots"),
    ("stacks:template", READER, "Show the template.", "GET", f"{_STACK}/template"),
    ("stacks:update", MEMBER, "Update a stack.", "PUT", _STACK),
    ("stacks:update_patch", MEMBER, "Update parts of a stack.", "PATCH", _STACK),
    ("stacks:update_no_change", "rule:stacks:update_patch", "Update with no change.", "PATCH", _STACK),
)


def rule_defaults(rules: Iterable[Rule]) -> list[policy.RuleDefault]:
    """Return rules as oslo.policy takes them, with those that no operation has."""
    base = [policy.RuleDefault(name, check, description=text) for name, check, text in BASE]
    types = [
        policy.RuleDefault(f"{TYPE_RULE}{name}", "rule:project_admin", scope_types=["project"])
        for name in TYPES_OF_ADMINS
    ]
    return [*base, *(_documented(*rule) for rule in rules), *types]


def _documented(
    name: str, check: str, description: str, method: str, path: str
) -> policy.DocumentedRuleDefault:
    # As in Heat, operators may open the list of all stacks to a scope of their choice.
    scopes = None if check == NOBODY else ["project"]
    operations: list[policy.Operation] = [{"method": method, "path": path}]
    return policy.DocumentedRuleDefault(name, check, description, operations, scope_types=scopes)
