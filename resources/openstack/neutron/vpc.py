"""VPCs of CloudFormation: networks, subnets, routers and ports under its names, laid out as Heat does it.

A VPC is a network and a router, a route table another router, and a gateway of the VPC the way out of the
routers that are its route tables.  Whatever a template says of the range of a VPC, or of tags, has no effect.
"""

import uuid
from collections.abc import Callable, Sequence, Set

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    CloudFacts,
    Done,
    ImpliedDependency,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..attached import Link
from ..declared import REMOTE
from ..marks import PREFIX, mark_of
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of
from ..translated import TranslatedType, pairs
from .base import BUILT, NeutronType
from .port import Port
from .router import PHYSICAL_ID, RouterInterface
from .users import PORTS, Usage
from .vpc_routers import (
    add_interface,
    external_network,
    remove_interface,
    router_of_network,
    routers_named,
    set_gateway,
)

TAGS = pairs("Tags; without effect, as in Heat.")
VPC_ID = Property("string", "Id of the VPC, which is the id of its network.", required=True)
SUBNET = Custom(check_name="neutron.subnet")


class VpcPart(NeutronType):
    """Base of the types whose routers are no resources: which ports are the stack's own is not known."""

    def users_outside(self, physical_id: str, own: Set[str], cloud: CloudFacts) -> Sequence[str]:
        """Return nobody."""
        return ()


class Vpc(VpcPart):
    """A network, and a router of the same name."""

    type_name = "AWS::EC2::VPC"
    description = "A network with a router, under the names of CloudFormation."
    path = "/networks"
    item = "network"
    status = BUILT
    used_by = Usage(PORTS, "network_id")
    properties_schema = {
        "CidrBlock": Property("string", "Address range, as CIDR; without effect, as in Heat."),
        "Tags": TAGS,
    }
    attributes_schema = {
        "show": Attribute("All fields of the network, as the service's API returns them.", "map")
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of the network: by its name the router is found."""
        return {"name": target.physical_name}

    def has_more(self, target: ResourceView) -> bool:
        """Return True: the router is made after the network."""
        return True

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Make the router, unless an earlier step has."""
        service = self.service_for(context)
        # Where the answer to the creation has no name, a later one may have it.
        name = str(target.data[REMOTE].get("name") or self.get(service, self.id_of(target))["name"])
        if not routers_named(service, name):
            body = {"name": name, "description": mark_of(target.creation_key or target.key)}
            service.post("/routers", {"router": body})

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Delete the router."""
        service = self.service_for(context)
        network = self.get(service, self.id_of(target))
        for router in routers_named(service, str(network["name"])):
            _delete(service, f"/routers/{router['id']}")


class Ec2Subnet(VpcPart):
    """A subnet, in which the router of the VPC has an interface."""

    type_name = "AWS::EC2::Subnet"
    description = "A subnet of a VPC, under the names of CloudFormation."
    path = "/subnets"
    item = "subnet"
    used_by = Usage(PORTS, "fixed_ips", "subnet_id")
    properties_schema = {
        "AvailabilityZone": Property(
            "string", "Availability zone, which the attribute returns; without other effect."
        ),
        "CidrBlock": Property("string", "Address range, as CIDR.", required=True),
        "VpcId": VPC_ID,
        "Tags": TAGS,
    }
    attributes_schema = {
        "AvailabilityZone": Attribute(
            "Availability zone, as in the template.", "string", from_property="AvailabilityZone"
        )
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        network = {"network_id": properties["VpcId"], "cidr": properties["CidrBlock"]}
        return {**network, "name": target.physical_name, "ip_version": 4}

    def has_more(self, target: ResourceView) -> bool:
        """Return True: the router gets an interface."""
        return True

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Give the router of the VPC an interface."""
        service = self.service_for(context)
        if (router := router_of_network(service, target.properties["VpcId"])) is not None:
            add_interface(service, router["id"], self.id_of(target))

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Remove the interface."""
        service = self.service_for(context)
        network = self.get(service, self.id_of(target))["network_id"]
        if (router := router_of_network(service, network)) is not None:
            remove_interface(service, router["id"], self.id_of(target))

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the stored answer, and the availability zone as it is given."""
        zone = {"AvailabilityZone": target.properties["AvailabilityZone"]}
        return {**super().attribute_values(target), **zone}


class RouteTable(VpcPart):
    """A router for some subnets of a VPC."""

    type_name = "AWS::EC2::RouteTable"
    support_status = SupportStatus(version="2014.1")
    description = "A router for some subnets of a VPC, under the names of CloudFormation."
    path = "/routers"
    item = "router"
    status = BUILT
    used_by = Usage(PORTS, "device_id")
    properties_schema = {"VpcId": VPC_ID, "Tags": TAGS}
    attributes_schema = {
        "show": Attribute("All fields of the router, as the service's API returns them.", "map")
    }

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {"name": target.physical_name}

    def has_more(self, target: ResourceView) -> bool:
        """Return True: the router gets a tag."""
        return True

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Tag the router for the gateway of the VPC; it gets the way out that the VPC's router has."""
        service = self.service_for(context)
        vpc = target.properties["VpcId"]
        service.put(f"{self.path_of(target)}/tags/{_tag(target, vpc)}", None)
        router = router_of_network(service, vpc)
        gateway = router and router.get("external_gateway_info")
        if gateway:
            set_gateway(service, self.id_of(target), gateway["network_id"])


class InternetGateway(ResourceType):
    """A name: the external network is the way out of every VPC."""

    type_name = "AWS::EC2::InternetGateway"
    support_status = SupportStatus(version="2014.1")
    description = "An internet gateway: a name for the external network. Nothing is created, as in Heat."
    properties_schema = {"Tags": TAGS}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Choose the name."""
        return Done(physical_id=target.physical_id or target.physical_name)


class VpcGatewayAttachment(ResourceType):
    """The way out of the route tables of a VPC that are in the same stack."""

    type_name = "AWS::EC2::VPCGatewayAttachment"
    uses_credentials = True
    service = "network"
    description = (
        "An attachment of an internet gateway to the route tables of a VPC that are in the same stack."
    )
    identity = "nothing is made"
    implied_dependencies = (ImpliedDependency("VpcId", "AWS::EC2::RouteTable", "VpcId"),)
    properties_schema = {
        "VpcId": VPC_ID,
        "InternetGatewayId": Property(
            "string", "Reference of the internet gateway; without effect, as in Heat."
        ),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Give the routers their way out."""
        service = service_of(context, self.service)
        network = external_network(context)
        for router in _tables(service, target):
            set_gateway(service, router["id"], network)
        return Done(physical_id=target.physical_id or target.physical_name)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Take it away from them.

        :raises RetryableError: an address still leads through one.
        """
        service = service_of(context, self.service)
        for router in _tables(service, target):
            try:
                set_gateway(service, router["id"], None)
            except RemoteNotFound:
                continue
            except Conflict as error:
                raise in_use(error) from error
        return Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the routers have a way out.

        :raises RemoteNotFound: one has none.
        """
        for router in _tables(service_of(context, self.service), target):
            if not router.get("external_gateway_info"):
                raise RemoteNotFound(f"network: the router {router['id']} has no gateway")
        return Done()

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return False: it can be repeated."""
        return False


class SubnetRouteTableAssociation(RouterInterface):
    """The interface of a route table's router in a subnet, in the place of the VPC's router."""

    type_name = "AWS::EC2::SubnetRouteTableAssociation"
    description = "An association of a subnet with a route table, instead of the router of its VPC."
    properties_schema = {
        "RouteTableId": Property("string", "Id of the route table.", required=True),
        "SubnetId": Property("string", "Name or id of the subnet.", required=True, constraints=(SUBNET,)),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check nothing: both properties are required."""

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        named = {"router": properties["RouteTableId"], "subnet": properties["SubnetId"], "port": None}
        return super().link(named, context)

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Remove the interface of the VPC's router, and add that of the route table's."""
        self._move(link, context, remove_interface)
        return super().attach(link, target, context)

    def detach(self, link: Link, context: StepContext) -> bool:
        """Remove the interface, and give the VPC's router its own again."""
        is_slow = super().detach(link, context)
        self._move(link, context, add_interface)
        return is_slow

    def _move(self, link: Link, context: StepContext, change: Callable[[Service, str, str], None]) -> None:
        """Change the interface of the VPC's router, if it has one."""
        service = self.service_for(context)
        _, _, subnet = PHYSICAL_ID.split(link[0])
        try:
            network = service.get(f"/subnets/{subnet}")["subnet"]["network_id"]
            router = router_of_network(service, network)
        except RemoteNotFound:
            return
        if router is not None:
            change(service, router["id"], subnet)


class PortInSubnet(Port):
    """A port whose network is that of its subnet."""

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        body = super().create_body(target, context)
        subnet = self.service_for(context).get(f"/subnets/{body['fixed_ips'][0]['subnet_id']}")["subnet"]
        return {**body, "network_id": subnet["network_id"]}


def _addresses(properties: JsonMap) -> list[Json] | None:
    """Return the address of an interface as the inner type has it."""
    address = properties.get("PrivateIpAddress")
    entry = {"subnet": properties.get("SubnetId"), **({"ip_address": address} if address else {})}
    return [entry] if entry["subnet"] else None


class NetworkInterface(TranslatedType):
    """A port; its inner type is OS::Neutron::Port."""

    type_name = "AWS::EC2::NetworkInterface"
    inner = PortInSubnet()
    description = "A port in a subnet, under the names of CloudFormation."
    service = "network"
    identity = "the field ``description``"
    properties_schema = {
        "Description": Property("string", "Description; without effect, as in Heat."),
        "GroupSet": Property(
            "list",
            "Names or ids of security groups; if omitted, the project's default group.",
            update_allowed=True,
        ),
        "PrivateIpAddress": Property("string", "Private IP address; if omitted, the service allocates one."),
        "SubnetId": Property("string", "Name or id of the subnet.", required=True, constraints=(SUBNET,)),
        "Tags": TAGS,
    }
    attributes_schema = {"PrivateIpAddress": Attribute("Private IP address.", "string", volatile=True)}
    translation = {"fixed_ips": _addresses, "security_groups": "GroupSet"}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return its first address, and what the service reports."""
        addresses = (target.data.get(REMOTE) or {}).get("fixed_ips") or [{}]
        return {**super().attribute_values(target), "PrivateIpAddress": addresses[0].get("ip_address")}


def _tag(target: ResourceView, vpc: str) -> str:
    """Return the tag of the route tables that a stack makes for a VPC."""
    return f"{PREFIX}{uuid.uuid5(uuid.NAMESPACE_URL, f'{target.stack.id}/{vpc}')}"


def _tables(service: Service, target: ResourceView) -> list[JsonMap]:
    return service.list_all("/routers", "routers", tags=_tag(target, str(target.properties["VpcId"])))


def _delete(service: Service, path: str) -> None:
    try:
        service.delete(path)
    except RemoteNotFound:
        return  # Somebody else has deleted it.
