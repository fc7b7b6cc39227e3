"""OS::Octavia::Flavor and FlavorProfile, AvailabilityZone and AvailabilityZoneProfile; for administrators."""

from ....shapes import JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, SupportStatus
from ..bodies import NamedRemote
from ..compared import ComparedType
from .base import OctaviaType
from .schema import DESCRIPTION, NAME, SHOW

ENABLED = Property("boolean", "Availability to new load balancers.", default=True, update_allowed=True)
JSON = Custom(check_name="json_string")


class _Profile(ComparedType, OctaviaType):
    """Base of the types of profiles: data for a provider."""

    identity = "the name; Stoker first stores which profiles have it"
    attributes_schema = {"show": SHOW}


def _profile(data: str, description: str) -> dict[str, Property]:
    """Return the properties of a type of profiles.

    :param data: the name of the property with the data.
    """
    return {
        "name": NAME,
        data: Property("string", description, required=True, update_allowed=True, constraints=(JSON,)),
        "provider_name": Property("string", "Name of the provider driver.", update_allowed=True),
    }


class FlavorProfile(_Profile):
    """The meaning of a flavor to the provider of load balancers."""

    type_name = "OS::Octavia::FlavorProfile"
    support_status = SupportStatus(version="14.0.0")
    description = "A flavor profile: provider settings for load balancer flavors; for administrators."
    path = "/lbaas/flavorprofiles"
    item = "flavorprofile"
    properties_schema = _profile("flavor_data", "Flavor data for the provider driver, as JSON text.")


class AvailabilityZoneProfile(_Profile):
    """The meaning of an availability zone to the provider of load balancers."""

    type_name = "OS::Octavia::AvailabilityZoneProfile"
    support_status = SupportStatus(version="24.0.0")
    description = (
        "An availability zone profile: provider settings for availability zones; for administrators."
    )
    path = "/lbaas/availabilityzoneprofiles"
    item = "availability_zone_profile"
    properties_schema = _profile(
        "availability_zone_data", "Availability zone data for the provider driver, as JSON text."
    )


class BalancerFlavor(ComparedType, OctaviaType):
    """A kind of load balancers."""

    type_name = "OS::Octavia::Flavor"
    support_status = SupportStatus(version="14.0.0")
    description = "A load balancer flavor; for administrators by default."
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
            "Name or id of the flavor profile.",
            required=True,
            constraints=(Custom(check_name="octavia.flavorprofile"),),
        ),
    }
    attributes_schema = {"flavor_profile_id": Attribute("Id of the flavor profile.", "string"), "show": SHOW}


class AvailabilityZone(ComparedType, OctaviaType):
    """A place for load balancers; its name is its id."""

    type_name = "OS::Octavia::AvailabilityZone"
    support_status = SupportStatus(version="24.0.0")
    description = "An availability zone of load balancers; for administrators by default."
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
            "Name or id of the availability zone profile.",
            required=True,
            constraints=(Custom(check_name="octavia.availabilityzoneprofile"),),
        ),
    }
    attributes_schema = {
        "availability_zone_profile_id": Attribute("Id of the availability zone profile.", "string"),
        "show": SHOW,
    }

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether it gets another name: the service changes none."""
        return bool(before["name"] != after["name"])
