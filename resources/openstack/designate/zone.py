"""OS::Designate::Zone and OS::Designate::RecordSet: names in DNS."""

from collections.abc import Collection, Iterator

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Length, Range
from ...contract import (
    Attribute,
    CloudCalls,
    CloudFacts,
    Misfit,
    PlannedStack,
    Property,
    PropertyError,
    ResourceView,
    StepContext,
    SupportStatus,
)
from ..declared import DeclaredType
from ..names import quoted
from ..parts import PartType
from ..service import object_of
from ..statuses import StatusMeaning

TTL = Property(
    "integer",
    "Time to live (TTL) of the records, in seconds.",
    update_allowed=True,
    constraints=(Range(minimum=1, maximum=2147483647),),
)
DESCRIPTION = Property("string", "Description.", update_allowed=True, constraints=(Length(maximum=160),))
RECORD_TYPES = AllowedValues(
    values=(
        *("A", "AAAA", "CNAME", "MX", "SRV", "TXT", "SPF"),
        *("NS", "PTR", "SSHFP", "SOA", "CAA", "CERT", "NAPTR"),
    )
)


def zones_that_exist(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the zones whose names are taken."""
    for zone in stack.known.of_type("OS::Designate::Zone"):
        name = zone.thing("name")
        if zone.name not in stack.created or not isinstance(name, str):
            continue
        zones = cloud.members("dns", "/zones", "zones")
        if zones is not None and (same := zones.where("name", name)):
            yield Misfit(
                zone.name,
                f"there is a zone {name} already",
                ("name",),
                advice="Use another name.",
                certainty=stack.of_taken(*(str(entry.get("id")) for entry in same)),
            )


class NameType(DeclaredType):
    """Base of the two types."""

    service = "dns"
    item = ""
    slow_delete = True
    status = StatusMeaning(pending=("PENDING",))
    support_status = SupportStatus(version="8.0.0")

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new thing; empty ones are not sent, as in Heat."""
        return {name: value for name, value in super().create_body(target, context).items() if value}

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has a description of its own, in the mark's place."""
        return bool(target.properties["description"])

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set the description."""
        body = self.update_body(target, {"description"}, context)
        service = self.service_for(context)
        if self.update_method == "PATCH":
            service.patch(self.path_of(target), body)
        else:
            service.put(self.path_of(target), body)


class Zone(NameType):
    """A zone."""

    type_name = "OS::Designate::Zone"
    description = "A DNS zone."
    quota = {"zones": 1}
    cloud_rules = (zones_that_exist,)
    path = "/zones"
    items = "zones"
    update_method = "PATCH"
    renamed = {"primaries": "masters"}
    apart = ("masters",)
    properties_schema = {
        "name": Property(
            "string",
            "Zone name, with a full stop at the end.",
            required=True,
            constraints=(Length(maximum=255),),
        ),
        "ttl": TTL,
        "description": DESCRIPTION,
        "email": Property(
            "string", "E-mail address of the zone's administrator; required for PRIMARY.", update_allowed=True
        ),
        "type": Property(
            "string",
            "Zone type: PRIMARY is managed by the service, SECONDARY transferred from another server.",
            default="PRIMARY",
            constraints=(AllowedValues(values=("PRIMARY", "SECONDARY")),),
        ),
        "masters": Property(
            "list",
            "Old name of primaries.",
            update_allowed=True,
            alias_of="primaries",
            support_status=SupportStatus("DEPRECATED", version="15.0.0", message="Use primaries."),
        ),
        "primaries": Property(
            "list",
            "Primary servers that the zone is transferred from; required for SECONDARY.",
            update_allowed=True,
        ),
        "attributes": Property(
            "map",
            "Attributes for the selection of the zone's pool.",
            support_status=SupportStatus(version="24.0.0"),
        ),
    }
    attributes_schema = {"serial": Attribute("Serial number of the zone.", "string", volatile=True)}

    def validate(self, properties: JsonMap) -> None:
        """Check that it has what its type needs."""
        needed = {"PRIMARY": "email", "SECONDARY": "primaries"}.get(str(properties.get("type")))
        if needed is not None and not properties.get(needed, "unknown"):
            text = f"Property {needed} is required for zone type {properties['type']}"
            raise PropertyError(text, (needed,))


class RecordSet(PartType, NameType):
    """The records of a name."""

    type_name = "OS::Designate::RecordSet"
    description = "A record set: the DNS records of one name and type."
    path = "/zones/{}/recordsets"
    items = "recordsets"
    whole = "zone"
    whole_kind = "designate.zone"
    apart = ("zone",)
    properties_schema = {
        "name": Property(
            "string",
            "Record set name; the zone's name is appended if it has no full stop at the end. If omitted, "
            "generated from the names of the stack and the resource.",
            constraints=(Length(maximum=255),),
        ),
        "ttl": TTL,
        "description": DESCRIPTION,
        "type": Property("string", "Record type.", required=True, constraints=(RECORD_TYPES,)),
        "records": Property("list", "Record data.", required=True, update_allowed=True),
        "zone": Property(
            "string",
            "Name or id of the zone.",
            required=True,
            constraints=(Custom(check_name="designate.zone"),),
        ),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new record set; it gets a name in any case, as in Heat."""
        body = {"name": target.physical_name, **super().create_body(target, context)}
        if not str(body["name"]).endswith("."):
            # The service takes whole names only; Heat's client completes the others.
            path = f"{Zone.path}/{quoted(self.whole_id(target, context))}"
            zone = object_of(self.service_for(context).get(path))
            body["name"] = f"{body['name']}.{zone['name']}"
        return body

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the properties: the template's where only the records' order or the zone's name differs."""
        live = dict(super().reported_properties(target, remote, context))
        if live.get("name") == f"{target.properties['name']}.{remote.get('zone_name')}":
            live["name"] = target.properties["name"]
        records = target.properties["records"]
        present = live.get("records")
        if isinstance(present, list) and sorted(map(str, present)) == sorted(records):
            live["records"] = records
        return live

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; the records always, for the service wants them."""
        return super().update_body(target, {*changed, "records"}, context)
