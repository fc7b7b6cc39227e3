"""The routes of previews and validation."""

from ...api.operations import Operation, Routes
from ...api.paths import STACK, TENANT
from . import previews

ROUTES: Routes = {
    f"{TENANT}/validate": {"POST": Operation(previews.validate, "stacks:validate_template")},
    f"{TENANT}/stacks/preview": {"POST": Operation(previews.create, "stacks:preview")},
    f"{STACK}/preview": {
        "PUT": Operation(previews.update, "stacks:preview_update"),
        "PATCH": Operation(previews.update_existing, "stacks:preview_update_patch"),
    },
}
