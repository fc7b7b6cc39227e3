"""The types of alarms.

An alarm has no name of the template's.  So its name is made of the key of its creation, and by the name it is
found again.  Its actions are addresses, which may carry signatures: they are not kept with the answers of the
service.
"""

import json
import typing
import urllib.parse
from collections.abc import Collection, Mapping, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Length, Range
from ...contract import (
    Attribute,
    Done,
    Property,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    physical_name,
)
from ..bodies import given, without_nulls
from ..declared import DeclaredType
from ..names import resolve
from ..service import object_of

ACTIONS: Mapping[str, str] = {
    "alarm_actions": "alarm_queues",
    "ok_actions": "ok_queues",
    "insufficient_data_actions": "insufficient_data_queues",
}
"""Properties with addresses that are called, and those with names of queues that get messages."""
OPERATORS = AllowedValues(values=("le", "ge", "eq", "lt", "gt", "ne"))
KINDS_OF_VALUES = AllowedValues(values=("integer", "float", "string", "boolean", "datetime"))
_TIME = {
    "name": Property("string", "Name of the time constraint.", required=True),
    "start": Property(
        "string",
        "Start of the period, as a cron expression.",
        required=True,
        constraints=(Custom(check_name="cron_expression"),),
    ),
    "description": Property("string", "Description of the time constraint."),
    "duration": Property(
        "integer", "Duration of the period, in seconds.", required=True, constraints=(Range(minimum=0),)
    ),
    "timezone": Property("string", "Time zone.", constraints=(Custom(check_name="timezone"),)),
}


def _addresses(state: str) -> Property:
    return Property(
        "list",
        f"Action URLs, called at a change to the state {state}.",
        update_allowed=True,
        sensitive=True,
    )


def _queues(state: str) -> Property:
    return Property(
        "list",
        f"Names of Zaqar queues that get a message at a change to the state {state}.",
        default=[],
        update_allowed=True,
        schema=Property("string", "Name of a queue.", constraints=(Custom(check_name="zaqar.queue"),)),
        support_status=SupportStatus(version="8.0.0"),
    )


COMMON: Mapping[str, Property] = {
    "description": Property("string", "Description.", update_allowed=True),
    "enabled": Property("boolean", "Evaluation of the alarm.", default=True, update_allowed=True),
    "alarm_actions": _addresses("alarm"),
    "ok_actions": _addresses("ok"),
    "insufficient_data_actions": _addresses("insufficient-data"),
    "alarm_queues": _queues("alarm"),
    "ok_queues": _queues("ok"),
    "insufficient_data_queues": _queues("insufficient-data"),
    "repeat_actions": Property(
        "boolean",
        "Repetition of the actions at each evaluation, not only at a change of state.",
        default=True,
        update_allowed=True,
    ),
    "severity": Property(
        "string",
        "Severity.",
        default="low",
        update_allowed=True,
        constraints=(AllowedValues(values=("low", "moderate", "critical")),),
        support_status=SupportStatus(version="5.0.0"),
    ),
    "time_constraints": Property(
        "list",
        "Time constraints: periods to which the evaluation is limited.",
        default=[],
        schema=Property("map", "Time constraint.", schema=_TIME),
        support_status=SupportStatus(version="5.0.0"),
    ),
}
THRESHOLD: Mapping[str, Property] = {
    "comparison_operator": Property(
        "string",
        "Comparison operator between value and threshold.",
        update_allowed=True,
        constraints=(OPERATORS,),
    ),
    "threshold": Property("number", "Threshold.", required=True, update_allowed=True),
}
GNOCCHI: Mapping[str, Property] = {
    **THRESHOLD,
    "evaluation_periods": Property(
        "integer", "Number of consecutive values that all have to cross the threshold.", update_allowed=True
    ),
    "aggregation_method": Property("string", "Aggregation method, such as mean.", update_allowed=True),
    "granularity": Property("integer", "Granularity of the values, in seconds.", update_allowed=True),
}
METRIC = Property("string", "Name of the metric.", required=True, update_allowed=True)
RESOURCE_TYPE = Property("string", "Resource type in Gnocchi.", required=True, update_allowed=True)


class Alarm(DeclaredType):
    """Base of the types of alarms.

    :cvar kind: the service's type of the alarms; the rule is the field of this name and ``_rule``.
    """

    service = "alarm"
    path = "/alarms"
    is_listed = False  # Its lists are of another form.
    item = ""
    id_field = "alarm_id"
    mark = None
    identity = "the name, which Stoker chooses"
    apart = tuple(COMMON)
    kind: typing.ClassVar[str]
    attributes_schema = {
        "show": Attribute("All fields, as the service's API returns them, without the actions.", "map")
    }

    def rule(self, target: ResourceView, context: StepContext) -> Json:
        """Return the rule."""
        return super().create_body(target, context)

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {"name": target.physical_name, **self._fields(target, context)}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return all fields: the service changes an alarm as a whole."""
        return self._whole(target, self._fields(target, context), context)

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the alarm that has the name."""
        name = physical_name(target.stack.name, target.name, key)
        query = {"q.field": "name", "q.op": "eq", "q.value": name}
        alarms: Sequence[JsonMap] = self.service_for(context).get(self.path, **query) or ()
        return next((str(alarm["alarm_id"]) for alarm in alarms if alarm["name"] == name), None)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Disable the alarm: the service does not evaluate it."""
        return self._enable(target, context, enabled=False)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Enable the alarm again, if the template says so."""
        return self._enable(target, context, enabled=bool(target.properties["enabled"]))

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the properties of the alarm and of its rule as they are now."""
        alarm = self.service_for(context).get(self.path_of(target))
        rule = alarm.get(self._rule_field())
        values = {**(rule if isinstance(rule, Mapping) else {}), **alarm}
        values["time_constraints"] = _times(target.properties["time_constraints"] or (), values)
        return {
            name: values[name]
            for name, value in target.properties.items()
            if value is not None and name in values and name not in (*ACTIONS, "composite_rule")
        }

    def _enable(self, target: ResourceView, context: StepContext, *, enabled: bool) -> Step:
        # The service adds conditions to the queries of rules.  A rule that is sent back would get them twice.
        fields = {"enabled": enabled, self._rule_field(): self.rule(target, context)}
        body = self._whole(target, fields, context)
        self.service_for(context).put(self.path_of(target), body)
        return Done()

    def _whole(self, target: ResourceView, fields: JsonMap, context: StepContext) -> dict[str, Json]:
        return {**self.service_for(context).get(self.path_of(target)), **fields}

    def _fields(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        others = {"description", "enabled", "repeat_actions", "severity", "time_constraints"}
        values = {
            name: value for name, value in given(self.properties_schema, properties).items() if name in others
        }
        values["time_constraints"] = [without_nulls(entry) for entry in properties["time_constraints"] or ()]
        for actions, queues in ACTIONS.items():
            named = (f"trust+zaqar://?{_query(queue)}" for queue in properties[queues] or ())
            values[actions] = [*filter(None, properties[actions] or ()), *named]
        return {"type": self.kind, self._rule_field(): self.rule(target, context), **values}

    def _rule_field(self) -> str:
        return f"{self.kind}_rule"

    def _unwrapped(self, answer: Json) -> JsonMap:
        return {name: value for name, value in object_of(answer).items() if name not in ACTIONS}


class GnocchiResourcesAlarm(Alarm):
    """A threshold for one resource."""

    type_name = "OS::Aodh::GnocchiResourcesAlarm"
    support_status = SupportStatus(version="2015.1")
    description = "An alarm for a metric of one resource in Gnocchi."
    kind = "gnocchi_resources_threshold"
    properties_schema = {
        "metric": METRIC,
        "resource_id": Property(
            "string", "Id of the resource in Gnocchi.", required=True, update_allowed=True
        ),
        "resource_type": RESOURCE_TYPE,
        **GNOCCHI,
        **COMMON,
    }


class GnocchiAggregationByMetricsAlarm(Alarm):
    """A threshold for several metrics."""

    type_name = "OS::Aodh::GnocchiAggregationByMetricsAlarm"
    support_status = SupportStatus(version="2015.1")
    description = "An alarm for the aggregate of several metrics in Gnocchi."
    kind = "gnocchi_aggregation_by_metrics_threshold"
    properties_schema = {
        "metrics": Property("list", "Ids of the metrics.", required=True, update_allowed=True),
        **GNOCCHI,
        **COMMON,
    }


class GnocchiAggregationByResourcesAlarm(Alarm):
    """A threshold for a metric of several resources."""

    type_name = "OS::Aodh::GnocchiAggregationByResourcesAlarm"
    support_status = SupportStatus(version="2015.1")
    description = "An alarm for the aggregate of a metric over the resources of a query in Gnocchi."
    kind = "gnocchi_aggregation_by_resources_threshold"
    properties_schema = {
        "metric": METRIC,
        "query": Property(
            "string", "Query for the resources, as JSON text.", required=True, update_allowed=True
        ),
        "resource_type": RESOURCE_TYPE,
        **GNOCCHI,
        **COMMON,
    }

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the properties, with the query as the template has it where the service runs just that."""
        live = dict(super().live_properties(target, context))
        if "query" in live and _is_limited(live["query"], target.properties["query"]):
            live["query"] = target.properties["query"]
        return live


class PrometheusAlarm(Alarm):
    """A threshold for a query to Prometheus."""

    type_name = "OS::Aodh::PrometheusAlarm"
    support_status = SupportStatus(version="22.0.0")
    description = "An alarm for the result of a Prometheus query."
    kind = "prometheus"
    properties_schema = {
        "query": Property("string", "Query, in PromQL.", required=True, update_allowed=True),
        **THRESHOLD,
        **COMMON,
    }


class EventAlarm(Alarm):
    """An alarm for events."""

    type_name = "OS::Aodh::EventAlarm"
    support_status = SupportStatus(version="8.0.0")
    description = "An alarm for events of services."
    kind = "event"
    properties_schema = {
        "event_type": Property("string", "Event type; * is a wildcard.", default="*", update_allowed=True),
        "query": Property(
            "list",
            "Conditions on the traits of an event.",
            update_allowed=True,
            schema=Property(
                "map",
                "Condition.",
                schema={
                    "field": Property("string", "Name of the trait."),
                    "type": Property(
                        "string", "Data type of the value.", default="string", constraints=(KINDS_OF_VALUES,)
                    ),
                    "op": Property("string", "Comparison operator.", constraints=(OPERATORS,)),
                    "value": Property("string", "Value to compare with."),
                },
            ),
        ),
        **COMMON,
    }

    def rule(self, target: ResourceView, context: StepContext) -> Json:
        """Return the rule, without what is not given."""
        rule: dict[str, Json] = {}
        if target.properties["query"]:
            rule["query"] = [without_nulls(entry) for entry in target.properties["query"]]
        if event_type := given(self.properties_schema, target.properties).get("event_type"):
            rule["event_type"] = event_type
        return rule


class LBMemberHealthAlarm(Alarm):
    """An alarm for members of a load balancer that do not answer."""

    type_name = "OS::Aodh::LBMemberHealthAlarm"
    support_status = SupportStatus(version="13.0.0")
    description = "An alarm for failed members of a load balancer pool."
    kind = "loadbalancer_member_health"
    properties_schema = {
        "pool": Property(
            "string",
            "Name or id of the load balancer pool.",
            required=True,
            update_allowed=True,
            names="octavia.pool",
        ),
        "stack": Property("string", "Name or id of the stack to update when a member fails.", required=True),
        "autoscaling_group_id": Property(
            "string",
            "Id of the scaling group that the members belong to.",
            required=True,
            update_allowed=True,
        ),
        **COMMON,
    }

    def rule(self, target: ResourceView, context: StepContext) -> Json:
        """Return the rule with ids."""
        properties = target.properties
        return {
            "pool_id": resolve(context, "octavia.pool", properties["pool"]),
            "stack_id": properties["stack"],
            "autoscaling_group_id": properties["autoscaling_group_id"],
        }


class CompositeAlarm(Alarm):
    """An alarm of several rules."""

    type_name = "OS::Aodh::CompositeAlarm"
    support_status = SupportStatus(version="8.0.0")
    description = "A composite alarm: a combination of several rules."
    kind = "composite"
    properties_schema = {
        "composite_rule": Property(
            "map",
            "Composite rule.",
            required=True,
            update_allowed=True,
            schema={
                "operator": Property(
                    "string",
                    "Operator that combines the rules.",
                    required=True,
                    update_allowed=True,
                    constraints=(AllowedValues(values=("or", "and")),),
                ),
                "rules": Property(
                    "list",
                    "Rules with their type, or maps from an operator to rules.",
                    required=True,
                    update_allowed=True,
                    constraints=(Length(minimum=2),),
                ),
            },
        ),
        **COMMON,
    }

    def rule(self, target: ResourceView, context: StepContext) -> Json:
        """Return the rules under their operator."""
        rule = target.properties["composite_rule"]
        return {rule["operator"]: rule["rules"]}


def _query(queue: str) -> str:
    return urllib.parse.urlencode({"queue_name": queue})


def _times(declared: Sequence[JsonMap], alarm: JsonMap) -> Sequence[JsonMap]:
    """Return the time constraints of an alarm without fields that the service has filled in.

    :param declared: the template's.
    """
    times: Sequence[JsonMap] = alarm["time_constraints"]
    if len(times) != len(declared):
        return times
    return [
        {name: value for name, value in time.items() if fields.get(name) is not None}
        for fields, time in zip(declared, times, strict=True)
    ]


def _is_limited(query: Json, declared: Json) -> bool:
    """Return whether a query is that of the template, within conditions that limit it to the project.

    :param query: the service's: JSON as a text, or whatever it has answered.
    :param declared: the template's, as JSON.
    """
    try:
        condition = json.loads(query)
        expected = json.loads(declared)
    except (TypeError, ValueError, RecursionError):
        return False
    while condition != expected:
        match condition:
            case {"and": [_, inner]}:
                condition = inner
            case _:
                return False
    return True
