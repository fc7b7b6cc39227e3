"""Types of Heat that an installation or a cloud lacks: their names, and what to do about one; pure."""

from collections.abc import Iterable, Mapping

from ..template.suggestions import nearest

_SERVICES: Mapping[str, tuple[str, str]] = {
    "AWS::CloudFormation": ("", "Init"),
    "AWS::CloudWatch": ("", "Alarm"),
    "AWS::RDS": ("", "DBInstance"),
    "OS::Aodh": ("alarms", "Alarm CombinationAlarm"),
    "OS::Ceilometer": (
        "alarms",
        "Alarm CombinationAlarm GnocchiAggregationByMetricsAlarm GnocchiAggregationByResourcesAlarm "
        "GnocchiResourcesAlarm",
    ),
    "OS::Designate": ("DNS", "Domain Record"),
    "OS::Heat": ("", "HARestarter"),
    "OS::Magnum": ("container clusters", "Bay BayModel"),
    "OS::Metering": ("alarms", "Alarm"),
    "OS::Monasca": ("monitoring", "AlarmDefinition Notification"),
    "OS::Neutron": (
        "networks",
        "Firewall FirewallPolicy FirewallRule HealthMonitor "
        "LBaaS::HealthMonitor LBaaS::L7Policy LBaaS::L7Rule LBaaS::Listener LBaaS::LoadBalancer LBaaS::Pool "
        "LBaaS::PoolMember LoadBalancer Pool PoolMember RouterGateway",
    ),
    "OS::Nova": ("servers", "FloatingIP FloatingIPAssociation"),
    "OS::Sahara": (
        "data processing",
        "Cluster ClusterTemplate DataSource ImageRegistry Job JobBinary NodeGroupTemplate",
    ),
    "OS::Senlin": ("clusters", "Cluster Node Policy Profile Receiver"),
    "OS::Vitrage": ("root causes", "Template"),
}
"""By the beginning of the names: what the service is for, and the ends of the names.  These are all types of
Heat 27 and of releases before it that the resource types of Stoker lack."""
_BALANCERS = ("HealthMonitor", "L7Policy", "L7Rule", "Listener", "LoadBalancer", "Pool", "PoolMember")
_ALARMS = (
    "GnocchiAggregationByMetricsAlarm",
    "GnocchiAggregationByResourcesAlarm",
    "GnocchiResourcesAlarm",
)
MAPPED: Mapping[str, str] = {
    **{f"OS::Neutron::LBaaS::{name}": f"OS::Octavia::{name}" for name in _BALANCERS},
    **{f"OS::Ceilometer::{name}": f"OS::Aodh::{name}" for name in _ALARMS},
    "AWS::CloudWatch::Alarm": "OS::Aodh::GnocchiAggregationByResourcesAlarm",
    "OS::Metering::Alarm": "OS::Aodh::GnocchiAggregationByResourcesAlarm",
    "OS::Aodh::Alarm": "OS::Aodh::GnocchiAggregationByResourcesAlarm",
    "OS::Ceilometer::Alarm": "OS::Aodh::GnocchiAggregationByResourcesAlarm",
    "OS::Designate::Domain": "OS::Designate::Zone",
    "OS::Designate::Record": "OS::Designate::RecordSet",
    "OS::Nova::FloatingIP": "OS::Neutron::FloatingIP",
    "OS::Nova::FloatingIPAssociation": "OS::Neutron::FloatingIPAssociation",
}
"""Types whose services are gone, by their successors; the sample etc/older_types maps them."""
_INSTEAD: Mapping[str, str] = {
    **MAPPED,
    **{f"OS::Neutron::{name}": f"OS::Octavia::{name}" for name in _BALANCERS if not name.startswith("L")},
    "OS::Aodh::CombinationAlarm": "OS::Aodh::CompositeAlarm",
    "OS::Ceilometer::CombinationAlarm": "OS::Aodh::CompositeAlarm",
    "OS::Neutron::Firewall": "OS::Neutron::SecurityGroup",
    "OS::Neutron::FirewallPolicy": "OS::Neutron::SecurityGroup",
    "OS::Neutron::FirewallRule": "OS::Neutron::SecurityGroupRule",
    "OS::Magnum::Bay": "OS::Magnum::Cluster",
    "OS::Magnum::BayModel": "OS::Magnum::ClusterTemplate",
    "OS::Neutron::LoadBalancer": "OS::Octavia::LoadBalancer",
    "OS::Neutron::RouterGateway": "OS::Neutron::Router",
}
"""Types of Stoker that do what others of Heat do; their properties may be different."""
_OTHERWISE: Mapping[str, str] = {
    "OS::Heat::HARestarter": "Mark a resource as unhealthy in its place: the stack's next update replaces it",
}
"""Types in whose place something else is done than to use another type."""
_RETIRED = frozenset({"Monasca", "Sahara", "Senlin", "Vitrage"})
"""Projects that OpenStack has retired, and that have no successor."""
HEAT_TYPES = frozenset(
    f"{beginning}::{name}" for beginning, (_, names) in _SERVICES.items() for name in names.split()
)
"""Names of the types of Heat that do not come with Stoker."""
_CLIENTS: Mapping[str, str] = {
    "alarm": "aodh",
    "application-container": "zun",
    "baremetal": "ironic",
    "block-storage": "cinder",
    "compute": "nova",
    "container-infrastructure-management": "magnum",
    "database": "trove",
    "dns": "designate",
    "key-manager": "barbican",
    "image": "glance",
    "load-balancer": "octavia",
    "identity": "keystone",
    "message": "zaqar",
    "network": "neutron",
    "object-store": "swift",
    "orchestration": "heat",
    "reservation": "blazar",
    "shared-file-system": "manila",
    "workflow": "mistral",
}
"""Heat's names of services, by types in the catalog, by resource types, or by beginnings of such names."""
_ALIKE = 0.95
"""Likeness from which a name is taken for a misspelt one of these."""


def unavailable(type_name: str, service: str, reason: str = "") -> str:
    """Return Heat's text, with its number, for a type that a cloud or an installation does not have.

    :param service: its type, as the catalog has it.
    :param reason: why; "": the service catalog does not have it.
    """
    client = _CLIENTS.get(service, service)
    reason = reason or f"{client} {service} endpoint is not in service catalog."
    return f"HEAT-E99001 Service {client} is not available for resource type {type_name}, reason: {reason}"


def absent(name: str, installed: Iterable[str]) -> str:
    """Return that text for a type of Heat that does not come with Stoker, and what to do about it.

    :param installed: names of the types that there are.
    """
    beginning = next(each for each in _SERVICES if name.startswith(f"{each}::"))
    project = beginning.partition("::")[2].lower() if beginning.startswith("OS::") else "heat"
    client = _CLIENTS.get(name) or _CLIENTS.get(beginning, project)
    return unavailable(name, client, f"the type does not come with Stoker. {_instead(name, set(installed))}")


def advice(name: str, installed: Iterable[str]) -> str:
    """Return what follows "The Resource Type (…) could not be found": what would be right, and who can do it.

    :param installed: names of the types that there are.
    """
    names = set(installed)
    if (guess := nearest(name, HEAT_TYPES - names, alike=_ALIKE)) is not None:
        return f'. Did you mean "{guess}"? {_of_heat(guess, names)}'
    if (guess := nearest(name, names)) is not None:
        return f'. Did you mean "{guess}"?'
    beginning, separator, _ = name.rpartition("::")
    if separator and not any(other.startswith(f"{beginning}::") for other in names):
        return f". No installed plugin has types that begin with {beginning:.100}::"
    return "."


def _of_heat(name: str, installed: set[str]) -> str:
    """Return sentences about a type of Heat that is not installed."""
    beginning = next(each for each in _SERVICES if name.startswith(f"{each}::"))
    service = _SERVICES[beginning][0]
    project = beginning.partition("::")[2]
    owner = f" for {project} ({service})" if service else ""
    return f"It is a type of Heat{owner} that does not come with Stoker. {_instead(name, installed)}"


def _instead(name: str, installed: set[str]) -> str:
    """Return a sentence that says what to do about a type of Heat that is not installed."""
    if name in _OTHERWISE:
        return _OTHERWISE[name]
    successor = _INSTEAD.get(name)
    if successor not in installed:
        project = name.split("::")[1]
        retired = f"The project {project} is retired. " if project in _RETIRED else ""
        return f"{retired}Ask the operator for a plugin that has it (entry point group stoker.resource_types)"
    if name in MAPPED:
        return f"Use {successor}, or ask the operator to map it, as the sample etc/older_types does"
    return f"Use {successor}: the service of this type is gone"
