"""Rules over several properties of a server."""

from collections.abc import Mapping, Sequence

from ....template.language import ResourceDefinition
from ....template.residual import is_node
from ...contract.views import Json
from ...errors import PropertyError
from ...guests import check_transport
from .block_devices import check_devices

NETWORK_FORMS = ("network", "port", "subnet", "allocate_network")


def check_server(properties: Mapping[str, Json]) -> None:
    """Check the rules.

    :param properties: unknown ones are absent.
    :raises PropertyError: with the property's name and what is right.
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

    :raises PropertyError: with Heat's words.
    """
    has_deployments = isinstance(definition.metadata, Mapping) and "deployments" in definition.metadata
    properties = {} if is_node(definition.properties) else definition.properties
    if has_deployments and properties.get("user_data_format") == "SOFTWARE_CONFIG":
        text = "deployments key not allowed in resource metadata with user_data_format of SOFTWARE_CONFIG"
        raise PropertyError(text, ("user_data_format",))


def _check_network(network: Mapping[str, Json], path: Sequence[str | int]) -> None:
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
