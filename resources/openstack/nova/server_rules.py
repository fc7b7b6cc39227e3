"""Rules over the properties of one server, and over values that Nova refuses in any case; pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ....shapes import JsonMap
from ....template.language import ResourceDefinition
from ....template.residual import is_node
from ...contract import PropertyError, rule_of_each
from ...guests import check_transport
from ..neutron.lacking_rules import LACKING_RULES
from ..neutron.network_rules import NETWORK_RULES, SERVER
from .body import encoded, metadata_field
from .user_data import RAW, least_user_data

SOURCES = ("volume_id", "snapshot_id", "image", "swap_size")
"""Properties that say what a disk is made of, but for an ephemeral one."""
NETWORK_FORMS = ("network", "port", "subnet", "allocate_network")
# The lengths are those of Nova's schemas (api/validation/parameter_types.py and objects/tag.py there).
_MOST_USER_DATA = 65535
"""Characters of user_data in base64."""
_CERTAINLY_TEXT = 8_000
"""Characters from which user_data is no id of a software config, and may be too long with what is added."""
_METADATA_NAME = re.compile("^[a-zA-Z0-9-_:. ]{1,255}$")
_MOST_METADATA = 255


def server_errors(properties: JsonMap) -> Iterator[PropertyError]:
    """Yield the errors of the lengths and characters of texts.

    :param properties: the known properties; those that are unknown are absent.
    """
    yield from _user_data_errors(properties)
    for name, text in metadata_field(properties.get("metadata")).items():
        path = ("metadata", name)
        if not _METADATA_NAME.search(name):
            rule = "1 to 255 letters, digits, spaces and any of - _ : ."
            yield PropertyError(f"Nova takes no such name of metadata: it may have {rule}", path)
        elif len(text) > _MOST_METADATA:
            limit = f"{len(text)} characters, above Nova's limit of {_MOST_METADATA}"
            yield PropertyError(
                f"the value has {limit}: pass it as user_data, or as the resource's metadata", path
            )
    for index, tag in enumerate(properties.get("tags") or ()):
        if tag and ("," in tag or "/" in tag):
            yield PropertyError("a tag of Nova's may have no comma and no slash", ("tags", index))


def _user_data_errors(properties: JsonMap) -> Iterator[PropertyError]:
    user_data = properties.get("user_data")
    if not user_data or len(user_data) < _CERTAINLY_TEXT:
        return
    text = user_data.encode(errors="replace").decode()
    size = len(encoded(least_user_data(properties.get("user_data_format", RAW), text)))
    if size > _MOST_USER_DATA:
        limit = f"{size} characters in base64, above Nova's limit of {_MOST_USER_DATA}"
        hint = "let it fetch its larger parts from a server or a container"
        yield PropertyError(f"user_data has {limit}: {hint}", ("user_data",))


SERVER_RULES = (rule_of_each(SERVER, server_errors), *NETWORK_RULES, *LACKING_RULES)


def check_server(properties: JsonMap) -> None:
    """Check the rules.

    :param properties: the properties; those whose values are unknown are absent.
    :raises PropertyError: a rule is broken; the reason names the property and the rule.
    """
    check_devices(properties)
    if properties.get("user_data_format") == "SOFTWARE_CONFIG":
        check_transport(properties)
    networks = properties.get("networks") or ()
    for index, network in enumerate(networks):
        _check_network(network, ("networks", index))
    if len(networks) > 1 and any(network["allocate_network"] for network in networks):
        raise PropertyError("allocate_network must be in the only entry", ("networks",))
    if properties.get("security_groups") and any(network["port"] for network in networks):
        text = "security_groups cannot be given with a port in networks; give them to the port"
        raise PropertyError(text, ("security_groups",))


def check_metadata(definition: ResourceDefinition) -> None:
    """Check that the metadata of a server with an agent for deployments leave room for them.

    :raises PropertyError: the metadata have the key deployments; the reason is Heat's.
    """
    has_deployments = isinstance(definition.metadata, Mapping) and "deployments" in definition.metadata
    properties = {} if is_node(definition.properties) else definition.properties
    if has_deployments and properties.get("user_data_format") == "SOFTWARE_CONFIG":
        text = "deployments key not allowed in resource metadata with user_data_format of SOFTWARE_CONFIG"
        raise PropertyError(text, ("user_data_format",))


def _check_network(network: JsonMap, path: Sequence[str | int]) -> None:
    where = tuple(path)
    if all(network[name] is None for name in NETWORK_FORMS):
        raise PropertyError(f"one of {', '.join(NETWORK_FORMS)} is needed", where)
    if network["allocate_network"] and len([name for name in network if network[name] is not None]) > 1:
        raise PropertyError("allocate_network cannot be given with anything else", where)
    if network["fixed_ip"] and network["port"] is not None:
        raise PropertyError("fixed_ip and port cannot both be given; the port has its addresses", where)
    forms = ("port", "subnet", "port_extra_properties")
    if network["floating_ip"] is not None and all(not network[name] for name in forms):
        text = "floating_ip needs a port or a subnet: the port that Nova makes for a network is not known"
        raise PropertyError(text, where)


def check_devices(properties: JsonMap) -> None:
    """Check that each disk has one source, and the server one disk to boot from.

    :param properties: the properties; those whose values are unknown are absent.
    :raises PropertyError: a rule is broken; the reason names the property and the rule.
    """
    if any(name not in properties for name in ("image", "block_device_mapping", "block_device_mapping_v2")):
        return
    image = properties["image"]
    older = properties["block_device_mapping"] or []
    newer = properties["block_device_mapping_v2"] or []
    if older and newer:
        raise PropertyError("block_device_mapping and block_device_mapping_v2 cannot both be given")
    for index, mapping in enumerate(older):
        if (mapping["volume_id"] is None) == (mapping["snapshot_id"] is None):
            text = "exactly one of volume_id and snapshot_id is needed"
            raise PropertyError(text, ("block_device_mapping", index))
    for index, mapping in enumerate(newer):
        _check_source(mapping, index)
    bootable = [mapping for mapping in newer if _is_bootable(mapping)]
    if len(bootable) + (image is not None) > 1 and newer:
        text = "more than one of image and the disks has boot_index 0, which is the default"
        raise PropertyError(text, ("block_device_mapping_v2",))
    if image is None and not bootable and not any(item["device_name"] == "vda" for item in older):
        raise PropertyError("neither an image nor a disk to boot from is given")


def _check_source(mapping: JsonMap, index: int) -> None:
    sources = [name for name in SOURCES if mapping[name] is not None]
    if mapping["ephemeral_size"] or mapping["ephemeral_format"]:
        sources.append("ephemeral_size")
    if len(sources) != 1:
        source_names = ", ".join(sources) or "none"
        names = "volume_id, snapshot_id, image, swap_size, and ephemeral_size or ephemeral_format"
        raise PropertyError(
            f"exactly one of {names} is needed; given: {source_names}", ("block_device_mapping_v2", index)
        )


def _is_bootable(mapping: JsonMap) -> bool:
    has_data = any(mapping[name] is not None for name in ("volume_id", "snapshot_id", "image"))
    return has_data and mapping["boot_index"] in (None, 0)
