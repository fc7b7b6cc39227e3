"""Executions of workflows: the client chooses their ids, so that none begins twice."""

import json
import typing

from ....shapes import Json, JsonMap
from ...contract import PermanentError, StepContext
from ..names import quoted
from ..service import RemoteNotFound, Service, UnreadableAnswer, object_of, service_of
from ..statuses import StatusMeaning

WORKFLOWS = "workflow"
"""The type of the service in the service catalog."""
EXECUTIONS = "/executions"
STATE = StatusMeaning(
    field="state",
    pending=("IDLE", "RUNNING", "PAUSED"),
    bad=("ERROR", "CANCELLED"),
    deleted=(),
    good=("SUCCESS",),
)


def workflows_of(context: StepContext) -> Service:
    """Return the calls of the service."""
    return service_of(context, WORKFLOWS)


def begin(
    service: Service, execution_id: str, workflow: str, *, description: str, values: JsonMap, params: JsonMap
) -> JsonMap:
    """Begin a workflow, unless there is an execution with this id; return the execution.

    :param workflow: its name or id.
    :param values: the input.
    :raises PermanentError, RetryableError: the errors of `Service`.
    """
    body = {
        "id": execution_id,
        "workflow_id": workflow,  # The service takes a name here, too.
        "description": description,
        "input": json.dumps(values),
        "params": json.dumps(params),
    }
    return object_of(service.post(EXECUTIONS, body))


def read(service: Service, execution_id: str) -> JsonMap:
    """Return an execution.

    :raises RemoteNotFound: there is none.
    """
    return object_of(service.get(f"{EXECUTIONS}/{quoted(execution_id)}"))


def is_over(execution: JsonMap) -> bool:
    """Return whether an execution has ended well.

    :raises PermanentError: it has failed, or is in a state that is not known.
    """
    pending = STATE.is_pending(execution, lambda remote: str(remote.get("state_info") or ""))
    if not pending and STATE.of(execution) not in STATE.good:
        raise PermanentError(f"the execution is in the unknown state {STATE.of(execution)}")
    return not pending


def stop(service: Service, execution_id: str) -> None:
    """Cancel an execution that has not ended.

    :raises PermanentError, RetryableError: the errors of `Service`.
    """
    service.put(f"{EXECUTIONS}/{quoted(execution_id)}", {"state": "CANCELLED"})


def delete(service: Service, execution_id: str) -> None:
    """Delete an execution, also one that has not ended; a missing one is no error."""
    try:
        service.delete(f"{EXECUTIONS}/{quoted(execution_id)}", force=True)
    except RemoteNotFound:
        return


def described(service: Service, description: str, *, outputs: bool = False) -> list[JsonMap]:
    """Return the executions with this description, the last one first.

    :param outputs: whether they have their outputs.
    """
    query = {"include_output": True} if outputs else {}
    return service.list_all(
        EXECUTIONS, "executions", description=description, sort_keys="created_at", sort_dirs="desc", **query
    )


def decoded(execution: JsonMap, name: str) -> dict[str, Json]:
    """Return a field that the service has as JSON in a text.

    :raises UnreadableAnswer: it is no JSON.
    """
    value = execution.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise UnreadableAnswer(WORKFLOWS, f"{name} is not JSON") from error
    return dict(typing.cast(JsonMap, value)) if isinstance(value, dict) else {}
