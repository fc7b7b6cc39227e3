"""One resource of Heat's as a row of Stoker's; pure."""

import contextlib
import typing
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....db.ids import ResourceId, StackId
from ....db.rows import Resource
from ....db.states import Status
from ....engine.planning.plan import TaskDefinition
from ....engine.stored_resource import (
    data_column,
    metadata_of_origin,
    note_properties,
    outline,
    property_column,
    value_columns,
)
from ....resources.contract.errors import PropertyError
from ....resources.contract.plugin import ResourceType
from ....resources.contract.properties import resolve_properties, resolve_stored
from ....resources.contract.views import ResourceView, StackFacts
from ....resources.openstack.nova.launch_schema import LAUNCH_CONFIGURATION
from ....sealing.secrets import Secrets
from ....sealing.stored import RowLookup, SealedRowLookup, in_clear
from ....shapes import Json, JsonMap
from ....template.errors import TemplateError
from ....template.language import ResourceDefinition
from ....template.residual import (
    ARGS,
    FN,
    evaluate,
    holds_secret,
    is_node,
    mapping,
    members,
    nodes,
)
from ..heat.rows import HeatResource
from ..heat.type_names import ADDED_METADATA
from ..mapping.columns import RESOURCE
from ..mapping.names import name_of

ROUTE_TABLE_ASSOCIATION = "AWS::EC2::SubnetRouteTableAssociation"
UNFINISHED = "it was in progress when its stack failed in Heat"


@dataclass(frozen=True)
class ResourcePlace:
    """The place of a resource.

    :ivar rows: resources of the stack that are built already, by name.
    :ivar ids: ids of Stoker's rows by Heat's ids.
    :ivar by_name: ids of the present resources of the stack by name.
    """

    stack: StackFacts
    definition: ResourceDefinition
    plugin: ResourceType
    rows: Mapping[str, Resource]
    ids: Mapping[int, ResourceId]
    by_name: Mapping[str, ResourceId]


def resource_row(resource: HeatResource, place: ResourcePlace, secrets: Secrets) -> Resource:
    """Return the row, still without the data and the values that others refer to."""
    definition = place.definition
    if resource.status == Status.IN_PROGRESS:
        resource = replace(resource, status=Status.FAILED, reason=UNFINISHED)
    untouched = resource.action == "INIT"
    physical_id = resource.physical_id or _made_id(resource, place)
    # What exists without an id, as roles do, was not created with a key that a deletion could search.
    has_key = untouched or physical_id is not None or resource.status != Status.COMPLETE
    return Resource(
        id=place.ids[resource.id],
        stack_id=StackId(place.stack.id),
        type=definition.declared_type,
        plugin=definition.type,
        physical_id=physical_id,
        definition=TaskDefinition.of(definition).to_json(),
        properties=None if untouched else stored_properties(resource, place, secrets),
        metadata=None if untouched else stored_metadata(resource, place),
        requires=sorted(place.by_name[name] for name in definition.requires if name in place.by_name),
        replaces=place.ids.get(resource.replaces or 0),
        replaced_by=place.ids.get(resource.replaced_by or 0),
        key=str(uuid.uuid4()) if has_key else None,
        **RESOURCE.to_stoker(resource),
    )


def _made_id(resource: HeatResource, place: ResourcePlace) -> str | None:
    """Return the physical id of a resource that has none in Heat; None: Stoker's type needs none, either."""
    if resource.action == "INIT":
        return None
    if place.definition.type == ROUTE_TABLE_ASSOCIATION:
        properties = resource.properties or {}
        return f"{properties.get('RouteTableId')}:subnet_id={properties.get('SubnetId')}"
    if place.definition.type == LAUNCH_CONFIGURATION:
        # Heat stores none, and shows this one.
        return name_of(place.stack.name, resource.name, resource.uuid)
    return None


def stored_properties(resource: HeatResource, place: ResourcePlace, secrets: Secrets) -> Json:
    """Return the properties as they are stored: those that Heat has given, with secrets sealed.

    What is nothing but a reference becomes Stoker's value of it: that of a few types differs from Heat's.
    """
    definition = place.definition.properties
    residuals = members(definition)
    lookup = RowLookup(place.rows, secrets.open)
    values = dict(resource.properties or {})
    if not residuals and definition:
        # A function makes all properties.  Heat's API does not show them.
        if not values:
            with contextlib.suppress(TemplateError, LookupError):
                values = evaluate(definition, lookup)
        return property_column(values, secrets, is_secret=_is_secret(definition, place.rows))
    stored: dict[str, Json] = {}
    for name, residual in residuals.items():
        is_reference = is_node(residual) and residual[FN] == "get_resource"
        if is_reference or name not in values:
            with contextlib.suppress(TemplateError, LookupError):
                values[name] = evaluate(residual, lookup)
        if name in values:
            is_secret = _is_secret(residual, place.rows)
            stored[name] = property_column(values[name], secrets, is_secret=is_secret)
    return mapping(stored)


def stored_metadata(resource: HeatResource, place: ResourcePlace) -> Json:
    """Return the metadata as they are stored: the template's own, and what signals have brought."""
    template = place.definition.metadata
    added = {name for name in ADDED_METADATA if name not in members(template)}
    metadata = {name: value for name, value in (resource.metadata or {}).items() if name not in added}
    return metadata_of_origin(metadata, template, SealedRowLookup(place.rows))


def view_of_row(row: Resource, place: ResourcePlace, secrets: Secrets, data: JsonMap) -> ResourceView:
    """Return the resource as its type sees it, for the values that others refer to."""
    values = evaluate(row.properties or {}, RowLookup(place.rows, secrets.open))
    note_properties(row.properties, values, secrets)
    schema = place.plugin.properties_schema
    try:
        properties = resolve_properties(schema, values)
    except PropertyError:
        properties = resolve_stored(schema, values)
    return replace(
        outline(row, place.stack, properties),
        key=row.key or "",
        data=data,
        requested_attributes=[list(parts) for parts in place.definition.requested_attributes],
        creation_key=row.key or "",
        template=row.template,
    )


def with_values(
    row: Resource, target: ResourceView, plugin: ResourceType, secrets: Secrets, attributes: JsonMap | None
) -> Resource:
    """Return the row with its data, and with the values that others refer to, secrets sealed.

    :param attributes: values of attributes; None: the type computes them.
    """
    values = dict(plugin.attribute_values(target) if attributes is None else attributes)
    data = data_column(plugin, target.data, secrets) if target.data else None
    return replace(row, data=data, **value_columns(plugin, values, plugin.reference_id(target), secrets))


def reference_in_clear(row: Resource, secrets: Secrets) -> str:
    """Return the value of get_resource of a row as text."""
    return str(in_clear(row.reference_id, secrets.open))


def _is_secret(residual: Json, rows: Mapping[str, Resource]) -> bool:
    """Return whether a secret is in properties, their own or one of a resource that they refer to."""
    if holds_secret(residual):
        return True
    for item in nodes(residual):
        if item[FN] not in ("get_resource", "get_attr"):
            continue
        name, *path = typing.cast(list[Json], item[ARGS])
        row = rows.get(name) if isinstance(name, str) else None
        if row is None:
            continue
        attributes = row.attributes or {}
        if item[FN] == "get_resource":
            referred = [row.reference_id]
        elif path and path[0] != "" and isinstance(path[0], str):
            referred = [attributes.get(path[0])]
        else:
            referred = list(attributes.values())
        if any(map(holds_secret, referred)):
            return True
    return False
