"""The table of the types of the DNS service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .zone import RecordSet, Zone

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Designate::RecordSet": RecordSet,
    "OS::Designate::Zone": Zone,
}
