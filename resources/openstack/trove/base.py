"""The common parts of the types of the database service."""

from collections.abc import Mapping, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Property, PropertyError, ResourceView, StepContext
from ..compared import ComparedType
from ..names import resolve
from ..statuses import StatusMeaning

PENDING = (
    *("NEW", "BUILD", "REBOOT", "RESIZE", "BACKUP", "SHUTDOWN", "RESTART_REQUIRED"),
    *("BLOCKED", "PROMOTE", "EJECT", "UPGRADE", "DETACH"),
)
REASONS: Mapping[str, str] = {
    "FAILED": "The database instance was created, but heat failed to set up the datastore. If a database "
    "instance is in the FAILED state, it should be deleted and a new one should be created.",
    "ERROR": "The last operation for the database instance failed due to an error.",
}
"""Heat's words, where the service names no fault."""
FLAVOR = Custom(check_name="trove.flavor")
NETWORKS_SCHEMA = Property(
    "map",
    "Network interface.",
    schema={
        "network": Property(
            "string",
            "Name or id of the network; alternative to port.",
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "port": Property(
            "string",
            "Name or id of the port; alternative to network.",
            constraints=(Custom(check_name="neutron.port"),),
        ),
        "fixed_ip": Property("string", "Fixed IPv4 address.", constraints=(Custom(check_name="ip_addr"),)),
    },
)


class DatabaseType(ComparedType):
    """Base of the two types; names are not unique at the service."""

    service = "database"
    slow_delete = True
    identity = "the name; Stoker first stores which things have it"
    status = StatusMeaning(pending=PENDING, bad=("ERROR", "FAILED"))

    def name_of(self, target: ResourceView) -> str:
        """Return the thing's name; it has one in any case, by which it is found again."""
        return str(target.properties["name"] or target.physical_name)


def datastore_of(properties: JsonMap) -> dict[str, Json]:
    """Return the field with the kind of database."""
    parts = {"type": properties["datastore_type"], "version": properties["datastore_version"]}
    datastore = {name: value for name, value in parts.items() if value}
    return {"datastore": datastore} if datastore else {}


def interfaces_of(networks: Sequence[JsonMap], context: StepContext) -> dict[str, Json]:
    """Return the field with the network interfaces, of which names are resolved."""
    interfaces = []
    for entry in networks:
        interface = {}
        if entry["network"]:
            interface["net-id"] = resolve(context, "neutron.network", entry["network"])
        if entry["port"]:
            interface["port-id"] = resolve(context, "neutron.port", entry["port"])
        if entry["fixed_ip"]:
            interface["v4-fixed-ip"] = entry["fixed_ip"]
        interfaces.append(interface)
    return {"nics": interfaces} if interfaces else {}


def check_interfaces(networks: Sequence[JsonMap], path: tuple[str | int, ...]) -> None:
    """Check that each interface has a network or a port.

    :raises PropertyError: one has none of them, or both.
    """
    for number, entry in enumerate(networks):
        if "network" in entry and "port" in entry and (entry["network"] is None) == (entry["port"] is None):
            raise PropertyError("Either network or port must be provided.", (*path, number))


def check_datastore(properties: JsonMap) -> None:
    """Check that a version is given with its kind of database.

    :raises PropertyError: it is given alone.
    """
    if properties.get("datastore_version") and not properties.get("datastore_type", "unknown"):
        raise PropertyError("Not allowed - datastore_version without datastore_type.", ("datastore_version",))
