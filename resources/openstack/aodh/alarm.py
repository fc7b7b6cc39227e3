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
from ...contract.context import StepContext
from ...contract.views import ResourceView, physical_name
from ...schema import Attribute, Property, SupportStatus
from ...steps import Done, Step
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
    "name": Property("string", "Its name.", required=True),
    "start": Property(
        "string",
        "Beginnings, as a cron expression.",
        required=True,
        constraints=(Custom(check_name="cron_expression"),),
    ),
    "description": Property("string", "Its description."),
    "duration": Property(
        "integer", "Seconds for which it lasts.", required=True, constraints=(Range(minimum=0),)
    ),
    "timezone": Property("string", "Time zone.", constraints=(Custom(check_name="timezone"),)),
}


def _addresses(state: str) -> Property:
    return Property(
        "list",
        f"Addresses that are called when the alarm goes to the state {state}.",
        update_allowed=True,
        sensitive=True,
    )


def _queues(state: str) -> Property:
    return Property(
        "list",
        f"Queues of Zaqar that get a message when the alarm goes to the state {state}.",
        default=[],
        update_allowed=True,
        schema=Property("string", "A queue.", constraints=(Custom(check_name="zaqar.queue"),)),
        support_status=SupportStatus(version="8.0.0"),
    )


COMMON: Mapping[str, Property] = {
    "description": Property("string", "Its description.", update_allowed=True),
    "enabled": Property("boolean", "It is evaluated.", default=True, update_allowed=True),
    "alarm_actions": _addresses("alarm"),
    "ok_actions": _addresses("ok"),
    "insufficient_data_actions": _addresses("insufficient-data"),
    "alarm_queues": _queues("alarm"),
    "ok_queues": _queues("ok"),
    "insufficient_data_queues": _queues("insufficient-data"),
    "repeat_actions": Property(
        "boolean",
        "Addresses are called at each evaluation, not only when the state changes.",
        default=True,
        update_allowed=True,
    ),
    "severity": Property(
        "string",
        "How bad it is.",
        default="low",
        update_allowed=True,
        constraints=(AllowedValues(values=("low", "moderate", "critical")),),
        support_status=SupportStatus(version="5.0.0"),
    ),
    "time_constraints": Property(
        "list",
        "Times at which alone it is evaluated.",
        default=[],
        schema=Property("map", "A time.", schema=_TIME),
        support_status=SupportStatus(version="5.0.0"),
    ),
}
THRESHOLD: Mapping[str, Property] = {
    "comparison_operator": Property(
        "string",
        "How the value is compared with the threshold.",
        update_allowed=True,
        constraints=(OPERATORS,),
    ),
    "threshold": Property("number", "The threshold.", required=True, update_allowed=True),
}
GNOCCHI: Mapping[str, Property] = {
    **THRESHOLD,
    "evaluation_periods": Property(
        "integer", "Number of values that all must be beyond it.", update_allowed=True
    ),
    "aggregation_method": Property("string", "How values are joined, such as mean.", update_allowed=True),
    "granularity": Property("integer", "Seconds of one value.", update_allowed=True),
}
METRIC = Property("string", "Name of the metric.", required=True, update_allowed=True)
RESOURCE_TYPE = Property("string", "Type of the resources at Gnocchi.", required=True, update_allowed=True)


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
    attributes_schema = {"show": Attribute("All that the service reports of it but its actions.", "map")}

    def rule(self, target: ResourceView, context: StepContext) -> Json:
        """Return the rule."""
        return super().create_body(target, context)

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new alarm."""
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
        """Let it be evaluated no more."""
        return self._enable(target, context, enabled=False)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Let it be evaluated again, if the template says so."""
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

    support_status = SupportStatus(version="2015.1")
    description = "An alarm for a metric of one resource at Gnocchi."
    kind = "gnocchi_resources_threshold"
    properties_schema = {
        "metric": METRIC,
        "resource_id": Property("string", "Id of the resource.", required=True, update_allowed=True),
        "resource_type": RESOURCE_TYPE,
        **GNOCCHI,
        **COMMON,
    }


class GnocchiAggregationByMetricsAlarm(Alarm):
    """A threshold for several metrics."""

    support_status = SupportStatus(version="2015.1")
    description = "An alarm for several metrics at Gnocchi."
    kind = "gnocchi_aggregation_by_metrics_threshold"
    properties_schema = {
        "metrics": Property("list", "Ids of the metrics.", required=True, update_allowed=True),
        **GNOCCHI,
        **COMMON,
    }


class GnocchiAggregationByResourcesAlarm(Alarm):
    """A threshold for a metric of several resources."""

    support_status = SupportStatus(version="2015.1")
    description = "An alarm for a metric of all resources at Gnocchi that a query finds."
    kind = "gnocchi_aggregation_by_resources_threshold"
    properties_schema = {
        "metric": METRIC,
        "query": Property(
            "string", "The query for the resources, as JSON in a string.", required=True, update_allowed=True
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

    support_status = SupportStatus(version="22.0.0")
    description = "An alarm for the answer of Prometheus to a query."
    kind = "prometheus"
    properties_schema = {
        "query": Property("string", "The query, in PromQL.", required=True, update_allowed=True),
        **THRESHOLD,
        **COMMON,
    }


class EventAlarm(Alarm):
    """An alarm for events."""

    support_status = SupportStatus(version="8.0.0")
    description = "An alarm for events of services."
    kind = "event"
    properties_schema = {
        "event_type": Property(
            "string", "Type of the events; * stands for anything.", default="*", update_allowed=True
        ),
        "query": Property(
            "list",
            "Conditions that an event meets.",
            update_allowed=True,
            schema=Property(
                "map",
                "A condition.",
                schema={
                    "field": Property("string", "Name of the event's trait."),
                    "type": Property(
                        "string", "Type of the value.", default="string", constraints=(KINDS_OF_VALUES,)
                    ),
                    "op": Property("string", "How it is compared.", constraints=(OPERATORS,)),
                    "value": Property("string", "The value."),
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

    support_status = SupportStatus(version="13.0.0")
    description = "An alarm for members of a load balancer's pool that do not answer."
    kind = "loadbalancer_member_health"
    properties_schema = {
        "pool": Property(
            "string", "Name or id of the pool.", required=True, update_allowed=True, names="octavia.pool"
        ),
        "stack": Property("string", "Name or id of the stack that is updated.", required=True),
        "autoscaling_group_id": Property(
            "string", "Id of the group that has the members.", required=True, update_allowed=True
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

    support_status = SupportStatus(version="8.0.0")
    description = "An alarm of several rules, of which all or one must be met."
    kind = "composite"
    properties_schema = {
        "composite_rule": Property(
            "map",
            "The rules.",
            required=True,
            update_allowed=True,
            schema={
                "operator": Property(
                    "string",
                    "Whether all rules must be met, or one.",
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
