"""A stored resource as its type sees it where no step runs: in signals."""

from ..db.rows import Resource, Stack
from ..resources.contract.properties import resolve_stored
from ..resources.contract.views import ResourceView, StackFacts
from ..sealing.stored import StoredLookup, in_clear, metadata_in_clear
from ..template.residual import evaluate
from .context import EngineContext


def view_of(context: EngineContext, stack: Stack, resource: Resource) -> ResourceView:
    """Return the resource as its type sees it; secrets in clear."""
    unseal = context.sealer_of(stack).open
    schema = context.registry.get(resource.plugin).properties_schema
    return ResourceView(
        id=resource.id,
        name=resource.name,
        type=resource.plugin,
        stack=StackFacts(stack.id, stack.name, stack.project_id),
        properties=resolve_stored(schema, evaluate(resource.properties or {}, StoredLookup(unseal))),
        key=resource.key or "",
        physical_id=resource.physical_id,
        metadata=metadata_in_clear(resource, unseal),
        data=in_clear(resource.data, unseal) or {},
        template=resource.template,
    )
