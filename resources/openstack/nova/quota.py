"""OS::Nova::Quota: how many servers and so on a project may have."""

from ...schema import SupportStatus
from ..quotas import QuotaType, limits


class ComputeQuota(QuotaType):
    """The number of servers and their parts that a project may have; for administrators.

    The first microversion is the last one that takes all of these limits.
    """

    support_status = SupportStatus(version="8.0.0")
    description = "How many servers, cores and so on a project may have. For administrators."
    service = "compute"
    path = "/os-quota-sets/{}"
    item = "quota_set"
    microversion = "2.1"
    properties_schema = limits(
        cores="Virtual processors",
        fixed_ips="Fixed addresses; newer services ignore it",
        floating_ips="Floating IPs; newer services ignore it",
        injected_file_content_bytes="Bytes of an injected file",
        injected_file_path_bytes="Bytes of the path of an injected file",
        injected_files="Injected files of a server",
        instances="Servers",
        key_pairs="Key pairs of a user",
        metadata_items="Entries of a server's metadata",
        ram="MiB of memory",
        security_group_rules="Rules of security groups; newer services ignore it",
        security_groups="Security groups; newer services ignore it",
        server_group_members="Servers of a server group",
        server_groups="Server groups",
    )
