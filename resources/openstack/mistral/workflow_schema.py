"""Properties and attributes of OS::Mistral::Workflow."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom, Length
from ...contract import Attribute, Property, SupportStatus

_SINCE_5 = SupportStatus(version="5.0.0")
_SINCE_8 = SupportStatus(version="8.0.0")
_ON_SUCCESS = "Tasks to run after the task has succeeded."
_ON_ERROR = "Tasks to run after the task has failed."
_ON_COMPLETE = "Tasks to run after the task has completed, successfully or not."
_REQUIRES = "Tasks that the task depends on, in a reverse workflow."
_RETRY = "Retry policy."
_WAIT_BEFORE = "Delay before the task, in seconds."
_WAIT_AFTER = "Delay after the task, in seconds."
_PAUSE_BEFORE = "Pause of the execution before the task."
_TIMEOUT = "Timeout of the task, in seconds."
_CONCURRENCY = "Maximum number of concurrent actions, with with_items."
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
    "name": Property("string", "Name of the task.", required=True),
    "description": Property("string", "Description of the task."),
    "input": Property("map", "Input of the action or the workflow."),
    "action": Property("string", "Name of the action to run; alternative to workflow."),
    "workflow": Property(
        "string",
        "Name of the workflow to run; alternative to action.",
        constraints=(Custom(check_name="mistral.workflow"),),
    ),
    "publish": Property("map", "Variables to publish to the following tasks, by name."),
    "on_success": Property("list", _ON_SUCCESS),
    "on_error": Property("list", _ON_ERROR),
    "on_complete": Property("list", _ON_COMPLETE),
    POLICIES: Property(
        "map",
        "Old form of retry, timeout and other policies.",
        support_status=SupportStatus("HIDDEN", version="8.0.0", message="Give them to the task itself."),
    ),
    "requires": Property("list", _REQUIRES),
    "retry": Property("map", _RETRY, support_status=_SINCE_5),
    "wait_before": Property("integer", _WAIT_BEFORE, support_status=_SINCE_5),
    "wait_after": Property("integer", _WAIT_AFTER, support_status=_SINCE_5),
    "pause_before": Property("boolean", _PAUSE_BEFORE, support_status=_SINCE_5),
    "timeout": Property("integer", _TIMEOUT, support_status=_SINCE_5),
    "with_items": Property(
        "string", "Iteration over the items of a list, such as x in <% $.list %>.", support_status=_SINCE_5
    ),
    "keep_result": Property("boolean", "Storage of the task's result.", support_status=_SINCE_5),
    "concurrency": Property("integer", _CONCURRENCY, support_status=_SINCE_8),
    "target": Property("string", "Name of the executor that runs the action.", support_status=_SINCE_5),
    "join": Property(
        "string",
        "Number of preceding tasks to wait for, or all.",
        support_status=SupportStatus(version="6.0.0"),
    ),
}
PROPERTIES: Mapping[str, Property] = {
    "name": Property("string", "Name; if omitted, generated from the names of the stack and the resource."),
    "type": Property(
        "string",
        "Workflow type: direct names the following tasks, reverse the required tasks.",
        required=True,
        update_allowed=True,
        constraints=(AllowedValues(values=("direct", "reverse")),),
    ),
    "use_request_body_as_input": Property(
        "boolean",
        "Meaning of a signal's body: true: the workflow's input; otherwise a map of input and params.",
        update_allowed=True,
        support_status=SupportStatus(version="6.0.0"),
    ),
    "tags": Property("list", "Tags.", update_allowed=True, support_status=SupportStatus(version="10.0.0")),
    "description": Property("string", "Description.", update_allowed=True),
    "input": Property("map", "Input of the workflow, with default values.", update_allowed=True),
    "output": Property("map", "Output of the workflow, as YAQL expressions.", update_allowed=True),
    "params": Property(
        "map",
        "Parameters of the executions; task_name is required for a reverse workflow.",
        update_allowed=True,
    ),
    "task_defaults": Property(
        "map",
        "Default settings of all tasks.",
        update_allowed=True,
        schema=TASK_DEFAULTS,
        support_status=_SINCE_5,
    ),
    "tasks": Property(
        "list",
        "Tasks.",
        required=True,
        update_allowed=True,
        constraints=(Length(minimum=1),),
        schema=Property("map", "Task.", schema=TASK),
    ),
}
ATTRIBUTES: Mapping[str, Attribute] = {
    "data": Attribute("Name and input of the workflow.", "map"),
    "alarm_url": Attribute(
        "Signed URL for signals, each of which starts an execution; no token is needed.",
        "string",
        sensitive=True,
    ),
    "executions": Attribute(
        "Executions started by signals, the newest first: maps of id, workflow_name, created_at, "
        "updated_at, state, input and output.",
        "list",
        volatile=True,
    ),
}
