"""OS::Neutron::Segment: a part of a network that is over one physical network."""

from ....shapes import JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import Property, PropertyError, SupportStatus
from ..bodies import NamedRemote
from .base import DescribedType
from .schema import NAME, SHOWN

ON_PHYSICAL = ("flat", "vlan")
WITHOUT_NUMBER = ("local", "flat")
TUNNELS = ("vxlan", "gre", "geneve")
MOST_VLANS = 4094


class Segment(DescribedType):
    """A part of a network that is over one physical network; for administrators."""

    type_name = "OS::Neutron::Segment"
    support_status = SupportStatus(version="9.0.0")
    description = "A segment of a network, on one physical network; for administrators by default."
    path = "/segments"
    is_of_project = False
    item = "segment"
    references = {"network": NamedRemote("neutron.network")}
    properties_schema = {
        "network": Property(
            "string",
            "Name or id of the network.",
            required=True,
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "network_type": Property(
            "string",
            "Type of the physical network.",
            required=True,
            constraints=(AllowedValues(values=("local", "vlan", *TUNNELS, "flat")),),
        ),
        "physical_network": Property("string", "Name of the physical network, with flat and vlan."),
        "segmentation_id": Property(
            "integer", "Segmentation id: VLAN number, or tunnel key (VNI).", constraints=(Range(minimum=1),)
        ),
        "name": NAME,
        "description": Property("string", "Description of the segment.", update_allowed=True),
    }
    attributes_schema = {"show": SHOWN["show"]}

    def validate(self, properties: JsonMap) -> None:
        """Check that the kind of network has what it needs, and nothing that it cannot have."""
        kind = properties.get("network_type")
        physical = properties.get("physical_network", "unknown")
        number = properties.get("segmentation_id", "unknown")
        if kind in ON_PHYSICAL and physical is None:
            raise PropertyError(f"physical_network is needed for the type {kind}", ("physical_network",))
        if kind in TUNNELS and physical not in (None, "unknown"):
            raise PropertyError(
                f"physical_network cannot be given for the type {kind}", ("physical_network",)
            )
        if kind == "vlan" and number is None:
            raise PropertyError("segmentation_id is needed for the type vlan", ("segmentation_id",))
        if kind in WITHOUT_NUMBER and isinstance(number, int):
            raise PropertyError(f"segmentation_id cannot be given for the type {kind}", ("segmentation_id",))
        if kind == "vlan" and isinstance(number, int) and number > MOST_VLANS:
            raise PropertyError(f"segmentation_id is {MOST_VLANS} at most for vlan", ("segmentation_id",))
