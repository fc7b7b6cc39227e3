"""OS::Neutron::FloatingIP and OS::Neutron::FloatingIPAssociation."""

from collections.abc import Collection, Mapping

from ....template.constraints import Custom
from ...context import Json, ResourceView, StepContext
from ...errors import PropertyError
from ...implied import ImpliedDependency
from ...schema import Attribute, Property
from ...steps import Done, Step
from ..bodies import NamedThing
from ..declared import THING
from ..names import resolve
from ..service import Conflict, ThingNotFound, in_use
from .base import HIDDEN, NETWORK, SHOWN, SUBNET, NeutronType

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

    description = "An address of an external network, which can be associated with a port."
    path, item = "/floatingips", "floatingip"
    implied_dependencies = (
        ImpliedDependency(
            "floating_network|floating_network_id",
            "OS::Neutron::Router",
            "external_gateway_info.network|network_id",
        ),
        ImpliedDependency("floating_network|floating_network_id", "OS::Neutron::Subnet", NETWORK),
        *INTERFACES,
    )
    references = {
        "floating_network": NamedThing("neutron.network"),
        "floating_subnet": NamedThing("neutron.subnet", "subnet_id"),
        "port_id": NamedThing("neutron.port", "port_id"),
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
            "string", "The old name of floating_network.", support_status=HIDDEN, alias_of="floating_network"
        ),
        "floating_subnet": Property(
            "string",
            "Name or id of the external network's subnet that gives the address.",
            constraints=(Custom(check_name="neutron.subnet"),),
        ),
        "value_specs": Property(
            "map", "Further fields of the body, by name, for extensions of the service.", default={}
        ),
        "port_id": Property(
            "string", "Name or id of the port that it leads to.", update_allowed=True, constraints=(PORT,)
        ),
        "fixed_ip_address": Property(
            "string",
            "The port's address that it leads to; none: its only one.",
            update_allowed=True,
            constraints=(ADDRESS,),
        ),
        "floating_ip_address": Property(
            "string",
            "The address; none: the service chooses; by default for administrators only.",
            constraints=(ADDRESS,),
        ),
        "dns_name": Property(
            "string",
            "Its name in DNS.",
            update_allowed=True,
            constraints=(Custom(check_name="rel_dns_name"),),
        ),
        "dns_domain": Property(
            "string",
            "Its domain in DNS.",
            update_allowed=True,
            constraints=(Custom(check_name="dns_domain"),),
        ),
    }
    attributes_schema = {
        "router_id": Attribute("Id of the router behind which its port is.", "string", volatile=True),
        "tenant_id": SHOWN["tenant_id"],
        "floating_network_id": Attribute("Id of the external network.", "string"),
        "fixed_ip_address": Attribute("The port's address that it leads to.", "string", volatile=True),
        "floating_ip_address": Attribute("The address.", "string"),
        "port_id": Attribute("Id of the port that it leads to.", "string", volatile=True),
        "show": SHOWN["show"],
    }

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check that a fixed address has a port, and a name its domain."""
        if properties.get("fixed_ip_address") and not properties.get("port_id", "unknown"):
            raise PropertyError("fixed_ip_address needs port_id")
        if properties.get("dns_name") and properties.get("dns_domain", "unknown") == "":
            raise PropertyError("dns_name needs dns_domain")

    def update_body(
        self, target: ResourceView, changed: Collection[str], work: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; a port and its address go together."""
        together = {"port_id", "fixed_ip_address"}
        names = {*changed, *together} if together & set(changed) else changed
        body = super().update_body(target, names, work)
        if body.get("port_id") is None and body.get("fixed_ip_address") is None:
            body.pop("fixed_ip_address", None)
        return body


class FloatingIPAssociation(NeutronType):
    """The association of a floating IP with a port; the floating IP's id is its identity."""

    description = "The association of a floating IP with a port."
    path, item = "/floatingips", "floatingip"
    mark = None
    identity = "the floating IP"
    implied_dependencies = INTERFACES
    properties_schema = {
        "floatingip_id": Property("string", "Id of the floating IP.", required=True, update_allowed=True),
        "port_id": Property(
            "string", "Name or id of the port.", required=True, update_allowed=True, constraints=(PORT,)
        ),
        "fixed_ip_address": Property(
            "string", "The port's address; none: its only one.", update_allowed=True, constraints=(ADDRESS,)
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Associate; to repeat it changes nothing."""
        properties = target.properties
        body = {"port_id": resolve(work, "neutron.port", properties["port_id"])}
        if properties["fixed_ip_address"]:
            body["fixed_ip_address"] = properties["fixed_ip_address"]
        floating_ip = properties["floatingip_id"]
        answer = self.service_for(work).put(f"{self.path}/{floating_ip}", {self.item: body})
        return Done(physical_id=floating_ip, data={THING: answer[self.item]})

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Associate another port, or another floating IP in place of the present one."""
        if "floatingip_id" in changed:
            self.handle_delete(target, work)
        return self.handle_create(target, work)

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """End the association, unless the floating IP has been associated with another port since."""
        if target.physical_id is None:
            return Done()
        service, ours = self.service_for(work), (target.data.get(THING) or {}).get("port_id")
        try:
            if self.get(service, target.physical_id)["port_id"] == ours:
                service.put(self.path_of(target), {self.item: {"port_id": None}})
        except ThingNotFound:
            return Done()
        except Conflict as error:
            raise in_use(error) from error
        return Done()

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Check that the floating IP leads to the port.

        :raises ThingNotFound: it does not.
        """
        if self.needs_replace_failed(target, work):
            raise ThingNotFound(f"network: floating IP {target.physical_id} is not associated with the port")
        return Done()

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Return None: to associate once more changes nothing."""
        return None

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Return whether the floating IP does not lead to the port."""
        if target.physical_id is None:
            return True
        try:
            found = self.get(self.service_for(work), target.physical_id)
        except ThingNotFound:
            return True
        return bool(found["port_id"] != (target.data.get(THING) or {}).get("port_id"))
