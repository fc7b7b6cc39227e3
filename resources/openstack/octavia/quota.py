"""OS::Octavia::Quota: how many parts of load balancers a project may have."""

from ...contract import SupportStatus
from ..quotas import QuotaType, limits


class BalancerQuota(QuotaType):
    """Limits on the load balancers of a project, and on parts of them; for administrators."""

    type_name = "OS::Octavia::Quota"
    support_status = SupportStatus(version="14.0.0")
    description = "Octavia quotas of a project: load balancers, listeners and so on; for administrators."
    service = "load-balancer"
    path = "/lbaas/quotas/{}"
    properties_schema = limits(
        healthmonitor="Health monitors",
        listener="Listeners",
        loadbalancer="Load balancers",
        pool="Pools",
        member="Pool members",
    )
