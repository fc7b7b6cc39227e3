"""OS::Neutron::FloatingIP and OS::Neutron::FloatingIPAssociation."""

import typing
from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, ImpliedDependency, Property, PropertyError, ResourceView, Step, StepContext
from ..attached import AttachedType, Link, claimed_link
from ..bodies import NamedRemote, live_fields
from ..declared import REMOTE
from ..names import resolve
from ..service import RemoteNotFound
from .base import NeutronType
from .fits import NETWORK_FITS
from .lacking_rules import LACKING_RULES
from .network_rules import NETWORK_RULES
from .reachable import floating_ips_out_of_reach
from .schema import HIDDEN, NETWORK, SHOWN, SUBNET

PORT = Custom(check_name="neutron.port")
ADDRESS = Custom(check_name="ip_addr")


INTERFACES = (
    ImpliedDependency(f"port_id > fixed_ips.*.{SUBNET}", "OS::Neutron::RouterInterface", SUBNET),
    ImpliedDependency(f"port_id > {NETWORK}", "OS::Neutron::RouterInterface", f"{SUBNET} > {NETWORK}"),
    ImpliedDependency(f"port_id > {NETWORK}", "OS::Neutron::RouterInterface", f"port|port_id > {NETWORK}"),
)
"""A port can be reached from outside once a router has an interface in its subnet."""


class FloatingIP(NeutronType):
    """An address of an external network, which can be that of a port."""

    type_name = "OS::Neutron::FloatingIP"
    description = "A floating IP: an address of an external network for a port."
    path = "/floatingips"
    item = "floatingip"
    quota = {"floatingip": 1}
    implied_dependencies = (
        ImpliedDependency(
            "floating_network|floating_network_id",
            "OS::Neutron::Router",
            "external_gateway_info.network|network_id",
        ),
        ImpliedDependency("floating_network|floating_network_id", "OS::Neutron::Subnet", NETWORK),
        *INTERFACES,
    )
    stack_rules = (*NETWORK_RULES, *LACKING_RULES)
    cloud_rules = (*NETWORK_FITS, floating_ips_out_of_reach)
    lost_with_it = "its address goes"
    references = {
        "floating_network": NamedRemote("neutron.network"),
        "floating_subnet": NamedRemote("neutron.subnet", "subnet_id"),
        "port_id": NamedRemote("neutron.port", "port_id"),
    }
    apart = ("value_specs",)
    properties_schema = {
        "floating_network": Property(
            "string",
            "Name or id of the external network.",
            required=True,
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "floating_network_id": Property(
            "string", "Old name of floating_network.", support_status=HIDDEN, alias_of="floating_network"
        ),
        "floating_subnet": Property(
            "string",
            "Name or id of the subnet of the external network that the address is allocated from.",
            constraints=(Custom(check_name="neutron.subnet"),),
        ),
        "value_specs": Property(
            "map", "Extra fields of the request, by name, for API extensions.", default={}
        ),
        "port_id": Property(
            "string",
            "Name or id of the port that the floating IP is associated with.",
            update_allowed=True,
            constraints=(PORT,),
        ),
        "fixed_ip_address": Property(
            "string",
            "Fixed IP address of the port; required if the port has several.",
            update_allowed=True,
            constraints=(ADDRESS,),
        ),
        "floating_ip_address": Property(
            "string",
            "Floating IP address; if omitted, the service allocates one. Setting it is for administrators "
            "by default.",
            constraints=(ADDRESS,),
        ),
        "dns_name": Property(
            "string",
            "DNS name, relative to dns_domain.",
            update_allowed=True,
            constraints=(Custom(check_name="rel_dns_name"),),
        ),
        "dns_domain": Property(
            "string",
            "DNS domain, with a full stop at the end.",
            update_allowed=True,
            constraints=(Custom(check_name="dns_domain"),),
        ),
    }
    attributes_schema = {
        "router_id": Attribute("Id of the router that translates the address.", "string", volatile=True),
        "tenant_id": SHOWN["tenant_id"],
        "floating_network_id": Attribute("Id of the external network.", "string"),
        "fixed_ip_address": Attribute("Fixed IP address of the port.", "string", volatile=True),
        "floating_ip_address": Attribute("Floating IP address.", "string"),
        "port_id": Attribute(
            "Id of the port that the floating IP is associated with.", "string", volatile=True
        ),
        "show": SHOWN["show"],
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that a fixed address has a port, and a name its domain."""
        if properties.get("fixed_ip_address") and not properties.get("port_id", "unknown"):
            raise PropertyError("fixed_ip_address needs port_id")
        if properties.get("dns_name") and properties.get("dns_domain", "unknown") == "":
            raise PropertyError("dns_name needs dns_domain")

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; a port and its address go together."""
        together = {"port_id", "fixed_ip_address"}
        names = {*changed, *together} if together & set(changed) else changed
        body = super().update_body(target, names, context)
        if body.get("port_id") is None and body.get("fixed_ip_address") is None:
            body.pop("fixed_ip_address", None)
        return body


class FloatingIPAssociation(AttachedType):
    """The association of a floating IP with a port; the floating IP's id is its identity."""

    type_name = "OS::Neutron::FloatingIPAssociation"
    service = "network"
    description = "The association of a floating IP with a port."
    path = "/floatingips"
    item = "floatingip"
    identity = "the floating IP"
    cloud_rules = (floating_ips_out_of_reach,)
    other = "port_id"
    missing = "network: floating IP {0} is not associated with the port"
    implied_dependencies: typing.ClassVar[Sequence[ImpliedDependency]] = INTERFACES
    properties_schema = {
        "floatingip_id": Property("string", "Id of the floating IP.", required=True, update_allowed=True),
        "port_id": Property(
            "string", "Name or id of the port.", required=True, update_allowed=True, constraints=(PORT,)
        ),
        "fixed_ip_address": Property(
            "string",
            "Fixed IP address of the port; required if the port has several.",
            update_allowed=True,
            constraints=(ADDRESS,),
        ),
    }

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the floating IP and the port."""
        return properties["floatingip_id"], resolve(context, "neutron.port", properties["port_id"])

    def stored_link(self, target: ResourceView, context: StepContext) -> Link:
        """Return the link; one of Heat's follows from the properties, for its physical id is a number."""
        if REMOTE in target.data or claimed_link(target) is not None:
            return super().stored_link(target, context)
        return self.link(target.previous or target.properties, context)

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Associate; to repeat it changes nothing."""
        address = target.properties["fixed_ip_address"]
        body = {"port_id": link[1], **({"fixed_ip_address": address} if address else {})}
        return self.service_for(context).put(f"{self.path}/{link[0]}", {self.item: body})[self.item]

    def find(self, link: Link, context: StepContext) -> Json:
        """Return the floating IP, if it leads to the port."""
        try:
            floating_ip = self.get(self.service_for(context), link[0])
        except RemoteNotFound:
            return None
        return floating_ip if floating_ip["port_id"] == link[1] else None

    def detach(self, link: Link, context: StepContext) -> bool:
        """End the association, unless the floating IP has been associated with another port since."""
        if self.find(link, context) is not None:
            self.service_for(context).put(f"{self.path}/{link[0]}", {self.item: {"port_id": None}})
        return False

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Associate another port, or another floating IP in place of the present one."""
        if "floatingip_id" in changed:
            self.handle_delete(target, context)
        return self.check_create_complete(target, None, context)

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the port and its address as they are now."""
        floating_ip = self.stored_link(target, context)[0]
        return live_fields(self, target.properties, self.get(self.service_for(context), floating_ip))
