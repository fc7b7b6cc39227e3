"""The columns of what a resource's type has returned: the only module that decides what of it is sealed.

Steps, signals, comparisons with the cloud and imports store properties, metadata, data, attributes and
references through it.  So a value that one of them seals is never stored in clear by another one.
"""

from collections.abc import Iterable

from ...resources.plugin import ResourceType
from ...shapes import Json, JsonMap
from ...template.residual import holds_secret, is_node, mapping, members, quote
from .secrets import Secrets


def note_properties(stored: Json, names: Iterable[str], secrets: Secrets) -> None:
    """Note which properties of the resource hold secrets: attributes may pass them on in another form.

    :param stored: the properties as they are stored.
    :param names: names of the properties, for those that one function makes as a whole.
    """
    if is_node(stored) and not members(stored):
        secrets.properties = frozenset(names if holds_secret(stored) else ())
    else:
        secrets.properties = frozenset(name for name, value in members(stored).items() if holds_secret(value))


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
        else secrets.protect(value)
        for name, value in changed.items()
    }
    return mapping({**members(stored), **columns})


def metadata_column(metadata: Json, secrets: Secrets) -> Json:
    """Return metadata whose origin is not known."""
    return secrets.protect(metadata)


def data_column(plugin: ResourceType, data: JsonMap, secrets: Secrets) -> Json:
    """Return the data that the type keeps of a resource.

    It is sealed as a whole where an attribute that may be made of it is a secret: it may hold the secret in
    another form, in which nothing would find it again.
    """
    value = dict(data)
    return (
        secrets.seal(value) if is_sensitive(plugin) or _passes_on(plugin, secrets) else secrets.protect(value)
    )


def value_columns(
    plugin: ResourceType, attributes: JsonMap, reference: Json, secrets: Secrets
) -> dict[str, Json]:
    """Return the columns of the values that others may refer to.

    :param attributes: the attributes by name.
    :param reference: the value of get_resource.
    """
    for name, attribute in plugin.attributes_schema.items():
        if attribute.sensitive or attribute.from_property in secrets.properties:
            secrets.add(attributes.get(name))
    return {
        "attributes": secrets.protect_each(attributes),
        "reference_id": secrets.protect(reference),
    }


def is_sensitive(plugin: ResourceType) -> bool:
    """Return whether the data that resources of the type store has to be sealed."""
    return any(attribute.sensitive for attribute in plugin.attributes_schema.values())


def _passes_on(plugin: ResourceType, secrets: Secrets) -> bool:
    return any(item.from_property in secrets.properties for item in plugin.attributes_schema.values())
