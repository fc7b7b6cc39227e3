"""A rule for floating IPs whose network no router of the port's network leads to; pure.

Neutron looks for a router with an interface in the port's subnet and a gateway in the floating IP's network.
The rule says nothing unless it knows all routers of the port's network, of the cloud and of the template.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from ....shapes import JsonMap
from ...contract import Certainty, CloudFacts, KnownResource, Made, Members, Misfit, PlannedStack, Thing
from ..lists import named
from .network_rules import FLOATING_IP, PORT, ROUTER, SUBNET
from .schema import is_overridden

INTERFACE = "OS::Neutron::RouterInterface"
ASSOCIATION = "OS::Neutron::FloatingIPAssociation"
_OF_ROUTER = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated",
)


class _NotKnown(Exception):
    """A thing on the way is not known."""


@dataclass(frozen=True)
class _Routes:
    """The routers of networks, of the template and of the cloud.  A thing is named by its id, or is Made."""

    stack: PlannedStack
    cloud: CloudFacts

    def network_of_port(self, port: Thing | None) -> Thing:
        """Return the network of a port."""
        made = self.stack.made(port)
        if made is None:
            return _id(self._named("/ports", "ports", port), "network_id")
        if made.type != PORT or is_overridden(made.values, "network_id"):
            raise _NotKnown
        return self.network(made.thing("network"))

    def network(self, thing: Thing | None) -> Thing:
        """Return a network that a property names."""
        return thing if isinstance(thing, Made) else _id(self._named("/networks", "networks", thing))

    def is_own(self, network: Thing) -> bool:
        """Return whether the caller sees all ports of a network: it is the project's."""
        if isinstance(network, Made):
            return True
        entry = self._named("/networks", "networks", network)
        return entry.get("project_id") == self.cloud.project_id

    def gateways(self, network: Thing) -> set[Thing | None]:
        """Return the external networks of the routers of a network; None: one has none."""
        if self._of_template is None or (isinstance(network, Made) and not self.stack.known.is_new):
            raise _NotKnown  # Anybody may have given an older network of the stack another router.
        routers = {*self._of_template.get(network, ())}
        for port in self._members("/ports", "ports").where("network_id", str(network)):
            if str(port.get("device_owner") or "").startswith(_OF_ROUTER):
                routers.add(_id(port, "device_id"))
        return {self._gateway(router) for router in routers}

    @functools.cached_property
    def _of_template(self) -> dict[Thing, set[Thing]] | None:
        """Return the routers that the template gives networks; None: some are not known."""
        routers: dict[Thing, set[Thing]] = {}
        try:
            for interface in self.stack.known.of_type(INTERFACE):
                network = self._network_of_interface(interface)
                routers.setdefault(network, set()).add(self._router(interface.thing("router")))
        except _NotKnown:
            return None
        return routers

    def _network_of_interface(self, interface: KnownResource) -> Thing:
        subnet = interface.thing("subnet")
        if subnet is None:
            return self.network_of_port(interface.thing("port"))
        made = self.stack.made(subnet)
        if made is None:
            return _id(self._named("/subnets", "subnets", subnet), "network_id")
        if made.type != SUBNET or is_overridden(made.values, "network_id"):
            raise _NotKnown
        return self.network(made.thing("network"))

    def _router(self, thing: Thing | None) -> Thing:
        return thing if isinstance(thing, Made) else _id(self._named("/routers", "routers", thing))

    def _gateway(self, router: Thing) -> Thing | None:
        made = self.stack.made(router)
        if made is None:
            entry = self._named("/routers", "routers", router)
            gateway = entry.get("external_gateway_info")
            return _id(gateway, "network_id") if gateway else None
        if made.type != ROUTER or is_overridden(made.values, "external_gateway_info"):
            raise _NotKnown
        if made.values.get("external_gateway_info", "unknown") is None:
            return None
        return self.network(made.thing("external_gateway_info", "network"))

    def _named(self, path: str, items: str, thing: Thing | None) -> JsonMap:
        entry = named(self._members(path, items), thing)
        if entry is None:
            raise _NotKnown
        return entry

    def _members(self, path: str, items: str) -> Members:
        members = self.cloud.members("network", path, items)
        if members is None:
            raise _NotKnown
        return members


def _id(entry: JsonMap, field: str = "id") -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value:
        raise _NotKnown
    return value


def floating_ips_out_of_reach(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the floating IPs that no router connects with their port."""
    routes = _Routes(stack, cloud)
    for resource, outer, port in _floating(stack, cloud):
        try:
            external, network = routes.network(outer), routes.network_of_port(port)
            gateways = routes.gateways(network)
            is_own = routes.is_own(network)
        except _NotKnown:
            continue
        # Without any router the template may get one from the stack around it.
        if not gateways or external in gateways:
            continue
        yield Misfit(
            resource.name,
            "the external network is not reachable from the port: no router of it has a gateway there",
            ("port_id",),
            _name(external),
            ", ".join(sorted(_name(gateway) for gateway in gateways if gateway)) or "no gateway",
            "Use a floating IP of the router's external network, or another gateway of the router.",
            Certainty.CERTAIN if is_own else Certainty.LIKELY,
        )


def _floating(
    stack: PlannedStack, cloud: CloudFacts
) -> Iterator[tuple[KnownResource, Thing | None, Thing | None]]:
    """Yield what gives a port a floating IP, with the external network and the port."""
    for floating in stack.new_of_type(FLOATING_IP):
        port = floating.thing("port_id")
        if port is not None and not is_overridden(floating.values, "floating_network_id", "port_id"):
            yield floating, floating.thing("floating_network"), port
    for association in stack.new_of_type(ASSOCIATION):
        thing = association.thing("floatingip_id")
        made = stack.made(thing)
        if made is None:
            entry = named(cloud.members("network", "/floatingips", "floatingips"), thing)
            network = (entry or {}).get("floating_network_id")
        elif made.type == FLOATING_IP and not is_overridden(made.values, "floating_network_id"):
            network = made.thing("floating_network")
        else:
            continue
        yield association, network, association.thing("port_id")


def _name(network: Thing) -> str:
    return network.resource if isinstance(network, Made) else network
