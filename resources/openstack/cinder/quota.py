"""OS::Cinder::Quota: how many volumes, snapshots and backups a project may have."""

from ....shapes import JsonMap
from ...contract import PermanentError, SupportStatus
from ..quotas import QuotaType, limits
from ..service import Service


class VolumeQuota(QuotaType):
    """The number and the size of a project's volumes, snapshots and backups; for administrators."""

    type_name = "OS::Cinder::Quota"
    support_status = SupportStatus(version="7.0.0")
    description = "Cinder quotas of a project: volumes, snapshots, backups and so on; for administrators."
    service = "block-storage"
    path = "/os-quota-sets/{}"
    item = "quota_set"
    properties_schema = limits(
        gigabytes="Size of all volumes and snapshots, in GiB",
        volumes="Volumes",
        snapshots="Snapshots",
        backups="Backups",
        backup_gigabytes="Size of all backups, in GiB",
    )

    def check_limits(self, project: str, values: JsonMap, service: Service) -> None:
        """Check the limits against what the project has, as Heat does: the service itself allows less.

        :raises PermanentError: it has more than a limit allows.
        """
        usage = service.get(self.path.format(project), usage=True)[self.item]
        for name, limit in values.items():
            used = usage.get(name, {}).get("in_use", 0)
            if limit != -1 and limit < used:
                text = f"Invalid quota {name}: {limit} is less than the {used} that the project uses"
                raise PermanentError(text, kind="ValueError")
