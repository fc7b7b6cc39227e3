"""OS::Mistral::ExternalResource: something that workflows create, change and delete."""

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    Done,
    PermanentError,
    Poll,
    PolledAlike,
    Property,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..marks import chosen_id
from ..polling import FIRST_PAUSE, pause
from ..service import RemoteNotFound
from . import executions
from .executions import WORKFLOWS, workflows_of

ACTIONS = ("CREATE", "UPDATE", "SUSPEND", "RESUME", "DELETE")
OUTPUTS = "outputs"
"""Key of the data: the outputs of all executions, of which later ones win."""
RESOURCE_ID = "resource_id"
"""The output that names the thing which a workflow has made."""
ENVIRONMENT = "heat_extresource_data"
"""The entry of a workflow's environment with the outputs of the executions before."""
LONGEST_ID = 255
_ACTION = Property(
    "map",
    "Workflow of the action.",
    schema={
        "workflow": Property(
            "string",
            "Name or id of the workflow.",
            required=True,
            constraints=(Custom(check_name="mistral.workflow"),),
        ),
        "params": Property(
            "map", "Parameters of the execution; task_name is required for a reverse workflow.", default={}
        ),
    },
)


class ExternalResource(PolledAlike):
    """A resource whose actions are executions of workflows."""

    type_name = "OS::Mistral::ExternalResource"
    support_status = SupportStatus(version="9.0.0")
    description = (
        "An external resource: workflows of Mistral create, change, suspend, resume and delete it.\n\n"
        "An output resource_id becomes the physical id. Each workflow finds the outputs of those before it "
        "as env().heat_extresource_data."
    )
    uses_credentials = True
    service = WORKFLOWS
    identity = "the id of the execution, which Stoker chooses"
    # Whether something has to be done is seen in `always_update`.
    always_updated = True
    properties_schema = {
        "actions": Property(
            "map",
            "Workflows by action; actions without a workflow do nothing.",
            required=True,
            schema=dict.fromkeys(ACTIONS, _ACTION),
        ),
        "input": Property("map", "Input of the workflows.", default={}, update_allowed=True),
        "description": Property("string", "Description of the executions.", default="Heat managed"),
        "replace_on_change_inputs": Property(
            "list", "Names of inputs whose change replaces the resource.", default=[]
        ),
        "always_update": Property(
            "boolean", "Execution of the UPDATE workflow with every update of the stack.", default=False
        ),
    }
    attributes_schema = {"output": Attribute("Outputs of the executions.", "map")}

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether an input has changed that says so."""
        return any(
            (before["input"] or {}).get(name) != (after["input"] or {}).get(name)
            for name in after["replace_on_change_inputs"] or ()
        )

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Run the workflow of the creation; to begin it again changes nothing."""
        step = self._begin("CREATE", target, context)
        return Done(physical_id=target.physical_name) if isinstance(step, Done) else step

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Run the workflow of updates, where the input has changed or the template says so."""
        if not changed and not target.properties["always_update"]:
            return Done()
        return self._begin("UPDATE", target, context)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Run the workflow of suspensions."""
        return self._begin("SUSPEND", target, context)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Run the workflow of resumptions."""
        return self._begin("RESUME", target, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Run the workflow of the deletion, unless that of the creation was never begun."""
        return Done() if target.physical_id is None else self._begin("DELETE", target, context)

    def handle_cancel(self, target: ResourceView, progress: Json, context: StepContext) -> None:
        """Cancel the execution."""
        executions.stop(workflows_of(context), progress["execution"])

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Return the end of an execution, with its outputs, or the next poll."""
        try:
            execution = executions.read(workflows_of(context), progress["execution"])
        except RemoteNotFound as error:
            raise PermanentError(f"the execution was deleted: {error}", kind="NotFound") from error
        if not executions.is_over(execution):
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        outputs = {**(target.data.get(OUTPUTS) or {}), **executions.decoded(execution, "output")}
        # A workflow that names no thing has changed the one that an earlier one has named.
        physical_id = str(outputs.get(RESOURCE_ID) or progress["execution"])[:LONGEST_ID]
        return Done(physical_id=physical_id, data={**target.data, OUTPUTS: outputs})

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the execution that a lost step has begun."""
        try:
            return str(executions.read(workflows_of(context), chosen_id(key))["id"])
        except RemoteNotFound:
            return None

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"output": target.data.get(OUTPUTS)}

    # -- inside ------------------------------------------------------------------------------------

    def _begin(self, action: str, target: ResourceView, context: StepContext) -> Step:
        """Begin the workflow of an action; Done: it has none."""
        definition = (target.properties["actions"] or {}).get(action)
        if not definition:
            return Done()
        params = dict(definition["params"] or {})
        if OUTPUTS in target.data:
            params["env"] = {**(params.get("env") or {}), ENVIRONMENT: target.data[OUTPUTS]}
        execution = executions.begin(
            workflows_of(context),
            chosen_id(target.key),
            definition["workflow"],
            description=target.properties["description"] or "",
            values=target.properties["input"] or {},
            params=params,
        )
        execution_id = str(execution["id"])
        progress = {"execution": execution_id, "since": context.now()}
        return Poll(progress=progress, after=FIRST_PAUSE, physical_id=target.physical_id or execution_id)
