"""OS::Neutron::Quota: how many things of the network service a project may have."""

from ...contract import SupportStatus
from ..quotas import QuotaType, limits


class NetworkQuota(QuotaType):
    """The number of things of the network service that a project may have; for administrators."""

    type_name = "OS::Neutron::Quota"
    support_status = SupportStatus(version="8.0.0")
    description = "Neutron quotas of a project: networks, ports and so on; for administrators."
    service = "network"
    path = "/quotas/{}"
    properties_schema = limits(
        subnet="Subnets",
        network="Networks",
        floatingip="Floating IPs",
        security_group_rule="Security group rules",
        security_group="Security groups",
        router="Routers",
        port="Ports",
        subnetpool="Subnet pools",
        rbac_policy="RBAC policies",
    )
