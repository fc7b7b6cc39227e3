"""The table of the types of the network service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .ec2_addresses import ElasticIp, ElasticIpAssociation
from .ec2_security_group import Ec2SecurityGroup
from .extra_routes import ExtraRoute, ExtraRouteSet
from .floating_ip import FloatingIP, FloatingIPAssociation
from .l2_gateway import L2Gateway, L2GatewayConnection
from .metering import MeteringLabel, MeteringRule
from .net import Net
from .network_gateway import NetworkGateway
from .port import Port
from .port_forwarding import FloatingIPPortForward
from .provider_net import ProviderNet
from .qos import (
    QoSBandwidthLimitRule,
    QoSDscpMarkingRule,
    QoSMinimumBandwidthRule,
    QoSMinimumPacketRateRule,
    QoSPolicy,
)
from .quota import NetworkQuota
from .rbac_policy import RBACPolicy
from .router import Router, RouterInterface
from .security_group import SecurityGroup, SecurityGroupRule
from .segment import Segment
from .service_chains import FlowClassifier, PortChain, PortPair, PortPairGroup
from .subnet import Subnet
from .subnet_pool import AddressScope, SubnetPool
from .taps import TapFlow, TapService
from .trunk import Trunk
from .vpc import (
    Ec2Subnet,
    InternetGateway,
    NetworkInterface,
    PortInSubnet,
    RouteTable,
    SubnetRouteTableAssociation,
    Vpc,
    VpcGatewayAttachment,
)
from .vpn import IKEPolicy, IPsecPolicy, IPsecSiteConnection, VPNService

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::EC2::EIP": ElasticIp,
    "AWS::EC2::EIPAssociation": ElasticIpAssociation,
    "AWS::EC2::InternetGateway": InternetGateway,
    "AWS::EC2::NetworkInterface": NetworkInterface.of(PortInSubnet),
    "AWS::EC2::RouteTable": RouteTable,
    "AWS::EC2::SecurityGroup": Ec2SecurityGroup.of(SecurityGroup),
    "AWS::EC2::Subnet": Ec2Subnet,
    "AWS::EC2::SubnetRouteTableAssociation": SubnetRouteTableAssociation,
    "AWS::EC2::VPC": Vpc,
    "AWS::EC2::VPCGatewayAttachment": VpcGatewayAttachment,
    "OS::Neutron::AddressScope": AddressScope,
    "OS::Neutron::ExtraRoute": ExtraRoute,
    "OS::Neutron::ExtraRouteSet": ExtraRouteSet,
    "OS::Neutron::FloatingIP": FloatingIP,
    "OS::Neutron::FloatingIPAssociation": FloatingIPAssociation,
    "OS::Neutron::FloatingIPPortForward": FloatingIPPortForward,
    "OS::Neutron::FlowClassifier": FlowClassifier,
    "OS::Neutron::L2Gateway": L2Gateway,
    "OS::Neutron::L2GatewayConnection": L2GatewayConnection,
    "OS::Neutron::MeteringLabel": MeteringLabel,
    "OS::Neutron::MeteringRule": MeteringRule,
    "OS::Neutron::Net": Net,
    "OS::Neutron::NetworkGateway": NetworkGateway,
    "OS::Neutron::Port": Port,
    "OS::Neutron::PortChain": PortChain,
    "OS::Neutron::PortPair": PortPair,
    "OS::Neutron::PortPairGroup": PortPairGroup,
    "OS::Neutron::ProviderNet": ProviderNet,
    "OS::Neutron::QoSBandwidthLimitRule": QoSBandwidthLimitRule,
    "OS::Neutron::QoSDscpMarkingRule": QoSDscpMarkingRule,
    "OS::Neutron::QoSMinimumBandwidthRule": QoSMinimumBandwidthRule,
    "OS::Neutron::QoSMinimumPacketRateRule": QoSMinimumPacketRateRule,
    "OS::Neutron::QoSPolicy": QoSPolicy,
    "OS::Neutron::Quota": NetworkQuota,
    "OS::Neutron::RBACPolicy": RBACPolicy,
    "OS::Neutron::Router": Router,
    "OS::Neutron::RouterInterface": RouterInterface,
    "OS::Neutron::SecurityGroup": SecurityGroup,
    "OS::Neutron::SecurityGroupRule": SecurityGroupRule,
    "OS::Neutron::Segment": Segment,
    "OS::Neutron::Subnet": Subnet,
    "OS::Neutron::SubnetPool": SubnetPool,
    "OS::Neutron::TaaS::TapFlow": TapFlow,
    "OS::Neutron::TaaS::TapService": TapService,
    "OS::Neutron::Trunk": Trunk,
    "OS::Neutron::IKEPolicy": IKEPolicy,
    "OS::Neutron::IPsecPolicy": IPsecPolicy,
    "OS::Neutron::IPsecSiteConnection": IPsecSiteConnection,
    "OS::Neutron::VPNService": VPNService,
}
