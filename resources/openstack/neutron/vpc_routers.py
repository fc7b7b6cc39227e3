"""Routers of networks that CloudFormation calls VPCs, and their way out.

A VPC is a network and a router of the same name, as in Heat: by that name one is found from the other.
"""

from ....shapes import JsonMap
from ...contract import PermanentError, StepContext
from ..service import Service, service_of


def external_network(context: StepContext) -> str:
    """Return the id of the only external network that the project can use.

    :raises PermanentError: there is none, or more than one.
    """
    networks = service_of(context, "network").list_all("/networks", "networks", **{"router:external": True})
    if len(networks) != 1:
        raise PermanentError(f"Expected 1 external network, found {len(networks)}", kind="Error")
    return str(networks[0]["id"])


def routers_named(service: Service, name: str) -> list[JsonMap]:
    """Return the routers that have a name; none where the name is empty."""
    return service.list_all("/routers", "routers", name=name) if name else []


def router_of_network(service: Service, network_id: str) -> JsonMap | None:
    """Return the router that has the name of a network; None: there is none.

    :raises PermanentError: several have the name.
    """
    name = str(service.get(f"/networks/{network_id}")["network"]["name"])
    routers = routers_named(service, name)
    if len(routers) > 1:
        raise PermanentError(f"Multiple routers found with name {name}", kind="Error")
    return routers[0] if routers else None


def set_gateway(service: Service, router_id: str, network_id: str | None) -> None:
    """Give a router its way out; to repeat it changes nothing.

    :param network_id: the external network; None: the router gets no way out.
    """
    gateway = {"network_id": network_id} if network_id else None
    service.put(f"/routers/{router_id}", {"router": {"external_gateway_info": gateway}})


def find_interface(service: Service, router_id: str, subnet_id: str) -> JsonMap | None:
    """Return the port that is a router's interface in a subnet; None: there is none."""
    ports: list[JsonMap] = service.list_all("/ports", "ports", device_id=router_id)
    inside = (port for port in ports if subnet_id in (item["subnet_id"] for item in port["fixed_ips"]))
    return next(inside, None)


def add_interface(service: Service, router_id: str, subnet_id: str) -> None:
    """Give a router an interface in a subnet; to repeat it changes nothing."""
    if find_interface(service, router_id, subnet_id) is None:
        service.put(f"/routers/{router_id}/add_router_interface", {"subnet_id": subnet_id}, creates=True)


def remove_interface(service: Service, router_id: str, subnet_id: str) -> None:
    """Remove a router's interface in a subnet; one that is not there is no error."""
    if find_interface(service, router_id, subnet_id) is not None:
        service.put(f"/routers/{router_id}/remove_router_interface", {"subnet_id": subnet_id})
