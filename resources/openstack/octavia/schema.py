"""Properties and attributes that types of the load balancing service share."""

from ....template.constraints import AllowedValues, Custom, Range
from ...schema import Attribute, Property, SupportStatus

SINCE = SupportStatus(version="10.0.0")
"""The release of Heat that brought most of the types."""
PORT = Range(minimum=1, maximum=65535)
NAME = Property("string", "Name; none: made of the stack's and the resource's.", update_allowed=True)
ENABLED = Property("boolean", "It is in use.", default=True, update_allowed=True)
DESCRIPTION = Property("string", "Its description.", default="", update_allowed=True)
OWNER = Property("string", "Project that owns it; it belongs to that of the balancer in any case.")
PROTOCOLS = AllowedValues(values=("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP"))
BALANCER = Custom(check_name="octavia.loadbalancer")
LISTENER = Custom(check_name="octavia.listener")
POOL = Custom(check_name="octavia.pool")
ADDRESS = Custom(check_name="ip_addr")
SUBNET = Custom(check_name="neutron.subnet")
SHOW = Attribute("All that the service reports of it.", "map")
