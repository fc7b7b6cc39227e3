"""AWS::EC2::EIP and AWS::EC2::EIPAssociation: floating IPs under the names of CloudFormation."""

from collections.abc import Collection, Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...contract import (
    Attribute,
    PermanentError,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..attached import Link
from ..declared import REMOTE
from ..names import is_id
from ..service import RemoteNotFound, service_of
from .base import NeutronType
from .floating_ip import ADDRESS, FloatingIPAssociation
from .vpc_routers import external_network, router_of_network, set_gateway

SERVER = Custom(check_name="nova.server")


class ElasticIp(NeutronType):
    """A floating IP of the only external network."""

    type_name = "AWS::EC2::EIP"
    description = "A floating IP, under the names of CloudFormation."
    path = "/floatingips"
    item = "floatingip"
    apart = ("Domain", "InstanceId")
    properties_schema = {
        "Domain": Property(
            "string",
            "Scope of the address.",
            constraints=(AllowedValues(values=("vpc",)),),
            support_status=SupportStatus("DEPRECATED", version="9.0.0", message="It has no effect."),
        ),
        "InstanceId": Property(
            "string",
            "Name or id of the server that the address is associated with, on its first port.",
            update_allowed=True,
            constraints=(SERVER,),
        ),
    }
    attributes_schema = {"AllocationId": Attribute("Id of the floating IP.", "string")}

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new floating IP, which leads to its server from the beginning."""
        body = super().create_body(target, context)
        server = target.properties["InstanceId"]
        port = first_port(context, server) if server else {}
        return {**body, "floating_network_id": external_network(context), **port}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the port of the present server."""
        server = target.properties["InstanceId"]
        return dict(first_port(context, server)) if server else {"port_id": None}

    def reference_id(self, target: ResourceView) -> Json:
        """Return the address; where it was not read since an import the id, which associations take, too."""
        address = (target.data.get(REMOTE) or {}).get("floating_ip_address")
        return address or target.physical_id or target.name

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the id and the service's answer."""
        return {**super().attribute_values(target), "AllocationId": target.physical_id}


class ElasticIpAssociation(FloatingIPAssociation):
    """The association of a floating IP, by its address or its id, with a port or a server's first one."""

    type_name = "AWS::EC2::EIPAssociation"
    description = (
        "An association of a floating IP with a server or a port, under the names of CloudFormation."
    )
    implied_dependencies = ()
    properties_schema = {
        "InstanceId": Property(
            "string", "Name or id of the server.", update_allowed=True, constraints=(SERVER,)
        ),
        "EIP": Property("string", "Floating IP address.", update_allowed=True, constraints=(ADDRESS,)),
        "AllocationId": Property(
            "string", "Id of the floating IP, instead of its address.", update_allowed=True
        ),
        "NetworkInterfaceId": Property(
            "string", "Id of the port, instead of the server's first port.", update_allowed=True
        ),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that one address is named, with one target."""
        if {"EIP", "AllocationId", "InstanceId", "NetworkInterfaceId"} - properties.keys():
            return
        if bool(properties["EIP"]) == bool(properties["AllocationId"]):
            raise PropertyError("Either 'EIP' or 'AllocationId' must be provided.")
        if properties["EIP"] and not properties["InstanceId"]:
            raise PropertyError("Must specify 'InstanceId' if you specify 'EIP'.")
        if not properties["InstanceId"] and not properties["NetworkInterfaceId"]:
            text = (
                "At least one of the following properties must be specified: InstanceId, NetworkInterfaceId."
            )
            raise PropertyError(text)

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether the address changes together with the server or the port that it leads to."""
        changed = {name for name in after if before.get(name) != after[name]}
        is_other_end = any(after[name] for name in changed & {"InstanceId", "NetworkInterfaceId"})
        return is_other_end and bool(changed & {"EIP", "AllocationId"})

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        port = properties["NetworkInterfaceId"]
        if not port:
            port = first_port(context, properties["InstanceId"])["port_id"]
        return properties["AllocationId"] or self._id_of(properties["EIP"], context), port

    def stored_link(self, target: ResourceView, context: StepContext) -> Link:
        """Return the link; a resource that Heat has made may have the address as its physical id."""
        first, *others = super().stored_link(target, context)
        return (first if is_id(first) else self._id_of(first, context), *others)

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Associate; a router of the VPC gets its way out first, where the floating IP is named by its id."""
        service = self.service_for(context)
        port = service.get(f"/ports/{link[1]}")["port"]
        if target.properties["AllocationId"]:
            router = router_of_network(service, port["network_id"])
            if router is not None:
                set_gateway(service, router["id"], self.get(service, link[0])["floating_network_id"])
        address = port["fixed_ips"][0]["ip_address"] if port["fixed_ips"] else None
        body = {"port_id": link[1], **({"fixed_ip_address": address} if address else {})}
        return service.put(f"{self.path}/{link[0]}", {self.item: body})[self.item]

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        if {"EIP", "AllocationId"} & changed:
            self.handle_delete(target, context)
        return self.check_create_complete(target, None, context)

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return nothing, but fail where the floating IP is gone."""
        self.get(self.service_for(context), self.stored_link(target, context)[0])
        return {}

    def _id_of(self, address: str, context: StepContext) -> str:
        service = self.service_for(context)
        floating_ips = service.list_all(self.path, "floatingips", floating_ip_address=address)
        if not floating_ips:
            raise RemoteNotFound(f"network: no floating IP has the address {address}")
        return str(floating_ips[0]["id"])


def first_port(context: StepContext, server: str) -> Mapping[str, str]:
    """Return the fields of a floating IP that lead to the first port of a server.

    :raises PermanentError: the server has no port.
    """
    service = service_of(context, "compute")
    interfaces = service.get(f"/servers/{server}/os-interface")["interfaceAttachments"]
    if not interfaces:
        raise PermanentError(f"No network interface found for server {server}", kind="InterfaceNotFound")
    addresses = [fixed_ip["ip_address"] for fixed_ip in interfaces[0]["fixed_ips"]]
    address = {"fixed_ip_address": addresses[0]} if addresses else {}
    return {"port_id": interfaces[0]["port_id"], **address}
