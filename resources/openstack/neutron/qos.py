"""OS::Neutron::QoSPolicy and the types of its rules; by default for administrators."""

import typing
from collections.abc import Sequence

from ....template.constraints import AllowedValues, Custom, Range
from ...contract import Attribute, Property, SupportStatus
from ..compared import ComparedType
from ..parts import PartType
from .base import DescribedType, NeutronType
from .schema import NAME, SHOWN, TENANT

AT_LEAST_0 = Range(minimum=0)
EGRESS = "egress"
MARKS = (*(0, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 46, 48, 56),)
"""The code points of differentiated services."""


class QoSPolicy(DescribedType):
    """Rules for the traffic of ports and networks that have the policy."""

    type_name = "OS::Neutron::QoSPolicy"
    support_status = SupportStatus(version="6.0.0")
    description = "A QoS policy: rules for the traffic of its ports and networks."
    path = "/qos/policies"
    item = "policy"
    items = "policies"
    properties_schema = {
        "name": NAME,
        "description": Property("string", "Description of the policy.", update_allowed=True),
        "shared": Property("boolean", "Sharing with all projects.", default=False, update_allowed=True),
        "tenant_id": TENANT,
    }
    attributes_schema = {
        "rules": Attribute("Rules of the policy.", "list", volatile=True),
        "show": SHOWN["show"],
    }


class QoSRule(PartType, ComparedType, NeutronType):
    """Base of the types of rules.  A policy has one rule of each kind, or one for each direction."""

    whole = "policy"
    whole_kind = "neutron.qos_policy"
    apart = ("policy", "tenant_id")  # The service takes no project: a rule is of the policy's.
    identity = "the policy and the direction, for which the service keeps one rule"
    compared: typing.ClassVar[Sequence[str]] = ("direction",)
    attributes_schema = {"show": SHOWN["show"]}


POLICY = {
    "policy": Property(
        "string",
        "Name or id of the QoS policy.",
        required=True,
        constraints=(Custom(check_name="neutron.qos_policy"),),
    ),
    "tenant_id": Property(
        "string", "Project id; without effect, because a rule belongs to the project of its policy."
    ),
}


def _amount(description: str, default: int | None = None) -> Property:
    """Return a property with an amount of traffic; without a default it is required."""
    return Property(
        "integer",
        description,
        default=default,
        required=default is None,
        update_allowed=True,
        constraints=(AT_LEAST_0,),
    )


def _direction(*others: str) -> Property:
    """Return the property of the direction, which may be one of others, too."""
    return Property(
        "string",
        "Traffic direction, as the server sees it.",
        default=EGRESS,
        update_allowed=True,
        constraints=(AllowedValues(values=(*others, EGRESS, "ingress")),),
    )


class QoSBandwidthLimitRule(QoSRule):
    """A limit of the bandwidth."""

    type_name = "OS::Neutron::QoSBandwidthLimitRule"
    support_status = SupportStatus(version="6.0.0")
    description = "A bandwidth limit of the ports that have a QoS policy."
    path = "/qos/policies/{}/bandwidth_limit_rules"
    item = "bandwidth_limit_rule"
    properties_schema = {
        "max_kbps": _amount("Maximum bandwidth, in kbit/s."),
        "max_burst_kbps": _amount("Maximum burst size, in kbit; 0: chosen by the service.", 0),
        "direction": _direction(),
        **POLICY,
    }


class QoSDscpMarkingRule(QoSRule):
    """A mark that packets get."""

    type_name = "OS::Neutron::QoSDscpMarkingRule"
    support_status = SupportStatus(version="7.0.0")
    description = "A DSCP mark for the packets of the ports that have a QoS policy."
    path = "/qos/policies/{}/dscp_marking_rules"
    item = "dscp_marking_rule"
    identity = "the policy, for which the service keeps one rule"
    compared = ()
    properties_schema = {
        "dscp_mark": Property(
            "integer",
            "DSCP mark of the packets.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(values=MARKS),),
        ),
        **POLICY,
    }


class QoSMinimumBandwidthRule(QoSRule):
    """Bandwidth that is guaranteed."""

    type_name = "OS::Neutron::QoSMinimumBandwidthRule"
    support_status = SupportStatus(version="14.0.0")
    description = "A minimum bandwidth, guaranteed to the ports that have a QoS policy."
    path = "/qos/policies/{}/minimum_bandwidth_rules"
    item = "minimum_bandwidth_rule"
    properties_schema = {
        "min_kbps": _amount("Minimum guaranteed bandwidth, in kbit/s."),
        "direction": _direction(),
        **POLICY,
    }


class QoSMinimumPacketRateRule(QoSRule):
    """Packets whose passage is guaranteed."""

    type_name = "OS::Neutron::QoSMinimumPacketRateRule"
    support_status = SupportStatus(version="19.0.0")
    description = "A minimum packet rate, guaranteed to the ports that have a QoS policy."
    path = "/qos/policies/{}/minimum_packet_rate_rules"
    item = "minimum_packet_rate_rule"
    properties_schema = {
        "min_kpps": _amount("Minimum guaranteed packet rate, in thousands of packets per second."),
        "direction": _direction("any"),
        **POLICY,
    }
