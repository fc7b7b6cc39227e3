"""OS::Nova::Quota: how many servers and so on a project may have."""

from ...contract import SupportStatus
from ..quotas import QuotaType, limits


class ComputeQuota(QuotaType):
    """The number of servers and their parts that a project may have; for administrators.

    The first microversion is the last one that takes all of these limits.
    """

    type_name = "OS::Nova::Quota"
    support_status = SupportStatus(version="8.0.0")
    description = "Nova quotas of a project: servers, cores, memory and so on; for administrators."
    service = "compute"
    path = "/os-quota-sets/{}"
    item = "quota_set"
    microversion = "2.1"
    properties_schema = limits(
        cores="Virtual CPUs",
        fixed_ips="Fixed IPs; ignored since Nova left networks to Neutron",
        floating_ips="Floating IPs; ignored since Nova left networks to Neutron",
        injected_file_content_bytes="Size of an injected file, in bytes",
        injected_file_path_bytes="Length of the path of an injected file, in bytes",
        injected_files="Injected files per server",
        instances="Servers (instances)",
        key_pairs="Key pairs per user",
        metadata_items="Metadata items per server",
        ram="Memory of all servers, in MiB",
        security_group_rules="Security group rules; ignored since Nova left networks to Neutron",
        security_groups="Security groups; ignored since Nova left networks to Neutron",
        server_group_members="Servers per server group",
        server_groups="Server groups",
    )
