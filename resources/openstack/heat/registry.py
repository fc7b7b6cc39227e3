"""The table of the types of orchestration services elsewhere."""

from collections.abc import Mapping

from ...heat.stack import REMOTE
from ...plugin import ResourceType
from .remote_stack import RemoteStack

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {REMOTE: RemoteStack}
