"""The table of the types of the workflow service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .cron_trigger import CronTrigger
from .external_resource import ExternalResource
from .workflow import Workflow

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Mistral::CronTrigger": CronTrigger,
    "OS::Mistral::ExternalResource": ExternalResource,
    "OS::Mistral::Workflow": Workflow,
}
