"""The properties of a server as the services report them, for updates with ``converge``."""

from collections.abc import Mapping, Sequence

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ..bodies import without_nulls
from ..names import NameNotFound, resolve
from .attributes import users_tags
from .body import metadata_field
from .networks import Nic, ServerInterface, pair
from .ports import ServerPorts, nics_of


def live_properties(
    target: ResourceView, context: StepContext, server: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the properties as they are; one that is as it was given has the given value.

    :param server: the server as it is.
    """
    properties = target.properties
    live: dict[str, Json] = {}
    if properties["name"]:
        live["name"] = server["name"]
    live["flavor"] = _live_flavor(properties["flavor"], context, server)
    image = (server.get("image") or {}).get("id")
    if image and properties["image"]:
        live["image"] = (
            properties["image"] if _resolved("glance.image", properties["image"], context) == image else image
        )
    same_metadata = metadata_field(properties["metadata"]) == server["metadata"]
    live["metadata"] = properties["metadata"] if same_metadata else server["metadata"]
    tags = users_tags(server.get("tags") or ())
    live["tags"] = properties["tags"] if sorted(properties["tags"] or ()) == sorted(tags) else tags
    if properties["networks"]:
        interfaces = ServerPorts.of(target, context).interfaces(str(target.physical_id))
        live["networks"] = _live_networks(
            properties["networks"], nics_of(properties["networks"], context, strict=False), interfaces
        )
    return live


def _live_flavor(declared: str, context: StepContext, server: Mapping[str, Json]) -> str:
    flavor = server["flavor"]
    named = str(flavor.get("original_name") or flavor.get("id"))
    same = _resolved("nova.flavor", declared, context)
    return declared if same is not None and same == _resolved("nova.flavor", named, context) else named


def _resolved(kind: str, value: str, context: StepContext) -> str | None:
    try:
        return resolve(context, kind, value)
    except NameNotFound:
        return None


def _live_networks(
    entries: Sequence[Mapping[str, Json]], nics: Sequence[Nic], interfaces: Sequence[ServerInterface]
) -> list[Json]:
    """Return the entries that have their interface, and one for each interface that none asks for."""
    if any(entry["allocate_network"] for entry in entries):
        return [without_nulls(entry) for entry in entries]
    held = pair(nics, interfaces)
    others = [item for item in interfaces if item not in held.values()]
    return [
        *(without_nulls(entries[place]) for place in sorted(held)),
        *({"port": item.port} for item in others),
    ]
