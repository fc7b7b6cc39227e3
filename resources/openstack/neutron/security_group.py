"""OS::Neutron::SecurityGroup and OS::Neutron::SecurityGroupRule."""

import typing
from collections.abc import Collection, Iterator, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import (
    CloudFacts,
    Done,
    KnownResource,
    KnownStack,
    Property,
    PropertyError,
    QuotaNeeds,
    ResourceView,
    StackRule,
    Step,
    StepContext,
    SupportStatus,
    raise_all,
    rule_of_each,
)
from ..bodies import NamedRemote
from ..compared import ComparedType, text_of
from ..declared import REMOTE
from ..names import resolve
from ..service import Conflict, RemoteNotFound, object_of, objects_of
from .addresses import network_of
from .base import NeutronType
from .schema import NAME, SHOWN
from .users import PORTS, Usage

PROTOCOLS = AllowedValues(
    values=(
        *range(256),
        *("ah", "dccp", "egp", "esp", "gre", "icmp", "icmpv6", "igmp", "ipv6-encap", "ipv6-frag"),
        *("ipv6-icmp", "ipv6-nonxt", "ipv6-opts", "ipv6-route", "ospf", "pgm", "rsvp", "sctp"),
        *("tcp", "udp", "udplite", "vrrp"),
    )
)
PORT_NUMBER = Range(minimum=0, maximum=65535)
GROUP = Custom(check_name="neutron.security_group")
DIRECTION = Property(
    "string",
    "Traffic direction, as the server sees it.",
    default="ingress",
    constraints=(AllowedValues(values=("ingress", "egress")),),
)
ETHERTYPE = Property(
    "string",
    "Ethertype of the traffic.",
    default="IPv4",
    constraints=(AllowedValues(values=("IPv4", "IPv6")),),
)
PORT_MIN = Property("integer", "First port of the range, or the ICMP type.", constraints=(PORT_NUMBER,))
PORT_MAX = Property("integer", "Last port of the range, or the ICMP code.", constraints=(PORT_NUMBER,))
PREFIX = Property("string", "Remote addresses, as CIDR.", constraints=(Custom(check_name="net_cidr"),))
RULE = {
    "description": Property("string", "Description of the rule."),
    "direction": DIRECTION,
    "ethertype": ETHERTYPE,
    "port_range_min": PORT_MIN,
    "port_range_max": PORT_MAX,
    "protocol": Property("string", "IP protocol, by name or number.", constraints=(PROTOCOLS,)),
    "remote_mode": Property(
        "string",
        "Property that selects the remote side.",
        default="remote_ip_prefix",
        constraints=(AllowedValues(values=("remote_ip_prefix", "remote_group_id")),),
    ),
    "remote_group_id": Property(
        "string",
        "Id of the remote security group, with remote_mode remote_group_id; if omitted, this group.",
        constraints=(GROUP,),
    ),
    "remote_ip_prefix": PREFIX,
}
_WITH_PORTS = ("tcp", "udp", "sctp", "dccp", "udplite", "6", "17", "132", "33", "136")
"""Protocols whose numbers are ports; those of ICMP are a type and a code."""
_OF_ICMP = ("icmp", "icmpv6", "ipv6-icmp", "1", "58")
_OF_IPV6 = (
    *("icmpv6", "ipv6-encap", "ipv6-frag", "ipv6-icmp", "ipv6-nonxt", "ipv6-opts", "ipv6-route"),
    *("41", "43", "44", "58", "59", "60"),
)
_ALL_PORTS = (1, 65535)
"""The ports that the service takes for any, also without a protocol."""
COMPARED = (
    *("direction", "ethertype", "port_range_min", "port_range_max", "protocol"),
    *("remote_group_id", "remote_ip_prefix"),
)
"""Fields that identify a rule; the service refuses a second rule that has them all."""
ALL_EGRESS = tuple({"direction": "egress", "ethertype": version} for version in ("IPv4", "IPv6"))
"""Rules that the service gives a new group; one that has rules of its own for egress does not keep them."""


def rule_errors(rule: JsonMap, path: tuple[str | int, ...] = ()) -> Iterator[PropertyError]:
    """Yield what the service would refuse in a rule: ports without a protocol of theirs, mixed IP versions.

    :param rule: the known properties of the rule; those that are unknown are absent.
    :param path: path of the rule in the properties.
    """
    yield from _port_errors(rule, path)
    ethertype = rule.get("ethertype")
    if ethertype == "IPv4" and rule.get("protocol") in _OF_IPV6:
        text = f"protocol {rule['protocol']} is one of IPv6, but ethertype is IPv4: write ethertype: IPv6"
        yield PropertyError(text, (*path, "ethertype"))
    prefix = network_of(rule.get("remote_ip_prefix"))
    is_used = rule.get("remote_mode", "remote_ip_prefix") == "remote_ip_prefix"
    if ethertype and prefix is not None and is_used and ethertype != f"IPv{prefix.version}":
        text = f"remote_ip_prefix {prefix} is a range of IPv{prefix.version}, but ethertype is {ethertype}"
        yield PropertyError(f"{text}: write ethertype: IPv{prefix.version}", (*path, "ethertype"))


def _port_errors(rule: JsonMap, path: tuple[str | int, ...]) -> Iterator[PropertyError]:
    if any(name not in rule for name in ("protocol", "port_range_min", "port_range_max")):
        return
    protocol = rule["protocol"]
    low = rule["port_range_min"]
    high = rule["port_range_max"]
    if (low is None and high is None) or (low, high) == _ALL_PORTS:
        return
    text = ""
    if not protocol:
        text = "ports need a protocol that has ports, such as tcp or udp: write protocol: tcp"
    elif protocol in _WITH_PORTS:
        if low is None or high is None:
            text = "port_range_min and port_range_max are needed both; for one port write it twice"
        elif low > high:
            text = f"port_range_min ({low}) must not be above port_range_max ({high})"
    elif protocol not in _OF_ICMP:
        names = ", ".join(name for name in _WITH_PORTS if not name.isdigit())
        text = f"protocol {protocol} has no ports: leave them out; those with ports are {names}"
    if text:
        yield PropertyError(text, (*path, "port_range_min" if low is not None else "port_range_max"))


def _errors_of_rules(properties: JsonMap) -> list[PropertyError]:
    """Return the errors of the rules of a group, as far as they are known."""
    rules = [{"remote_mode": None, **rule} for rule in properties.get("rules") or ()]
    return [error for index, rule in enumerate(rules) for error in rule_errors(rule, ("rules", index))]


class SecurityGroup(NeutronType):
    """A security group: rules for the traffic of ports."""

    type_name = "OS::Neutron::SecurityGroup"
    support_status = SupportStatus(version="2014.1")
    description = "A security group: rules for the traffic of ports."
    path = "/security-groups"
    item = "security_group"
    used_by = Usage(PORTS, "security_groups")
    apart = ("rules",)
    properties_schema = {
        "name": NAME,
        "description": Property("string", "Description of the security group.", update_allowed=True),
        "rules": Property(
            "list",
            "Rules of the security group.",
            default=[],
            update_allowed=True,
            schema=Property("map", "Security group rule.", schema=RULE),
        ),
        "stateful": Property(
            "boolean",
            "Stateful filtering (connection tracking): replies to permitted traffic are permitted.",
            update_allowed=True,
        ),
    }
    stack_rules: typing.ClassVar[Sequence[StackRule]] = (
        rule_of_each("OS::Neutron::SecurityGroup", _errors_of_rules),
    )
    attributes_schema = {"show": SHOWN["show"]}

    def validate(self, properties: JsonMap) -> None:
        """Check the name, for each project has a group named default, and the ports of the rules."""
        errors: list[PropertyError] = []
        if properties.get("name") == "default":
            errors.append(PropertyError("Security groups cannot be assigned the name 'default'.", ("name",)))
        raise_all([*errors, *_errors_of_rules(properties)])

    def quota_needs(self, resource: KnownResource, stack: KnownStack, cloud: CloudFacts) -> QuotaNeeds:
        """Return the amounts that it takes: the group, and its rules."""
        rules: Sequence[JsonMap] | None = resource.values.get("rules")
        if rules is None:
            return {"security_group": 1, "security_group_rule": None}
        has_egress = any(rule.get("direction", "egress") == "egress" for rule in rules)
        count = len(rules) + (0 if has_egress else len(ALL_EGRESS))
        return {"security_group": 1, "security_group_rule": count}

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has rules; a description of its own, for the mark is there at first."""
        return bool(target.properties["rules"] or target.properties["description"])

    def after_create(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Make the rules, and give the group its description; return the group with them.

        The first answer of the service says which rules it has, unless a step before has changed them.
        """
        group = target.data[REMOTE]
        rules = group.get("security_group_rules")
        try:
            if rules is None:
                rules = self._present_rules(target, context)
            rules = self._set_rules(target, rules, context)
        except (Conflict, RemoteNotFound):
            rules = self._set_rules(target, self._present_rules(target, context), context)
        if target.properties["description"]:
            body = {self.item: {"description": target.properties["description"]}}
            return self._unwrapped(self.service_for(context).put(self.path_of(target), body))
        return {**group, "security_group_rules": rules}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Make the rules that are new, and delete those that are left over."""
        if "rules" in changed:
            self._set_rules(target, self._present_rules(target, context), context)

    def _present_rules(self, target: ResourceView, context: StepContext) -> Sequence[JsonMap]:
        rules: Sequence[JsonMap]
        rules = self.get(self.service_for(context), self.id_of(target))["security_group_rules"]
        return rules

    def _set_rules(
        self, target: ResourceView, present: Sequence[JsonMap], context: StepContext
    ) -> list[JsonMap]:
        """Make the rules of a group what they are to be, and return them.

        The service changes no rule, so one with another description is deleted and made again.
        """
        service = self.service_for(context)
        expected = {_identity(rule): rule for rule in self._rules(target, context)}
        unchanged: dict[tuple[str, ...], JsonMap] = {}
        for rule in present:
            declared = expected.get(_identity(rule))
            if declared is not None and _has_description_of(rule, declared):
                unchanged[_identity(rule)] = rule
            else:
                service.delete(f"/security-group-rules/{rule['id']}")
        missing = [rule for key, rule in expected.items() if key not in unchanged]
        if not missing:
            return [*unchanged.values()]
        answer = service.post("/security-group-rules", {"security_group_rules": missing})
        return [*unchanged.values(), *objects_of(object_of(answer), "security_group_rules")]

    def _rules(self, target: ResourceView, context: StepContext) -> Sequence[JsonMap]:
        """Return the rules that the group is to have, as bodies."""
        group = self.id_of(target)
        rules: list[dict[str, Json]] = []
        for declared in target.properties["rules"]:
            rule = {
                name: declared[name]
                for name in (*COMPARED, "description")
                if declared[name] not in (None, "")
            }
            if declared["remote_mode"] == "remote_group_id":
                rule.pop("remote_ip_prefix", None)
                other = declared["remote_group_id"]
                rule["remote_group_id"] = (
                    resolve(context, "neutron.security_group", other) if other else group
                )
            else:
                rule.pop("remote_group_id", None)
            rules.append(rule)
        if not any(rule["direction"] == "egress" for rule in rules):
            rules += [dict(rule) for rule in ALL_EGRESS]
        return [{**rule, "security_group_id": group} for rule in rules]


def _identity(rule: JsonMap) -> tuple[str, ...]:
    return tuple(text_of(rule.get(name)) for name in COMPARED)


def _has_description_of(rule: JsonMap, other: JsonMap) -> bool:
    return text_of(rule.get("description")) == text_of(other.get("description"))


class SecurityGroupRule(ComparedType, NeutronType):
    """A rule of a security group; the service has each rule once, so that it is its own identity."""

    type_name = "OS::Neutron::SecurityGroupRule"
    support_status = SupportStatus(version="7.0.0")
    description = "A rule of a security group."
    path = "/security-group-rules"
    item = "security_group_rule"
    quota = {"security_group_rule": 1}
    identity = "all fields of the rule, of which the service keeps one"
    compared = ("security_group_id", *COMPARED)
    filters = ("security_group_id", "direction")
    references = {
        "security_group": NamedRemote("neutron.security_group"),
        "remote_group": NamedRemote("neutron.security_group"),
    }
    properties_schema = {
        "security_group": Property(
            "string", "Name or id of the security group.", required=True, constraints=(GROUP,)
        ),
        "description": Property("string", "Description of the rule.", update_allowed=True),
        "direction": DIRECTION,
        "ethertype": ETHERTYPE,
        "port_range_min": PORT_MIN,
        "port_range_max": PORT_MAX,
        "protocol": Property(
            "string", "IP protocol, by name or number.", default="tcp", constraints=(PROTOCOLS,)
        ),
        "remote_group": Property("string", "Name or id of the remote security group.", constraints=(GROUP,)),
        "remote_ip_prefix": PREFIX,
    }
    attributes_schema = {"show": SHOWN["show"]}

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Make the rule again, with another description: the service changes none, and has each rule once."""
        service = self.service_for(context)
        for rule_id in self._alike(target, context):
            rule = self.get(service, rule_id)
            if _has_description_of(rule, target.properties):  # An earlier step has made it.
                return Done(physical_id=rule_id, data=self._data(rule, target))
            if rule_id == target.physical_id:
                service.delete(f"{self.path}/{rule_id}")
        rule = self._unwrapped(self.post(service, self.create_body(target, context), target))
        return Done(physical_id=str(rule[self.id_field]), data=self._data(rule, target))

    def validate(self, properties: JsonMap) -> None:
        """Check that the other side is named once, and that ports fit the protocol."""
        if properties.get("remote_group") and properties.get("remote_ip_prefix"):
            raise PropertyError("remote_group and remote_ip_prefix exclude each other")
        raise_all([*rule_errors(properties)])
