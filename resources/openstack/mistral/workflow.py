"""OS::Mistral::Workflow: tasks that Mistral runs in an order; a signal begins an execution."""

import dataclasses

from ....shapes import Json, JsonMap
from ...contract import (
    CloudCalls,
    PropertyError,
    ResourceView,
    Signal,
    SignalError,
    Step,
    StepContext,
    SupportStatus,
)
from ...imported import EXECUTIONS_BEFORE
from ..declared import REMOTE, DeclaredType
from ..marks import TagMark, chosen_id, mark_of
from ..service import Service, first_of
from . import executions
from .definition import check_tasks, definition_of, properties_in
from .executions import workflows_of
from .workflow_schema import ATTRIBUTES, PROPERTIES

ALARM_URL = "alarm_url"
EXECUTIONS = "executions"
SHOWN = ("id", "workflow_name", "created_at", "updated_at", "state")
"""Fields of an execution that are shown as they are."""


class Workflow(DeclaredType):
    """A workflow; a project has one of each name."""

    type_name = "OS::Mistral::Workflow"
    support_status = SupportStatus(version="2015.1")
    description = (
        "A workflow of Mistral: tasks and their order.\n\n"
        "A signal begins an execution. Its details are a map of input and params, which win over these here."
    )
    service = "workflow"
    path = "/workflows"
    item = ""
    items = "workflows"
    id_field = "name"
    mark = TagMark()
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES

    def validate(self, properties: JsonMap) -> None:
        """Check the tasks, and that a reverse workflow says where it begins."""
        kind = properties.get("type")
        params = properties.get("params", {"task_name": "unknown"})
        if kind == "reverse" and not (params or {}).get("task_name", "" if not params else None):
            text = "'task_name' is not assigned in 'params' in case of reverse type workflow."
            raise PropertyError(text, ("params",))
        check_tasks(properties.get("tasks") or (), kind)

    def post(self, service: Service, body: JsonMap, target: ResourceView) -> Json:
        """Create the workflow by its definition."""
        answer = service.send_text("POST", self.path, self._definition(target))
        return first_of(answer, self.items)

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the workflow; its address for signals is stored with it."""
        data = {**target.data, ALARM_URL: context.presigned().url}
        return super().handle_create(dataclasses.replace(target, data=data), context)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Adopt the workflow, with an address for signals of this stack's."""
        data = {**target.data, ALARM_URL: context.presigned().url}
        return super().handle_adopt(dataclasses.replace(target, data=data), context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Replace the definition."""
        service = self.service_for(context)
        answer = service.send_text("PUT", self.path, self._definition(target))
        return self._wait(first_of(answer, self.items), context.now(), target, context)

    def after_delete(self, target: ResourceView, context: StepContext) -> None:
        """Delete the executions that signals have begun: without the workflow no others can begin."""
        service = self.service_for(context)
        begun = [str(execution["id"]) for execution in executions.described(service, _description(target))]
        for execution_id in (*begun, *(target.data.get(EXECUTIONS_BEFORE) or ())):
            executions.delete(service, execution_id)

    # -- signals -----------------------------------------------------------------------------------

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Request an execution.

        :raises SignalError: the details are of another form, or name an input that there is not.
        """
        if target.physical_id is None:
            raise SignalError("The workflow does not exist")
        self._arguments(target, details)
        return Signal(metadata=target.metadata, reason="Begins an execution", request={"details": details})

    def carry_out(self, target: ResourceView, request: JsonMap, context: StepContext) -> None:
        """Begin the execution that a signal has requested."""
        values, params = self._arguments(target, request["details"])
        properties = target.properties
        executions.begin(
            workflows_of(context),
            chosen_id(target.key),
            self.id_of(target),
            description=_description(target),
            values={**(properties["input"] or {}), **values},
            params={**(properties["params"] or {}), **params},
        )

    def _arguments(self, target: ResourceView, details: Json) -> tuple[JsonMap, JsonMap]:
        """Return the input and the parameters that a signal gives.

        :raises SignalError: it gives something else.
        """
        whole = bool(target.properties["use_request_body_as_input"])
        if details is not None and not isinstance(details, dict):
            raise SignalError("The details of a signal to a workflow must be a map")
        parts: JsonMap = {"input": details} if whole else details or {}
        values, params = parts.get("input") or {}, parts.get("params") or {}
        if not isinstance(values, dict):
            raise SignalError(f"Input in signal data must be a map, find a {type(values).__name__}")
        if not isinstance(params, dict):
            raise SignalError(f"Params must be a map, find a {type(params).__name__}")
        for name in values:
            if name not in (target.properties["input"] or {}):
                raise SignalError(f"Unknown input {name}")
        return values, params

    # -- values ------------------------------------------------------------------------------------

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        service = self.service_for(context)
        remotes = executions.described(service, _description(target), outputs=True)
        views = [_view(remote) for remote in remotes]
        return {**super().refresh(target, context), EXECUTIONS: views}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return name and input, the address for signals, and the executions."""
        remote = target.data.get(REMOTE) or {}
        tags = [tag for tag in remote.get("tags") or () if tag != self._mark(target)]
        return {
            "data": {"name": target.physical_id, "input": target.properties["input"]},
            ALARM_URL: target.data.get(ALARM_URL),
            EXECUTIONS: target.data.get(EXECUTIONS) or [],
            "show": {**remote, "tags": tags},
        }

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the properties that the definition shows."""
        definition = str(remote.get("definition") or "")
        return properties_in(definition, str(remote["name"]), target.properties, self._mark(target))

    # -- inside ------------------------------------------------------------------------------------

    def _definition(self, target: ResourceView) -> str:
        return definition_of(self._name(target), target.properties, self._mark(target))

    def _name(self, target: ResourceView) -> str:
        return str(target.physical_id or target.properties["name"] or target.physical_name)

    def _mark(self, target: ResourceView) -> str | None:
        """Return the tag that marks the workflow; None: it was not created here."""
        return mark_of(target.creation_key) if target.creation_key else None


def _description(target: ResourceView) -> str:
    """Return the description of the executions that signals to the resource begin."""
    return f"Signal to resource {target.name} of stack {target.stack.id}"


def _view(execution: JsonMap) -> dict[str, Json]:
    """Return an execution as the attribute shows it."""
    values = {name: execution.get(name) for name in SHOWN}
    return {**values, **{name: executions.decoded(execution, name) for name in ("input", "output")}}
