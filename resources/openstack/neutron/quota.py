"""OS::Neutron::Quota: how many things of the network service a project may have."""

from ...schema import SupportStatus
from ..quotas import QuotaType, limits


class NetworkQuota(QuotaType):
    """The number of things of the network service that a project may have; for administrators."""

    support_status = SupportStatus(version="8.0.0")
    description = "How many networks, ports and so on a project may have. For administrators."
    service = "network"
    path = "/quotas/{}"
    properties_schema = limits(
        subnet="Subnets",
        network="Networks",
        floatingip="Floating IPs",
        security_group_rule="Rules of security groups",
        security_group="Security groups",
        router="Routers",
        port="Ports",
        subnetpool="Pools of subnets",
        rbac_policy="RBAC policies",
    )
