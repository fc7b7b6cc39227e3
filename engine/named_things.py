"""The things of a cloud that properties name, by their ids: what is compared is the thing, not the word.

A name and an id of the same thing are the same value of a property.  The step that begins an action looks up
the names; the ids that it has found are stored in the resource's data.  So what a name has meant stays known,
also where the thing is renamed later.
"""

import functools
import logging
from collections.abc import Mapping, Sequence

from ..resources.contract.context import CloudCalls
from ..resources.contract.errors import PermanentError
from ..resources.contract.plugin import ResourceType
from ..resources.contract.properties import SameThing, named_things, names_things
from ..resources.contract.schema import ANY_NAME, Property
from ..resources.openstack.names import KINDS, NameNotFound, NameNotUnique, is_id, lately_found, resolve
from ..shapes import JsonMap

LOG = logging.getLogger(__name__)
IDS = "ids"
"""Key in the data of a resource: the ids of the things that its properties name, as ``[kind, name, id]``."""
Ids = Mapping[tuple[str, str], str]
"""Ids by kind and name."""


def stored_ids(data: JsonMap) -> Ids:
    """Return the ids that were stored with a resource.

    The data may be those of an adopted document, which anybody writes: what is no id there is ignored.
    """
    entries = data.get(IDS)
    return {
        (entry[0], entry[1]): entry[2]
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, list) and len(entry) == 3 and all(isinstance(part, str) for part in entry)
    }


def uses_names(plugin: ResourceType, properties: JsonMap) -> bool:
    """Return whether a property has a value that may name a thing in the cloud."""
    naming = _naming(plugin)
    return ANY_NAME in naming or any(properties.get(name) for name in naming)


@functools.cache
def _naming(plugin: ResourceType) -> Sequence[str]:
    """Return the properties of a type that name things in the cloud, themselves or by what is in them."""
    return [name for name, prop in plugin.properties_schema.items() if names_things(prop)]


def with_ids(
    data: JsonMap, context: CloudCalls, schema: Mapping[str, Property], properties: JsonMap
) -> JsonMap:
    """Return a resource's data with the ids of what its properties name, as far as steps have found them.

    No service is asked.

    :param context: that of the step that has used the properties.
    """
    stored = stored_ids(data)
    ids = []
    for kind, value in dict.fromkeys(named_things(schema, properties)):
        if kind in KINDS and not is_id(value):
            thing_id = stored.get((kind, value)) or lately_found(context, kind, value)
            ids += [] if thing_id is None else [[kind, value, thing_id]]
    others = {name: item for name, item in data.items() if name != IDS}
    return {**others, IDS: ids} if ids else others


def check_found(context: CloudCalls, schema: Mapping[str, Property], properties: JsonMap) -> None:
    """Check that all things exist that properties name, before a step uses them.

    Below the root of a tree a request only warns of a name that leads nowhere, for the tree may make the
    thing; and nobody has asked about a name that another resource has given.  Where the cloud refuses to say,
    the call that uses the name finds out.

    :raises NameNotFound, NameNotUnique: no thing, or several, have a name.
    :raises RetryableError: the cloud does not answer.
    """
    for kind, value in dict.fromkeys(named_things(schema, properties)):
        if kind in KINDS:
            try:
                resolve(context, kind, value)
            except (NameNotFound, NameNotUnique):
                raise
            except PermanentError:
                LOG.debug("The service does not say whether it has a %s of the name", kind)


def same_thing(context: CloudCalls, data: JsonMap) -> SameThing:
    """Return a function that says whether two values name the same thing; it asks the cloud where it must.

    :param data: the data of the resource that has had the first of the values.
    """
    stored = stored_ids(data)

    def same(kind: str, before: str, after: str) -> bool:
        """Compare the ids; a name that leads nowhere any more is that of another thing.

        Where the cloud refuses to answer they differ: a replacement, which asks it the same, fails before
        anything is deleted.

        :raises NameNotFound, NameNotUnique: no thing, or several, have the new name.
        :raises RetryableError: the cloud does not answer.
        """
        if kind not in KINDS or (is_id(before) and is_id(after)):
            return plain_id(before) == plain_id(after)
        try:
            old = stored.get((kind, before)) or resolve(context, kind, before)
        except PermanentError:
            return False
        try:
            new = resolve(context, kind, after)
        except (NameNotFound, NameNotUnique):
            raise
        except PermanentError:
            return False
        return plain_id(old) == plain_id(new)

    return same


def known_to_be_same(data: JsonMap, kind: str, before: str, after: str) -> bool | None:
    """Return whether two values name one thing, as far as that is known; None: the cloud has to be asked.

    :param data: the data of the resource that has had the first of the values.
    """
    stored = stored_ids(data)
    old, new = (value if is_id(value) else stored.get((kind, value)) for value in (before, after))
    if kind not in KINDS:
        return False
    return None if old is None or new is None else plain_id(old) == plain_id(new)


def plain_id(value: str) -> str:
    """Return an id in one form, whatever hyphens and capitals it has; a name as it is."""
    return value.replace("-", "").lower() if is_id(value) else value
