"""The paths below which routes are."""

TENANT = "/v1/{tenant_id}"
ADMIN = "/v1/admin"
STACK_NAME = f"{TENANT}/stacks/{{stack_name}}"
STACK = f"{STACK_NAME}/{{stack_id}}"
RESOURCE = f"{STACK}/resources/{{resource_name}}"
