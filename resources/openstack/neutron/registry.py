"""The table of the types of the network service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .ec2_addresses import ElasticIp, ElasticIpAssociation
from .ec2_security_group import Ec2SecurityGroup
from .floating_ip import FloatingIP, FloatingIPAssociation
from .net import Net
from .port import Port
from .provider_net import ProviderNet
from .router import Router, RouterInterface
from .security_group import SecurityGroup, SecurityGroupRule
from .subnet import Subnet
from .trunk import Trunk

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::EC2::EIP": ElasticIp,
    "AWS::EC2::EIPAssociation": ElasticIpAssociation,
    "AWS::EC2::SecurityGroup": Ec2SecurityGroup.of(SecurityGroup),
    "OS::Neutron::FloatingIP": FloatingIP,
    "OS::Neutron::FloatingIPAssociation": FloatingIPAssociation,
    "OS::Neutron::Net": Net,
    "OS::Neutron::Port": Port,
    "OS::Neutron::ProviderNet": ProviderNet,
    "OS::Neutron::Router": Router,
    "OS::Neutron::RouterInterface": RouterInterface,
    "OS::Neutron::SecurityGroup": SecurityGroup,
    "OS::Neutron::SecurityGroupRule": SecurityGroupRule,
    "OS::Neutron::Subnet": Subnet,
    "OS::Neutron::Trunk": Trunk,
}
