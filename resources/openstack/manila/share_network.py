"""OS::Manila::ShareNetwork: the network that servers of shares are on."""

from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    PermanentError,
    Property,
    PropertyError,
    ResourceView,
    StepContext,
    SupportStatus,
)
from ..bodies import NamedRemote
from ..names import resolve
from ..service import Interface, object_of, service_of
from .base import DescribedManilaType

NETWORK = "neutron_network"
SUBNET = "neutron_subnet"
OLD_NETWORK = "nova_network"
SERVICES = "security_services"


class ShareNetwork(DescribedManilaType):
    """A network of shares' servers."""

    type_name = "OS::Manila::ShareNetwork"
    description = "A share network: the network of share servers, with their security services."
    # Newer versions have a list of subnets in place of Heat's attributes.
    interface = Interface("2", "2.50")
    path = "/share-networks"
    item = "share_network"
    quota = {"share_networks": 1}
    list_path = "/share-networks/detail"
    references = {
        NETWORK: NamedRemote("neutron.network", "neutron_net_id"),
        SUBNET: NamedRemote("neutron.subnet", "neutron_subnet_id"),
    }
    apart = (SERVICES, OLD_NETWORK)
    properties_schema = {
        "name": Property("string", "Name.", update_allowed=True),
        NETWORK: Property(
            "string",
            "Name or id of the network.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.network"),),
        ),
        SUBNET: Property(
            "string",
            "Name or id of the subnet.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.subnet"),),
        ),
        OLD_NETWORK: Property(
            "string",
            "Id of a Nova network.",
            update_allowed=True,
            support_status=SupportStatus("HIDDEN", version="21.0.0", message="No cloud has such networks."),
        ),
        "description": Property("string", "Description.", update_allowed=True),
        SERVICES: Property(
            "list",
            "Names or ids of the security services.",
            default=[],
            update_allowed=True,
            schema=Property("string", "Name or id of a security service."),
        ),
    }
    attributes_schema = {
        name: Attribute(text, "string", volatile=True)
        for name, text in {
            "segmentation_id": "Segmentation id: VLAN number, or tunnel key (VNI).",
            "cidr": "Address range of the subnet, as CIDR.",
            "ip_version": "IP version.",
            "network_type": "Type of the physical network.",
        }.items()
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that a network has its subnet."""
        if properties.get(OLD_NETWORK):
            raise PropertyError("Nova network is no longer supported", (OLD_NETWORK,))
        if properties.get(NETWORK) and not properties.get(SUBNET, "unknown"):
            raise PropertyError(f"{NETWORK} cannot be specified without {SUBNET}.", (NETWORK,))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {**super().create_body(target, context), **self._place(target, context)}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; network and subnet change together."""
        body = super().update_body(target, changed, context)
        return {**body, **self._place(target, context)} if {NETWORK, SUBNET} & set(changed) else body

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has a description or security services."""
        return super().has_more(target) or bool(target.properties[SERVICES])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set the description, and add the security services."""
        super().after_create(target, context)
        self._set_services(target, context)

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Add and remove security services, if they have changed."""
        if SERVICES in changed:
            self._set_services(target, context)

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the present fields and security services; equal ones in the template's form."""
        present = self._services(target, context)
        expected = self._expected_services(target, context)
        services = target.properties[SERVICES] if present == expected else sorted(present)
        return {**super().live_properties(target, context), SERVICES: services}

    def _place(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of the network and its subnet.

        :raises PermanentError: the subnet is not of the network.
        """
        names = {name: target.properties[name] for name in (NETWORK, SUBNET)}
        ids = {name: resolve(context, f"neutron.{name[8:]}", value) for name, value in names.items() if value}
        if SUBNET in ids:
            answer = service_of(context, "network").get(f"/subnets/{ids[SUBNET]}")
            network = object_of(answer, "subnet")["network_id"]
            if ids.setdefault(NETWORK, network) != network:
                raise PermanentError(f"Provided {SUBNET} does not belong to provided {NETWORK}.")
        return {self.references[name].field or name: ids.get(name) for name in names}

    def _set_services(self, target: ResourceView, context: StepContext) -> None:
        """Remove and add security services; the service takes one of each kind, so others go first."""
        service = self.service_for(context)
        present = self._services(target, context)
        expected = self._expected_services(target, context)
        path = f"{self.path_of(target)}/action"
        for security_service in sorted(present - expected):
            service.post(path, {"remove_security_service": {"security_service_id": security_service}})
        for security_service in sorted(expected - present):
            service.post(path, {"add_security_service": {"security_service_id": security_service}})

    def _services(self, target: ResourceView, context: StepContext) -> set[str]:
        """Return the ids of the security services that it has."""
        query = {"share_network_id": self.id_of(target)}
        listed = self.service_for(context).list_all("/security-services", SERVICES, **query)
        return {str(security_service["id"]) for security_service in listed}

    def _expected_services(self, target: ResourceView, context: StepContext) -> set[str]:
        """Return the ids of the security services that it is to have."""
        names = target.properties[SERVICES] or ()
        return {resolve(context, "manila.security_service", name) for name in names}
