"""The table of the types of the messaging service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .queue import Queue, SignedQueueURL
from .subscription import MistralTrigger, Subscription

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Zaqar::MistralTrigger": MistralTrigger,
    "OS::Zaqar::Queue": Queue,
    "OS::Zaqar::SignedQueueURL": SignedQueueURL,
    "OS::Zaqar::Subscription": Subscription,
}
