"""OS::Neutron::Router and OS::Neutron::RouterInterface."""

import functools
from collections.abc import Collection, Mapping

from ....template.constraints import Custom
from ...context import Json, ResourceView, StepContext
from ...errors import PropertyError
from ...implied import ImpliedDependency
from ...schema import Attribute, Property
from ...steps import Done, Step
from ..declared import THING
from ..names import resolve
from ..service import Conflict, ThingNotFound, in_use
from .base import BUILT, HIDDEN, NETWORK, SHOWN, TAGS, TENANT, VALUE_SPECS, NeutronType

SUBNET = Custom(check_name="neutron.subnet")
EXTERNAL_FIXED_IP = {
    "ip_address": Property("string", "The address.", constraints=(Custom(check_name="ip_addr"),)),
    "subnet": Property("string", "Name or id of the subnet that gives the address.", constraints=(SUBNET,)),
}
GATEWAY = {
    "network": Property("string", "Name or id of the external network.", required=True, update_allowed=True),
    "enable_snat": Property(
        "boolean",
        "Inner addresses are translated; by default for administrators only.",
        update_allowed=True,
    ),
    "external_fixed_ips": Property(
        "list",
        "Its addresses in the external network.",
        update_allowed=True,
        schema=Property("map", "An address.", schema=EXTERNAL_FIXED_IP),
    ),
}


class Router(NeutronType):
    """A router between networks of a project, and to an external one."""

    description = "A router between networks, and to an external one."
    path, item = "/routers", "router"
    port_query = ("device_id", "{}")
    status = BUILT
    implied_dependencies = (
        ImpliedDependency("external_gateway_info.network|network_id", "OS::Neutron::Subnet", NETWORK),
    )
    apart = ("tags", "value_specs", "external_gateway_info", "l3_agent_ids")
    properties_schema = {
        "name": Property(
            "string", "Name; none: made of the stack's and the resource's.", update_allowed=True
        ),
        "external_gateway_info": Property(
            "map", "Its way to the external network.", update_allowed=True, schema=GATEWAY
        ),
        "value_specs": VALUE_SPECS,
        "admin_state_up": Property("boolean", "The router is up.", default=True, update_allowed=True),
        "l3_agent_ids": Property(
            "list",
            "Ids of the L3 agents that run it; for administrators only.",
            update_allowed=True,
            schema=Property("string", "Id of an agent."),
        ),
        "distributed": Property("boolean", "It is distributed; by default for administrators only."),
        "ha": Property("boolean", "It is highly available; by default for administrators only."),
        "availability_zone_hints": Property(
            "list", "Availability zones, the best first.", update_allowed=True
        ),
        "tags": TAGS,
        "tenant_id": TENANT,
    }
    attributes_schema = {
        **SHOWN,
        "status": Attribute("Its status.", "string"),
        "external_gateway_info": Attribute("Its way to the external network.", "map"),
        "admin_state_up": Attribute("The router is up.", "string"),
    }

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check that agents fit the kind of router."""
        agents = properties.get("l3_agent_ids") or ()
        if agents and properties.get("distributed"):
            raise PropertyError("l3_agent_ids cannot be given for a distributed router")
        if len(agents) > 1 and properties.get("ha") is False:
            raise PropertyError("a router that is not ha has one of l3_agent_ids at most")

    def create_body(self, target: ResourceView, work: StepContext) -> dict[str, Json]:
        """Return the fields of a new router."""
        body = super().create_body(target, work)
        if target.properties["external_gateway_info"] is not None:
            body["external_gateway_info"] = _gateway(target, work)
        return body

    def update_body(
        self, target: ResourceView, changed: Collection[str], work: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change."""
        body = super().update_body(target, changed, work)
        if "external_gateway_info" in changed:
            body["external_gateway_info"] = _gateway(target, work)
        return body

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it gets tags, or agents."""
        return super().has_more(target) or bool(target.properties["l3_agent_ids"])

    def after_create(self, target: ResourceView, work: StepContext) -> None:
        """Set tags and agents."""
        if super().has_more(target):
            super().after_create(target, work)
        self._set_agents(target, work)

    def after_update(self, target: ResourceView, changed: Collection[str], work: StepContext) -> None:
        """Set tags and agents, if they have changed."""
        super().after_update(target, changed, work)
        if "l3_agent_ids" in changed:
            self._set_agents(target, work)

    def _set_agents(self, target: ResourceView, work: StepContext) -> None:
        wanted = target.properties["l3_agent_ids"] or []
        if not wanted:
            return
        service = self.service_for(work)
        present = [agent["id"] for agent in service.get(f"{self.path_of(target)}/l3-agents")["agents"]]
        for agent in set(present) - set(wanted):
            service.delete(f"/agents/{agent}/l3-routers/{self.id_of(target)}")
        for agent in wanted:
            if agent not in present:
                service.post(f"/agents/{agent}/l3-routers", {"router_id": self.id_of(target)})


def _gateway(target: ResourceView, work: StepContext) -> dict[str, Json]:
    """Return the gateway with ids in place of names; an empty one is none."""
    given = target.properties["external_gateway_info"]
    if not given:
        return {}
    body: dict[str, Json] = {"network_id": resolve(work, "neutron.network", given["network"])}
    if given["enable_snat"] is not None:
        body["enable_snat"] = given["enable_snat"]
    if given["external_fixed_ips"]:
        find = functools.partial(resolve, work, "neutron.subnet")
        body["external_fixed_ips"] = [
            {
                **({"ip_address": item["ip_address"]} if item["ip_address"] else {}),
                **({"subnet_id": find(item["subnet"])} if item["subnet"] else {}),
            }
            for item in given["external_fixed_ips"]
        ]
    return body


class RouterInterface(NeutronType):
    """A router's interface in a subnet; router and subnet, or port, are its identity.

    The physical id is ``ROUTER:subnet_id=SUBNET`` or ``ROUTER:port_id=PORT``, as in Heat.
    """

    description = "A router's interface in a subnet."
    path, item = "/routers", "router"
    mark = None
    identity = "the router, and the subnet or the port"
    properties_schema = {
        "router": Property(
            "string",
            "Name or id of the router.",
            required=True,
            constraints=(Custom(check_name="neutron.router"),),
        ),
        "router_id": Property("string", "The old name of router.", support_status=HIDDEN, alias_of="router"),
        "subnet": Property("string", "Name or id of the subnet; either this or port.", constraints=(SUBNET,)),
        "subnet_id": Property("string", "The old name of subnet.", support_status=HIDDEN, alias_of="subnet"),
        "port": Property(
            "string",
            "Name or id of a port that becomes the interface; either this or subnet.",
            constraints=(Custom(check_name="neutron.port"),),
        ),
        "port_id": Property("string", "The old name of port.", support_status=HIDDEN, alias_of="port"),
    }
    attributes_schema = {"show": SHOWN["show"]}

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check that it is in a subnet, or at a port."""
        given = [properties.get(name, "unknown") for name in ("subnet", "port")]
        if not any(given):
            raise PropertyError("one of subnet and port is needed")
        if properties.get("subnet") and properties.get("port"):
            raise PropertyError("subnet and port exclude each other")

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Add the interface."""
        if target.physical_id is not None:
            return Done()
        router, where = self._identity(target, work)
        path = f"/routers/{router}/add_router_interface"
        answer = self.service_for(work).put(path, where, creates=True)
        return Done(physical_id=_physical_id(router, where), data={THING: answer})

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Remove the interface."""
        if target.physical_id is None:
            return Done()
        router, _, rest = target.physical_id.partition(":")
        name, _, value = rest.partition("=")
        try:
            self.service_for(work).put(f"/routers/{router}/remove_router_interface", {name: value})
        except ThingNotFound:
            return Done()
        except Conflict as error:
            raise in_use(error) from error
        return Done()

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Check that the router has the interface.

        :raises ThingNotFound: it has not.
        """
        if self.needs_replace_failed(target, work):
            raise ThingNotFound(f"network: the router has no interface {target.physical_id}")
        return Done()

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Return the identity, if the router has an interface there."""
        router, where = self._identity(target, work)
        return _physical_id(router, where) if self._is_there(router, where, work) else None

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Return whether the router has no such interface."""
        if target.physical_id is None:
            return True
        router, _, rest = target.physical_id.partition(":")
        name, _, value = rest.partition("=")
        return not self._is_there(router, {name: value}, work)

    def refresh(self, target: ResourceView, work: StepContext) -> Mapping[str, Json]:
        """Return the data as it is: nothing of it changes."""
        return target.data

    def live_properties(self, target: ResourceView, work: StepContext) -> Mapping[str, Json]:
        """Return nothing: no property can change outside."""
        return {}

    def _identity(self, target: ResourceView, work: StepContext) -> tuple[str, dict[str, str]]:
        properties = target.properties
        router = resolve(work, "neutron.router", properties["router"])
        if properties["subnet"]:
            return router, {"subnet_id": resolve(work, "neutron.subnet", properties["subnet"])}
        return router, {"port_id": resolve(work, "neutron.port", properties["port"])}

    def _is_there(self, router: str, where: Mapping[str, str], work: StepContext) -> bool:
        ports = self.service_for(work).list_all("/ports", "ports", device_id=router)
        if "port_id" in where:
            return any(port["id"] == where["port_id"] for port in ports)
        return any(ip["subnet_id"] == where["subnet_id"] for port in ports for ip in port["fixed_ips"])


def _physical_id(router: str, where: Mapping[str, str]) -> str:
    name, value = next(iter(where.items()))
    return f"{router}:{name}={value}"
