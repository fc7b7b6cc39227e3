"""The definitions of servers that launch configurations, and groups of them, keep in their data."""

from ....resources.contract.context import GoalContext
from ....resources.contract.errors import StepError
from ....resources.contract.plugin import ResourceType
from ....resources.contract.views import ResourceView
from ....resources.openstack.nova.launch_configuration import LAUNCH, LaunchConfiguration, server_definition
from ....resources.openstack.nova.launched_groups import LaunchedGroup
from ....shapes import JsonMap
from ..heat.rows import Refused


def launch_data(plugin: ResourceType, target: ResourceView, context: GoalContext) -> JsonMap | None:
    """Return the definition of a server as the resource's data has it; None: its type has none.

    :raises Refused: it is made of a server that only the cloud knows.
    """
    try:
        if isinstance(plugin, LaunchConfiguration):
            return server_definition(target, context)
        if isinstance(plugin, LaunchedGroup):
            return {LAUNCH: plugin.launch(target, context)}
    except StepError as error:
        raise Refused(f"resource {target.name}: {error}: give ImageId and InstanceType") from error
    return None
