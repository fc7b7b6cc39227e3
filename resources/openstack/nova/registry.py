"""The table of the types of the compute service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .flavor import Flavor
from .keypair import KeyPair
from .server import Server
from .server_group import ServerGroup

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Nova::Flavor": Flavor,
    "OS::Nova::KeyPair": KeyPair,
    "OS::Nova::Server": Server,
    "OS::Nova::ServerGroup": ServerGroup,
}
