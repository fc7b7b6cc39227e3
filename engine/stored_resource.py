"""A resource between its row and its type: how its values are stored, and how they are read.

It is the only module that decides what is sealed of what a type has returned, and that makes views of rows.
Steps, signals, comparisons with the cloud and imports do both through it.  So a value that one of them seals
is never stored in clear by another one, and each of them shows a type the same resource.
"""

import contextlib
import logging
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..db.ids import ResourceId
from ..db.rows import Resource, Stack
from ..resources.contract.plugin import ResourceType
from ..resources.contract.properties import resolve_stored
from ..resources.contract.views import ResourceView, StackFacts
from ..sealing.sealer import SealError
from ..sealing.secrets import Secrets
from ..sealing.stored import StoredLookup, Unseal, in_clear, is_made, metadata_in_clear
from ..shapes import Json, JsonMap
from ..template.budget import Budget
from ..template.language import ResourceDefinition
from ..template.residual import (
    Lookup,
    evaluate,
    holds_secret,
    is_deferred,
    is_node,
    mapping,
    members,
    partial,
    quote,
    sealed,
)

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")


class ResourceRow(typing.Protocol):
    """The columns that all views of a resource show; queries for many resources read few more."""

    @property
    def id(self) -> ResourceId:
        """The number of the row."""

    @property
    def name(self) -> str:
        """The name in the template."""

    @property
    def plugin(self) -> str:
        """The type after the environment's mapping."""

    @property
    def physical_id(self) -> str | None:
        """The id of the thing outside; None: it does not exist yet."""


def facts_of(stack: Stack) -> StackFacts:
    """Return what types see of a stack."""
    return StackFacts(stack.id, stack.name, stack.project_id)


def outline(row: ResourceRow, stack: StackFacts, properties: JsonMap) -> ResourceView:
    """Return the view of a resource with nothing but its properties, as comparisons with the cloud need it.

    :param properties: the properties in clear.
    """
    return ResourceView(
        id=row.id,
        name=row.name,
        type=row.plugin,
        stack=stack,
        properties=properties,
        key="",
        physical_id=row.physical_id,
    )


def planned(
    definition: ResourceDefinition,
    stack: StackFacts,
    properties: JsonMap,
    update_policy: JsonMap,
    row: Resource | None,
    unseal: Unseal,
) -> ResourceView:
    """Return the view of a resource as the step of a planned change would have it.

    :param properties: the properties of the plan, in clear, as the update policy.
    :param row: the resource as it is; None: it is new.
    :raises SealError: a key is not there.
    """
    view = ResourceView(
        id=0,
        name=definition.name,
        type=definition.type,
        stack=stack,
        properties=properties,
        key="",
        update_policy=update_policy,
        requested_attributes=definition.requested_attributes,
        template=definition.template,
    )
    if row is None:
        return view
    return replace(
        view,
        id=row.id,
        data=in_clear(row.data, unseal) or {},
        creation_key=row.key or "",
        physical_id=row.physical_id,
    )


def properties_in_clear(plugin: ResourceType, stored: Json, unseal: Unseal) -> JsonMap:
    """Return the properties that were last given to the type.

    :param stored: the properties as they are stored; None: none were given.
    :raises SealError: a key is not there.
    """
    return resolve_stored(plugin.properties_schema, evaluate(stored or {}, StoredLookup(unseal)))


@dataclass(frozen=True)
class StoredResource:
    """A row of a resource, read as its type sees it.

    :ivar unseal: opens the token of a secret.
    :ivar is_deleting: whether values that a lost key has sealed are left out: else nobody could delete the
        stack.
    """

    row: Resource
    stack: StackFacts
    plugin: ResourceType
    unseal: Unseal
    is_deleting: bool = False

    def view(self) -> ResourceView:
        """Return the resource as its type sees it where no step runs.

        :raises SealError: a key is not there.
        """
        return replace(
            outline(self.row, self.stack, self.properties()),
            key=self.row.key or "",
            metadata=self.metadata(),
            data=self.data(),
            template=self.row.template,
        )

    def properties(self) -> JsonMap:
        """Return the properties that were last given to the type, in clear.

        :raises SealError: a key is not there.
        """
        stored = self.row.properties
        return self.opened(
            lambda: properties_in_clear(self.plugin, stored, self.unseal),
            lambda: resolve_stored(self.plugin.properties_schema, self._readable(stored)),
        )

    def metadata(self) -> JsonMap:
        """Return the metadata in clear.

        :raises SealError: a key is not there.
        """
        if not self.row.metadata:
            return {}
        return self.opened(lambda: metadata_in_clear(self.row, self.unseal), dict)

    def data(self) -> JsonMap:
        """Return the data that the type has stored, in clear.

        :raises SealError: a key is not there.
        """
        return self.opened(lambda: in_clear(self.row.data, self.unseal) or {}, dict)

    def opened(self, read: Callable[[], T], without: Callable[[], T]) -> T:
        """Return what `read` opens; where its key is lost, a deletion continues with `without`.

        :raises SealError: a key is not there.
        """
        try:
            return read()
        except SealError as error:
            if not self.is_deleting:
                raise
            LOG.warning("Resource %s is deleted without a value: %s", self.row.name, error)
            return without()

    def _readable(self, stored: Json) -> JsonMap:
        values: dict[str, Json] = {}
        for name, subtree in members(stored).items():
            with contextlib.suppress(SealError):
                values[name] = evaluate(subtree, StoredLookup(self.unseal))
        return values


def note_properties(stored: Json, values: JsonMap, secrets: Secrets) -> None:
    """Note which properties of the resource hold secrets: attributes may pass them on in another form.

    :param stored: the properties as they are stored.
    :param values: the properties in clear.
    """
    if is_node(stored) and not members(stored):
        parts: JsonMap = dict.fromkeys(values, stored)
    else:
        parts = members(stored)
    secrets.stored = {name: subtree for name, subtree in parts.items() if holds_secret(subtree)}
    secrets.properties = {name: values.get(name) for name in secrets.stored}
    for name, value in secrets.properties.items():
        note_secrets(parts[name], value, secrets)


def note_secrets(stored: Json, value: Json, secrets: Secrets) -> None:
    """Remember what is sealed in a value, or made of something sealed, as a secret.

    :param stored: the value with its secrets sealed.
    """
    if not holds_secret(stored):
        return
    parts = members(stored)
    if parts and isinstance(value, Mapping) and parts.keys() <= value.keys():
        for key, subtree in parts.items():
            note_secrets(subtree, value[key], secrets)
    elif isinstance(stored, list) and isinstance(value, list) and len(stored) == len(value):
        for subtree, item in zip(stored, value, strict=True):
            note_secrets(subtree, item, secrets)
    else:
        secrets.add(value)  # Also where the schema has made another form of it.


def property_column(value: Json, secrets: Secrets, *, is_secret: bool) -> Json:
    """Return a property, or all of them, as another engine has resolved it.

    :param is_secret: whether a secret is in it by its definition.
    """
    if not is_secret:
        return quote(value)
    secrets.add(value)
    return secrets.seal(value)


def changed_properties(plugin: ResourceType, stored: Json, changed: JsonMap, secrets: Secrets) -> Json:
    """Return the column of properties of which some have changed in the cloud.

    :param stored: the properties as they are stored.
    :param changed: the values in the cloud, by name.
    """
    schema = plugin.properties_schema
    columns = {
        name: secrets.seal(value)
        if schema[name].sensitive or name in secrets.properties
        else secrets.protect_whole(value)
        for name, value in changed.items()
    }
    return mapping({**members(stored), **columns})


def metadata_refreshed(stored: Json, template: Json, lookup: Lookup, budget: Budget | None = None) -> Json:
    """Return metadata with the present values of what the template has; entries of others stay.

    :param stored: the metadata as they are stored.
    :param template: the metadata of the resource's definition.
    """
    metadata = partial(template, lookup, budget)
    entries = members(template)
    if not entries:  # A function makes them as a whole.
        return metadata
    others = {name: value for name, value in members(stored).items() if name not in entries}
    return mapping({**others, **members(metadata)}) if others else metadata


def metadata_changed(stored: Json, before: JsonMap, after: JsonMap, seal: Callable[[Json], str]) -> Json:
    """Return changed metadata in the form to be stored; unchanged entries stay as they are, sealed or not.

    :param stored: the metadata as they were stored.
    :param before, after: the metadata before and after the change, in clear.
    :param seal: function that makes the token of a secret.
    """
    if is_made(stored):
        return sealed(seal(dict(after)))
    entries = members(stored)
    same = {key for key in entries if key in after and after[key] is before.get(key)}
    return mapping({key: entries[key] if key in same else quote(value) for key, value in after.items()})


def keeps_signals(plugin: ResourceType) -> bool:
    """Return whether signals may change the metadata of the type's resources: nobody else does then."""
    return type(plugin).handle_signal is not ResourceType.handle_signal


def metadata_of_origin(metadata: JsonMap, template: Json, lookup: Lookup) -> Json:
    """Return metadata, as another engine shows them, in the form to be stored.

    Entries that the template makes of other values are made of these again: so their secrets are sealed.

    :param template: the metadata of the resource's definition.
    :param lookup: the values that it refers to, with their secrets sealed.
    """
    declared = members(template)
    if not declared and is_deferred(template):  # A function makes them as a whole.
        return partial(template, lookup)
    return mapping(
        {
            name: partial(declared[name], lookup) if is_deferred(declared.get(name)) else quote(value)
            for name, value in metadata.items()
        }
    )


def metadata_column(metadata: Json, secrets: Secrets) -> Json:
    """Return metadata whose origin is not known."""
    return secrets.protect_whole(metadata)


def data_column(plugin: ResourceType, data: JsonMap, secrets: Secrets) -> Json:
    """Return the data that the type keeps of a resource.

    It is sealed as a whole where an attribute that may be made of it is a secret: it may hold the secret in
    another form, in which nothing would find it again.
    """
    value = dict(data)
    return (
        secrets.seal(value)
        if is_sensitive(plugin) or _passes_on(plugin, secrets)
        else secrets.protect_whole(value)
    )


def value_columns(
    plugin: ResourceType, attributes: JsonMap, reference: Json, secrets: Secrets
) -> dict[str, Json]:
    """Return the columns of the values that others may refer to.

    :param attributes: the attributes by name.
    :param reference: the value of get_resource.
    """
    forms: dict[str, Json] = {}
    for name, attribute in plugin.attributes_schema.items():
        value = attributes.get(name)
        source = str(attribute.from_property)
        if not attribute.sensitive and source not in secrets.properties:
            continue
        # The declaration decides and not the value: an empty text or a boolean has nothing to be found by.
        if not attribute.sensitive and value == secrets.properties[source]:
            # The rest of a value that is passed on as it is is no secret.
            forms[name] = _sealed_as(secrets.stored[source], value, secrets)
        else:
            secrets.add(value)
            forms[name] = secrets.seal(value)
    columns = secrets.protect_each({name: attributes[name] for name in attributes if name not in forms})
    return {
        "attributes": {name: forms[name] if name in forms else columns[name] for name in attributes},
        "reference_id": secrets.protect(reference),
    }


def _sealed_as(stored: Json, value: Json, secrets: Secrets) -> Json:
    """Return an attribute's column, with that sealed which is sealed in the property that it passes on.

    :param stored: the property as it is stored.
    """
    if not holds_secret(stored):
        return secrets.protect(value)
    parts = members(stored)
    if parts and isinstance(value, Mapping) and parts.keys() == value.keys():
        if not secrets.holds(list(value)):
            return mapping({key: _sealed_as(parts[key], item, secrets) for key, item in value.items()})
    elif isinstance(stored, list) and isinstance(value, list) and len(stored) == len(value):
        return [_sealed_as(subtree, item, secrets) for subtree, item in zip(stored, value, strict=True)]
    return secrets.seal(value)


def is_sensitive(plugin: ResourceType) -> bool:
    """Return whether the data that resources of the type store has to be sealed."""
    return any(attribute.sensitive for attribute in plugin.attributes_schema.values())


def _passes_on(plugin: ResourceType, secrets: Secrets) -> bool:
    return any(item.from_property in secrets.properties for item in plugin.attributes_schema.values())
