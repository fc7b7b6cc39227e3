"""AWS::EC2::SecurityGroup: a security group under the names of CloudFormation."""

from ....shapes import Json, JsonMap
from ...contract import Property, PropertyError, SupportStatus
from ..translated import TranslatedType
from .security_group import SecurityGroup

DIRECTIONS = {"SecurityGroupIngress": "ingress", "SecurityGroupEgress": "egress"}
PORTS = {"FromPort": "port_range_min", "ToPort": "port_range_max"}
ANY = "-1"
"""CloudFormation's number for all protocols."""
_RULE = {
    "CidrIp": Property("string", "Remote addresses, as CIDR."),
    "FromPort": Property("string", "First port of the range, or the ICMP type; negative: any."),
    "ToPort": Property("string", "Last port of the range, or the ICMP code; negative: any."),
    "IpProtocol": Property("string", "IP protocol, by name or number; -1: any."),
    "SourceSecurityGroupId": Property("string", "Id of the remote security group."),
    "SourceSecurityGroupName": Property("string", "Name of the remote security group."),
    "SourceSecurityGroupOwnerId": Property("string", "Owner of the remote security group; without effect."),
}


def _rules(description: str) -> Property:
    rule = Property("map", "IPv4 rule.", schema=_RULE)
    return Property("list", description, schema=rule, update_allowed=True)


def _all_rules(properties: JsonMap) -> list[Json]:
    """Return the rules of both directions as the inner type has them."""
    return [
        _inner_rule(rule, direction)
        for name, direction in DIRECTIONS.items()
        for rule in properties.get(name) or ()
    ]


def _inner_rule(rule: JsonMap, direction: str) -> dict[str, Json]:
    """Return a rule as the inner type has it."""
    ports = {field: int(rule[key]) for key, field in PORTS.items() if rule[key]}
    other = rule["SourceSecurityGroupId"] or rule["SourceSecurityGroupName"]
    values = {
        "direction": direction,
        "ethertype": "IPv4",
        "protocol": None if rule["IpProtocol"] in (None, "", ANY) else rule["IpProtocol"],
        "remote_ip_prefix": rule["CidrIp"] or None,
        "remote_group_id": other or None,
        "remote_mode": "remote_group_id" if other else "remote_ip_prefix",
        **{field: number for field, number in ports.items() if number >= 0},
    }
    return {name: value for name, value in values.items() if value is not None}


class Ec2SecurityGroup(TranslatedType):
    """A set of rules; its inner type is OS::Neutron::SecurityGroup."""

    type_name = "AWS::EC2::SecurityGroup"
    inner = SecurityGroup()
    description = "A security group: rules for the traffic of ports, under the names of CloudFormation."
    support_status = SupportStatus(version="2014.1")
    service = "network"
    identity = "the field ``description``"
    properties_schema = {
        "GroupDescription": Property("string", "Description of the security group.", required=True),
        "VpcId": Property("string", "Id of the VPC; without effect, as in Heat."),
        "SecurityGroupIngress": _rules("Ingress rules."),
        "SecurityGroupEgress": _rules("Egress rules; if omitted, all egress traffic is permitted."),
    }
    translation = {"description": "GroupDescription", "rules": _all_rules}

    def validate(self, properties: JsonMap) -> None:
        """Check that ports are numbers."""
        for name in DIRECTIONS:
            for index, rule in enumerate(properties.get(name) or ()):
                for key in PORTS:
                    if not _is_number(rule[key]):
                        raise PropertyError(f"{rule[key]:.20} is not a number", (name, index, key))


def _is_number(value: str | None) -> bool:
    return not value or value.removeprefix("-").isdecimal()
