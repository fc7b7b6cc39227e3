"""The routes of Amazon's CloudFormation API: its actions are views of the Orchestration API's operations."""

from ...api.handlers import guests, meta, resources, stack_list, stacks
from ...api.operations import Operation, Routes
from ..preview import previews
from .handlers import CloudFormation, Operations

_HANDLERS = CloudFormation(
    Operations(
        guest=guests.describe,
        versions=meta.versions,
        delete=stacks.delete,
        show=stacks.show,
        index=stack_list.index,
        template=stacks.template,
        validate=previews.validate,
        resources=resources.list_views,
        resource=resources.show,
        metadata=resources.metadata,
    )
)
ROUTES: Routes = {
    "/v1": {
        "GET": Operation(_HANDLERS.root, None, signed=True),
        "POST": Operation(_HANDLERS.query, None, signed=True, templates=True),
    }
}
