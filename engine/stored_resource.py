"""The columns of what a resource's type has returned: the only module that decides what of it is sealed.

Steps, signals, comparisons with the cloud and imports store properties, metadata, data, attributes and
references through it.  So a value that one of them seals is never stored in clear by another one.
"""

from collections.abc import Mapping

from ..resources.contract.plugin import ResourceType
from ..sealing.secrets import Secrets
from ..shapes import Json, JsonMap
from ..template.budget import Budget
from ..template.residual import Lookup, holds_secret, is_node, mapping, members, partial, quote


def note_properties(stored: Json, values: JsonMap, secrets: Secrets) -> None:
    """Note which properties of the resource hold secrets: attributes may pass them on in another form.

    :param stored: the properties as they are stored.
    :param values: the properties in clear.
    """
    if is_node(stored) and not members(stored):
        parts: JsonMap = dict.fromkeys(values, stored)
    else:
        parts = members(stored)
    secrets.stored = {name: part for name, part in parts.items() if holds_secret(part)}
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
        for key, part in parts.items():
            note_secrets(part, value[key], secrets)
    elif isinstance(stored, list) and isinstance(value, list) and len(stored) == len(value):
        for part, item in zip(stored, value, strict=True):
            note_secrets(part, item, secrets)
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


def keeps_signals(plugin: ResourceType) -> bool:
    """Return whether signals may change the metadata of the type's resources: nobody else does then."""
    return type(plugin).handle_signal is not ResourceType.handle_signal


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
        return [_sealed_as(part, item, secrets) for part, item in zip(stored, value, strict=True)]
    return secrets.seal(value)


def is_sensitive(plugin: ResourceType) -> bool:
    """Return whether the data that resources of the type store has to be sealed."""
    return any(attribute.sensitive for attribute in plugin.attributes_schema.values())


def _passes_on(plugin: ResourceType, secrets: Secrets) -> bool:
    return any(item.from_property in secrets.properties for item in plugin.attributes_schema.values())
