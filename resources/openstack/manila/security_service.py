"""OS::Manila::SecurityService: a directory service that knows the users of shares."""

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues
from ...contract import Attribute, CloudCalls, Property, ResourceView
from ..service import RemoteMap
from .base import DescribedManilaType

PASSWORD = "password"


class SecurityService(DescribedManilaType):
    """A directory service.  Answers hold its password, which is not kept with them."""

    type_name = "OS::Manila::SecurityService"
    description = "A security service, such as LDAP, that authenticates the users of shares."
    path = "/security-services"
    item = "security_service"
    list_path = "/security-services/detail"
    properties_schema = {
        "name": Property("string", "Name.", update_allowed=True),
        "type": Property(
            "string",
            "Type of the security service.",
            required=True,
            constraints=(AllowedValues(values=("ldap", "kerberos", "active_directory")),),
        ),
        "dns_ip": Property("string", "DNS server address in the project's network.", update_allowed=True),
        "server": Property("string", "Address or host name of the security service.", update_allowed=True),
        "domain": Property("string", "Domain of the security service.", update_allowed=True),
        "user": Property("string", "User or group of the security service.", update_allowed=True),
        PASSWORD: Property("string", "Password of the user.", update_allowed=True, sensitive=True),
        "description": Property("string", "Description.", update_allowed=True),
    }
    attributes_schema = {
        "show": Attribute("All fields, as the service's API returns them, without the password.", "map")
    }

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields but the password."""
        live = super().reported_properties(target, remote, context)
        return {name: value for name, value in live.items() if name != PASSWORD}

    def _unwrapped(self, answer: Json) -> JsonMap:
        """Return the security service without its password."""
        remote = super()._unwrapped(answer)
        return RemoteMap({name: value for name, value in remote.items() if name != PASSWORD})
