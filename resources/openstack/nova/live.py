"""The properties of a server as the services report them, for updates with ``converge``."""

from collections.abc import Mapping, Sequence

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ..bodies import given
from ..names import NameNotFound, resolve
from .attributes import users_tags
from .body import metadata_field
from .networks import Nic, ServerInterface, pair
from .ports import ServerPorts, nics_of


def live_properties(target: ResourceView, context: StepContext, thing: Mapping[str, Json]) -> dict[str, Json]:
    """Return the properties as they are; one that is as it was given has the given value.

    :param thing: the server as it is.
    """
    asked = target.properties
    found: dict[str, Json] = {}
    if asked["name"]:
        found["name"] = thing["name"]
    found["flavor"] = _live_flavor(asked["flavor"], context, thing)
    image = (thing.get("image") or {}).get("id")
    if image and asked["image"]:
        found["image"] = (
            asked["image"] if _resolved("glance.image", asked["image"], context) == image else image
        )
    same_metadata = metadata_field(asked["metadata"]) == thing["metadata"]
    found["metadata"] = asked["metadata"] if same_metadata else thing["metadata"]
    tags = users_tags(thing.get("tags") or ())
    found["tags"] = asked["tags"] if sorted(asked["tags"] or ()) == sorted(tags) else tags
    if asked["networks"]:
        interfaces = ServerPorts.of(target, context).interfaces(str(target.physical_id))
        found["networks"] = _live_networks(
            asked["networks"], nics_of(asked["networks"], context, strict=False), interfaces
        )
    return found


def _live_flavor(asked: str, context: StepContext, thing: Mapping[str, Json]) -> str:
    flavor = thing["flavor"]
    named = str(flavor.get("original_name") or flavor.get("id"))
    same = _resolved("nova.flavor", asked, context)
    return asked if same is not None and same == _resolved("nova.flavor", named, context) else named


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
        return [given(entry) for entry in entries]
    held = pair(nics, interfaces)
    others = [item for item in interfaces if item not in held.values()]
    return [*(given(entries[place]) for place in sorted(held)), *({"port": item.port} for item in others)]
