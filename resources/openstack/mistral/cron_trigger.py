"""OS::Mistral::CronTrigger: begins a workflow at times that a pattern of cron names."""

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    CloudCalls,
    Done,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..bodies import without_nulls
from ..compared import ComparedType
from ..names import is_id
from ..service import RemoteNotFound


class CronTrigger(ComparedType):
    """A trigger; a project has one of each name."""

    type_name = "OS::Mistral::CronTrigger"
    support_status = SupportStatus(version="5.0.0")
    description = "A cron trigger: the schedule of a Mistral workflow."
    service = "workflow"
    path = "/cron_triggers"
    item = ""
    items = "cron_triggers"
    id_field = "name"
    identity = "the name; Stoker first stores that no trigger has it"
    filters = ("name",)
    # The service deletes a trigger with its last execution, which is no drift.
    is_listed = False
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "pattern": Property(
            "string",
            "Schedule, as a cron expression.",
            constraints=(Custom(check_name="cron_expression"),),
        ),
        "workflow": Property(
            "map",
            "Workflow to run.",
            required=True,
            schema={
                "name": Property(
                    "string",
                    "Name or id of the workflow.",
                    required=True,
                    constraints=(Custom(check_name="mistral.workflow"),),
                ),
                "input": Property("map", "Input of the workflow."),
            },
        ),
        "first_time": Property("string", "Time of the first execution, as YYYY-MM-DD HH:MM in UTC."),
        "count": Property("integer", "Number of executions, after which the trigger is deleted."),
    }
    attributes_schema = {
        "next_execution_time": Attribute(
            "Time of the next execution, as YYYY-MM-DD HH:MM:SS in UTC.", "string", volatile=True
        ),
        "remaining_executions": Attribute("Number of remaining executions.", "integer", volatile=True),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that it has a time."""
        if not properties.get("pattern", "unknown") and not properties.get("first_time", "unknown"):
            text = "At least one of the following properties must be specified: pattern, first_time."
            raise PropertyError(text, ("pattern",))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        workflow = properties["workflow"]
        name = workflow["name"]
        optional = {
            "pattern": properties["pattern"],
            "first_execution_time": properties["first_time"],
            "remaining_executions": properties["count"],
            "workflow_input": workflow["input"],
        }
        return {
            "name": properties["name"] or target.physical_name,
            "workflow_id" if is_id(name) else "workflow_name": name,
            **without_nulls(optional),
        }

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Read the trigger, which may have ended, unless it has no end."""
        try:
            return super().handle_check(target, context)
        except RemoteNotFound:
            if _ends(target):
                return Done()
            raise

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the trigger is gone before its end."""
        is_made = target.physical_id is not None
        return super().needs_replace_failed(target, context) and not (is_made and _ends(target))

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the resource's data with the present trigger, or without one after its last execution."""
        try:
            return super().refresh(target, context)
        except RemoteNotFound:
            if _ends(target):
                return target.data
            raise

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return nothing: no property can change, and the counts do all the time."""
        return {}

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return nothing: a trigger that is gone has done its work, as in Heat."""
        return {} if _ends(target) else super().live_properties(target, context)


def _ends(target: ResourceView) -> bool:
    """Return whether the trigger is gone after some executions."""
    return bool(target.properties["count"]) or not target.properties["pattern"]
