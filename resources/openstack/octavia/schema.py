"""Properties and attributes that types of the load balancing service share."""

from ....template.constraints import AllowedValues, Custom, Length, Range
from ...contract import Attribute, Property, SupportStatus

SINCE = SupportStatus(version="10.0.0")
"""The release of Heat that brought most of the types."""
PORT = Range(minimum=1, maximum=65535)
NAME = Property(
    "string",
    "Name; if omitted, generated from the names of the stack and the resource.",
    update_allowed=True,
    constraints=(Length(maximum=255),),
)
ENABLED = Property("boolean", "Administrative state: true is up.", default=True, update_allowed=True)
DESCRIPTION = Property("string", "Description.", default="", update_allowed=True)
OWNER = Property("string", "Project id; without effect, because the load balancer's project owns it.")
PROTOCOLS = AllowedValues(values=("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP"))
BALANCER = Custom(check_name="octavia.loadbalancer")
LISTENER = Custom(check_name="octavia.listener")
POOL = Custom(check_name="octavia.pool")
ADDRESS = Custom(check_name="ip_addr")
SUBNET = Custom(check_name="neutron.subnet")
SHOW = Attribute("All fields, as the service's API returns them.", "map")
