"""A driver of Neutron's ML2 that binds every port on every host, so that no agents are needed."""

from neutron.api.rpc.agentnotifiers import l3_rpc_agent_api
from neutron.plugins.ml2 import ovo_rpc
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


def _nothing(*arguments, **named):
    """Nobody listens."""


class Everywhere(api.MechanismDriver):
    """Binds each port to the first segment, and says at once that it is up."""

    def initialize(self):
        """Turn off Neutron's notifications of agents: it reads each changed thing again for that."""
        ovo_rpc._ObjectChangeHandler.dispatch_event = _nothing
        l3_rpc_agent_api.L3AgentNotifyAPI._notification = _nothing
        l3_rpc_agent_api.L3AgentNotifyAPI._notification_fanout = _nothing

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        context.set_binding(
            context.segments_to_bind[0][api.ID],
            portbindings.VIF_TYPE_OVS,
            {portbindings.CAP_PORT_FILTER: True},
            status=constants.PORT_STATUS_ACTIVE,
        )
