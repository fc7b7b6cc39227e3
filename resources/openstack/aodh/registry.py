"""The table of the types of the alarming service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .alarm import (
    CompositeAlarm,
    EventAlarm,
    GnocchiAggregationByMetricsAlarm,
    GnocchiAggregationByResourcesAlarm,
    GnocchiResourcesAlarm,
    LBMemberHealthAlarm,
    PrometheusAlarm,
)

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Aodh::CompositeAlarm": CompositeAlarm,
    "OS::Aodh::EventAlarm": EventAlarm,
    "OS::Aodh::GnocchiAggregationByMetricsAlarm": GnocchiAggregationByMetricsAlarm,
    "OS::Aodh::GnocchiAggregationByResourcesAlarm": GnocchiAggregationByResourcesAlarm,
    "OS::Aodh::GnocchiResourcesAlarm": GnocchiResourcesAlarm,
    "OS::Aodh::LBMemberHealthAlarm": LBMemberHealthAlarm,
    "OS::Aodh::PrometheusAlarm": PrometheusAlarm,
}
