"""Properties and attributes of OS::Mistral::Workflow."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom, Length
from ...schema import Attribute, Property, SupportStatus

_SINCE_5 = SupportStatus(version="5.0.0")
_SINCE_8 = SupportStatus(version="8.0.0")
_ON_SUCCESS = "Tasks that run once it has ended well."
_ON_ERROR = "Tasks that run once it has failed."
_ON_COMPLETE = "Tasks that run once it has ended, well or not."
_REQUIRES = "Tasks that come before it; for workflows of the type reverse."
_RETRY = "When it is tried again after a failure."
_WAIT_BEFORE = "Seconds before it begins."
_WAIT_AFTER = "Seconds between its end and the tasks after it."
_PAUSE_BEFORE = "The execution is paused before it."
_TIMEOUT = "Seconds after which it fails."
_CONCURRENCY = "How many of its actions run at the same time; for tasks with with_items."
POLICIES = "policies"
TASK_DEFAULTS: Mapping[str, Property] = {
    "on_success": Property("list", _ON_SUCCESS),
    "on_error": Property("list", _ON_ERROR),
    "on_complete": Property("list", _ON_COMPLETE),
    "requires": Property("list", _REQUIRES),
    "retry": Property("map", _RETRY),
    "wait_before": Property("integer", _WAIT_BEFORE),
    "wait_after": Property("integer", _WAIT_AFTER),
    "pause_before": Property("boolean", _PAUSE_BEFORE),
    "timeout": Property("integer", _TIMEOUT),
    "concurrency": Property("integer", _CONCURRENCY, support_status=_SINCE_8),
}
TASK: Mapping[str, Property] = {
    "name": Property("string", "Its name.", required=True),
    "description": Property("string", "Its description."),
    "input": Property("map", "Input of the action or the workflow."),
    "action": Property("string", "Name of the action that it runs; it has this or a workflow."),
    "workflow": Property(
        "string",
        "Name of the workflow that it runs; it has this or an action.",
        constraints=(Custom(check_name="mistral.workflow"),),
    ),
    "publish": Property("map", "Values for the tasks after it, by name."),
    "on_success": Property("list", _ON_SUCCESS),
    "on_error": Property("list", _ON_ERROR),
    "on_complete": Property("list", _ON_COMPLETE),
    POLICIES: Property(
        "map",
        "The old place of retry, timeout and others.",
        support_status=SupportStatus("HIDDEN", version="8.0.0", message="Give them to the task itself."),
    ),
    "requires": Property("list", _REQUIRES),
    "retry": Property("map", _RETRY, support_status=_SINCE_5),
    "wait_before": Property("integer", _WAIT_BEFORE, support_status=_SINCE_5),
    "wait_after": Property("integer", _WAIT_AFTER, support_status=_SINCE_5),
    "pause_before": Property("boolean", _PAUSE_BEFORE, support_status=_SINCE_5),
    "timeout": Property("integer", _TIMEOUT, support_status=_SINCE_5),
    "with_items": Property(
        "string", "It runs once for each item of a list, such as x in <% $.list %>.", support_status=_SINCE_5
    ),
    "keep_result": Property("boolean", "Its result is stored.", support_status=_SINCE_5),
    "concurrency": Property("integer", _CONCURRENCY, support_status=_SINCE_8),
    "target": Property("string", "The executor that runs the action.", support_status=_SINCE_5),
    "join": Property(
        "string",
        "It waits for the tasks before it: for all, or for so many.",
        support_status=SupportStatus(version="6.0.0"),
    ),
}
PROPERTIES: Mapping[str, Property] = {
    "name": Property("string", "Its name; none: made of the stack's and the resource's."),
    "type": Property(
        "string",
        "direct: tasks name those after them; reverse: tasks name those before them.",
        required=True,
        update_allowed=True,
        constraints=(AllowedValues(values=("direct", "reverse")),),
    ),
    "use_request_body_as_input": Property(
        "boolean",
        "A signal is the input itself; otherwise it is a map of input and params.",
        update_allowed=True,
        support_status=SupportStatus(version="6.0.0"),
    ),
    "tags": Property(
        "list", "Its tags.", update_allowed=True, support_status=SupportStatus(version="10.0.0")
    ),
    "description": Property("string", "Its description.", update_allowed=True),
    "input": Property(
        "map", "Its inputs, with their values for signals that give none.", update_allowed=True
    ),
    "output": Property("map", "Its outputs; values are expressions in YAQL.", update_allowed=True),
    "params": Property(
        "map",
        "Parameters of the executions that signals begin; a workflow of the type reverse needs task_name.",
        update_allowed=True,
    ),
    "task_defaults": Property(
        "map", "Settings of all tasks.", update_allowed=True, schema=TASK_DEFAULTS, support_status=_SINCE_5
    ),
    "tasks": Property(
        "list",
        "Its tasks.",
        required=True,
        update_allowed=True,
        constraints=(Length(minimum=1),),
        schema=Property("map", "A task.", schema=TASK),
    ),
}
ATTRIBUTES: Mapping[str, Attribute] = {
    "data": Attribute("Its name and its input.", "map"),
    "alarm_url": Attribute(
        "Where an alarm posts a signal, which begins an execution; signed, so that it needs no token.",
        "string",
        sensitive=True,
    ),
    "executions": Attribute(
        "Executions that signals have begun, the last one first: maps of id, workflow_name, created_at, "
        "updated_at, state, input and output.",
        "list",
        volatile=True,
    ),
}
