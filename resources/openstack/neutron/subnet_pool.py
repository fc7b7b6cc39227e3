"""OS::Neutron::SubnetPool and OS::Neutron::AddressScope."""

from ....shapes import JsonMap
from ....template.constraints import AllowedValues, Custom, Length, Range
from ...errors import PropertyError
from ...schema import Property, SupportStatus
from ..bodies import NamedRemote
from ..compared import ComparedType
from .base import NeutronType
from .schema import NAME, SHOWN, TAGS, TENANT


def _number(description: str) -> Property:
    return Property("integer", description, update_allowed=True, constraints=(Range(minimum=0),))


class SubnetPool(NeutronType):
    """Prefixes from which subnets take their ranges."""

    support_status = SupportStatus(version="6.0.0")
    description = "Prefixes from which subnets take their ranges."
    path = "/subnetpools"
    item = "subnetpool"
    references = {"address_scope": NamedRemote("neutron.address_scope")}
    apart = ("tags",)
    properties_schema = {
        "name": NAME,
        "prefixes": Property(
            "list",
            "The prefixes, as CIDR; an update may add some only.",
            required=True,
            update_allowed=True,
            constraints=(Length(minimum=1),),
            schema=Property("string", "A prefix.", constraints=(Custom(check_name="net_cidr"),)),
        ),
        "address_scope": Property(
            "string",
            "Name or id of the address scope in which no two subnets overlap.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.address_scope"),),
        ),
        "default_quota": _number(
            "Most addresses that a project may take; for IPv6 most networks of 64 bits."
        ),
        "default_prefixlen": _number("Length of the prefix of a subnet that asks for none."),
        "min_prefixlen": _number("Shortest prefix that a subnet may take."),
        "max_prefixlen": _number("Longest prefix that a subnet may take."),
        "is_default": Property(
            "boolean",
            "Subnets take it that name no pool; by default for administrators only.",
            default=False,
            update_allowed=True,
        ),
        "tenant_id": TENANT,
        "shared": Property(
            "boolean", "Other projects may use it; by default for administrators only.", default=False
        ),
        "tags": TAGS,
    }
    attributes_schema = {"show": SHOWN["show"]}

    def validate(self, properties: JsonMap) -> None:
        """Check the order of the lengths of prefixes."""
        names = ("min_prefixlen", "default_prefixlen", "max_prefixlen")
        lengths = [(name, properties[name]) for name in names if isinstance(properties.get(name), int)]
        for (shorter, low), (longer, high) in zip(lengths, lengths[1:], strict=False):
            if low and high and low > high:
                raise PropertyError(f"{shorter} must not be above {longer}", (shorter,))


class AddressScope(ComparedType, NeutronType):
    """A range of addresses in which no two subnets overlap."""

    support_status = SupportStatus(version="6.0.0")
    description = "Pools of subnets whose addresses do not overlap."
    path = "/address-scopes"
    item = "address_scope"
    identity = "the name; which address scopes had it before is stored first"
    filters = ("name",)
    references = {"tenant_id": NamedRemote("keystone.project", "tenant_id")}
    properties_schema = {
        "name": NAME,
        "shared": Property(
            "boolean",
            "Other projects may use it; by default for administrators only.",
            default=False,
            update_allowed=True,
        ),
        "tenant_id": Property(
            "string",
            "Project that owns it; only administrators may name another than their own.",
            constraints=(Custom(check_name="keystone.project"),),
        ),
        "ip_version": Property("integer", "4 or 6.", default=4, constraints=(AllowedValues(values=(4, 6)),)),
    }
    attributes_schema = {"show": SHOWN["show"]}
