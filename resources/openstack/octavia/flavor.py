"""OS::Octavia::Flavor and FlavorProfile, AvailabilityZone and AvailabilityZoneProfile; for administrators."""

from ....shapes import JsonMap
from ....template.constraints import Custom
from ...schema import Attribute, Property, SupportStatus
from ..bodies import NamedRemote
from ..compared import ComparedType
from .base import OctaviaType
from .schema import DESCRIPTION, NAME, SHOW

ENABLED = Property("boolean", "New load balancers may use it.", default=True, update_allowed=True)
JSON = Custom(check_name="json_string")


class _Profile(ComparedType, OctaviaType):
    """Base of the types of profiles: data for a provider."""

    identity = "the name; which profiles had it before is stored first"
    attributes_schema = {"show": SHOW}


def _profile(data: str, description: str) -> dict[str, Property]:
    """Return the properties of a type of profiles.

    :param data: the name of the property with the data.
    """
    return {
        "name": NAME,
        data: Property("string", description, required=True, update_allowed=True, constraints=(JSON,)),
        "provider_name": Property("string", "Name of the provider.", update_allowed=True),
    }


class FlavorProfile(_Profile):
    """The meaning of a flavor to the provider of load balancers."""

    support_status = SupportStatus(version="14.0.0")
    description = "What a flavor of load balancers means to their provider. For administrators."
    path = "/lbaas/flavorprofiles"
    item = "flavorprofile"
    properties_schema = _profile("flavor_data", "What the provider makes, as JSON in a string.")


class AvailabilityZoneProfile(_Profile):
    """The meaning of an availability zone to the provider of load balancers."""

    support_status = SupportStatus(version="24.0.0")
    description = "What an availability zone means to the provider of load balancers. For administrators."
    path = "/lbaas/availabilityzoneprofiles"
    item = "availability_zone_profile"
    properties_schema = _profile(
        "availability_zone_data", "Where the provider makes it, as JSON in a string."
    )


class BalancerFlavor(ComparedType, OctaviaType):
    """A kind of load balancers."""

    support_status = SupportStatus(version="14.0.0")
    description = "A kind of load balancers. By default administrators alone may create it."
    path = "/lbaas/flavors"
    item = "flavor"
    identity = "the name, which one flavor may have"
    references = {"flavor_profile": NamedRemote("octavia.flavorprofile")}
    properties_schema = {
        "description": DESCRIPTION,
        "enabled": ENABLED,
        "name": NAME,
        "flavor_profile": Property(
            "string",
            "Name or id of its profile.",
            required=True,
            constraints=(Custom(check_name="octavia.flavorprofile"),),
        ),
    }
    attributes_schema = {"flavor_profile_id": Attribute("Id of its profile.", "string"), "show": SHOW}


class AvailabilityZone(ComparedType, OctaviaType):
    """A place for load balancers; its name is its id."""

    support_status = SupportStatus(version="24.0.0")
    description = "A place for load balancers. By default administrators alone may create it."
    path = "/lbaas/availabilityzones"
    item = "availability_zone"
    identity = "the name, which is its id"
    id_field = "name"
    references = {"availability_zone_profile": NamedRemote("octavia.availabilityzoneprofile")}
    properties_schema = {
        "description": DESCRIPTION,
        "enabled": ENABLED,
        "name": NAME,
        "availability_zone_profile": Property(
            "string",
            "Name or id of its profile.",
            required=True,
            constraints=(Custom(check_name="octavia.availabilityzoneprofile"),),
        ),
    }
    attributes_schema = {
        "availability_zone_profile_id": Attribute("Id of its profile.", "string"),
        "show": SHOW,
    }

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether it gets another name: the service changes none."""
        return bool(before["name"] != after["name"])
