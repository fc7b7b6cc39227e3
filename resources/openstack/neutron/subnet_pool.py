"""OS::Neutron::SubnetPool and OS::Neutron::AddressScope."""

from ....shapes import JsonMap
from ....template.constraints import AllowedValues, Custom, Length, Range
from ...contract import (
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..bodies import NamedRemote
from ..compared import ComparedType
from ..service import BadRequest, in_use
from .base import NeutronType
from .schema import NAME, SHOWN, TAGS, TENANT
from .users import Usage


def _number(description: str) -> Property:
    return Property("integer", description, update_allowed=True, constraints=(Range(minimum=0),))


class SubnetPool(NeutronType):
    """A subnet pool: prefixes that subnets are allocated from."""

    type_name = "OS::Neutron::SubnetPool"
    support_status = SupportStatus(version="6.0.0")
    description = "A subnet pool: prefixes that subnets are allocated from."
    path = "/subnetpools"
    item = "subnetpool"
    quota = {"subnetpool": 1}
    used_by = Usage("/subnets", "subnetpool_id", noun="subnet")
    references = {"address_scope": NamedRemote("neutron.address_scope")}
    apart = ("tags",)
    properties_schema = {
        "name": NAME,
        "prefixes": Property(
            "list",
            "Prefixes of the pool, as CIDR; an update may only add prefixes.",
            required=True,
            update_allowed=True,
            constraints=(Length(minimum=1),),
            schema=Property("string", "Prefix, as CIDR.", constraints=(Custom(check_name="net_cidr"),)),
        ),
        "address_scope": Property(
            "string",
            "Name or id of the address scope, in which addresses do not overlap.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.address_scope"),),
        ),
        "default_quota": _number("Quota of a project: addresses for IPv4, /64 networks for IPv6."),
        "default_prefixlen": _number("Prefix length of a subnet that is allocated without one."),
        "min_prefixlen": _number("Smallest prefix length that a subnet may have."),
        "max_prefixlen": _number("Largest prefix length that a subnet may have."),
        "is_default": Property(
            "boolean",
            "Default pool for subnets without a pool; setting it is for administrators by default.",
            default=False,
            update_allowed=True,
        ),
        "tenant_id": TENANT,
        "shared": Property(
            "boolean",
            "Sharing with all projects; setting it is for administrators by default.",
            default=False,
        ),
        "tags": TAGS,
    }
    attributes_schema = {"show": SHOWN["show"]}

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the pool; the service answers 400, not 409, as long as it has subnets.

        :raises RetryableError: it has some; the reason names them.
        """
        try:
            return super().handle_delete(target, context)
        except BadRequest as error:
            if users := self.users(target, context):
                raise in_use(error, users) from error
            raise

    def validate(self, properties: JsonMap) -> None:
        """Check the order of the lengths of prefixes."""
        names = ("min_prefixlen", "default_prefixlen", "max_prefixlen")
        lengths = [(name, properties[name]) for name in names if isinstance(properties.get(name), int)]
        for (shorter, low), (longer, high) in zip(lengths, lengths[1:], strict=False):
            if low and high and low > high:
                raise PropertyError(f"{shorter} must not be above {longer}", (shorter,))


class AddressScope(ComparedType, NeutronType):
    """A range of addresses in which no two subnets overlap."""

    type_name = "OS::Neutron::AddressScope"
    support_status = SupportStatus(version="6.0.0")
    description = "An address scope: subnet pools whose addresses do not overlap."
    path = "/address-scopes"
    item = "address_scope"
    identity = "the name; Stoker first stores which address scopes have it"
    used_by = Usage("/subnetpools", "address_scope_id", noun="subnet pool")
    filters = ("name",)
    references = {"tenant_id": NamedRemote("keystone.project", "tenant_id")}
    properties_schema = {
        "name": NAME,
        "shared": Property(
            "boolean",
            "Sharing with all projects; setting it is for administrators by default.",
            default=False,
            update_allowed=True,
        ),
        "tenant_id": Property(
            "string",
            "Id of the owning project; another than one's own is for administrators only.",
            constraints=(Custom(check_name="keystone.project"),),
        ),
        "ip_version": Property(
            "integer", "IP version.", default=4, constraints=(AllowedValues(values=(4, 6)),)
        ),
    }
    attributes_schema = {"show": SHOWN["show"]}
