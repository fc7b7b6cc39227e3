"""Software deployments: configs that servers apply, and signal the results of.

A deployment is a row of Stoker's own.  Each of its actions stores a config that is derived from the one of
the property `config`: with the inputs' values, and with `deploy_…` inputs that say how to signal.  The
server's guest reads it.  The action waits for the signal as a parked task, and costs nothing until then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...settings import setting
from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues
from ...template.language import ResourceDefinition
from ...template.residual import ARGS, FN, is_node
from ..contract import (
    ANY_NAME,
    Attribute,
    ConfigSpec,
    DeploymentSpec,
    DeploymentState,
    Done,
    Park,
    PermanentError,
    Poll,
    Property,
    PropertyError,
    ReplaceNeeded,
    ResourceType,
    ResourceView,
    Signal,
    SignalError,
    Step,
    StepContext,
    SupportStatus,
    check_named,
)
from ..guests import check_offered
from .software_inputs import ACCOUNT, deploy_inputs, substituted, with_inputs
from .software_io import ALWAYS_SENT, STATUS_CODE, STDERR, STDOUT, UNGROUPED

ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
TRANSPORTS = ("CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "ZAQAR_SIGNAL")
OFFERED: Mapping[str, str] = {
    "CFN_SIGNAL": "POST",
    "TEMP_URL_SIGNAL": "PUT",
    "HEAT_SIGNAL": ACCOUNT,
    "NO_SIGNAL": "",
}
"""The transports that need no other service, with the method of HTTP for a presigned address."""
REFUSED: Mapping[str, str] = {
    "ZAQAR_SIGNAL": "it needs the messaging service, which Stoker does not use",
}


@dataclass(frozen=True)
class SignalTransport:
    """The transport of deployments' signals; its field has the name of the option, as `Property` takes it."""

    default_deployment_signal_transport: str = setting(
        "default_deployment_signal_transport",
        "CFN_SIGNAL",
        "Transport by which servers signal that they have applied a deployment if the template names none; "
        "the same for all processes.",
        choices=dict.fromkeys(OFFERED, ""),
    )


BACKSTOP = 300.0
"""Seconds between two checks whether the server of a deployment that is being deleted still exists."""
STARTING: Json = {"stage": "start"}
WAITING: Json = {"stage": "wait"}

COMMON: Mapping[str, Property] = {
    "config": Property("string", "Id of the software config.", update_allowed=True),
    "input_values": Property("map", "Input values of the config.", update_allowed=True),
    "actions": Property(
        "list",
        "Actions of the deployment that apply the config on the server.",
        default=["CREATE", "UPDATE"],
        update_allowed=True,
        constraints=(AllowedValues(values=ACTIONS),),
    ),
    "name": Property(
        "string",
        "Name of the derived config; a server applies its configs in the order of their names.",
        update_allowed=True,
    ),
    "signal_transport": Property(
        "string",
        "Signal transport of the server. CFN_SIGNAL: POST to a signed URL. TEMP_URL_SIGNAL: PUT to a signed "
        "URL. HEAT_SIGNAL: call of the API, with an account that Stoker creates. NO_SIGNAL: none, and the "
        "deployment is complete at once. ZAQAR_SIGNAL is not supported.",
        default=SignalTransport.default_deployment_signal_transport,
        constraints=(AllowedValues(values=TRANSPORTS),),
        default_option="default_deployment_signal_transport",
    ),
}
STRUCTURED: Mapping[str, Property] = {
    "input_key": Property(
        "string", "Key of the maps in the config that input values replace.", default="get_input"
    ),
    "input_values_validate": Property(
        "string",
        "Input validation. STRICT: every input of the config needs a value. LAX: missing values are null.",
        default="LAX",
        constraints=(AllowedValues(values=("LAX", "STRICT")),),
    ),
}


def check_transport(properties: JsonMap) -> None:
    """Check that the transport of signals is supported.

    :raises PropertyError: the transport needs a service that Stoker does not use.
    """
    check_offered(properties, "signal_transport", OFFERED, REFUSED)


class SoftwareDeployment(ResourceType):
    """A config on one server."""

    type_name = "OS::Heat::SoftwareDeployment"
    description = (
        "The deployment of a software config to a server.\n\n"
        "The resource is complete when the server has signalled that it has. The outputs that it signals are "
        "attributes."
    )
    support_status = SupportStatus(version="2014.1")
    stored_here = True
    takes_outputs = True
    has_rules_in_stack = True
    uses_credentials = True
    properties_schema = {**COMMON, "server": Property("string", "Id of the server.", required=True)}
    attributes_schema = {
        STDOUT: Attribute("Standard output of the config.", "string"),
        STDERR: Attribute("Standard error of the config.", "string"),
        STATUS_CODE: Attribute("Exit status code of the config.", "string"),
        ANY_NAME: Attribute("Output of this name, as signalled by the server."),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the transport of signals."""
        check_transport(properties)

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check that a server of the same stack has an agent that applies configs."""
        if not is_node(definition.properties):
            check_user_data_format(definition.properties.get("server"), ("server",), others)

    # -- actions -----------------------------------------------------------------------------------

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Deploy, where creations do."""
        return self._act(target, "CREATE", context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._continue(target, "CREATE", progress, context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Deploy, where updates do.

        :raises ReplaceNeeded: an input has changed that says so.
        """
        before = None if target.physical_id is None else context.software.deployment(target.physical_id)
        if before is not None and self._is_replaced(target, before, context):
            raise ReplaceNeeded
        return self._act(target, "UPDATE", context)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._continue(target, "UPDATE", progress, context)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Deploy, where suspensions do."""
        return self._act(target, "SUSPEND", context)

    def check_suspend_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._continue(target, "SUSPEND", progress, context)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Deploy, where resumptions do."""
        return self._act(target, "RESUME", context)

    def check_resume_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._continue(target, "RESUME", progress, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Deploy once more, where deletions do and the server exists; then delete the deployment."""
        source = _find_source(target, context)
        if source is None or not _acts(target, "DELETE", source):
            return _deleted(context)
        return Poll(STARTING, after=0.0, physical_id=target.physical_id or target.key)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll the deployment, unless the server is gone: it will never signal."""
        if not server_exists(target.properties["server"], context):
            return _deleted(context)
        if progress == STARTING:
            self._deploy(target, "DELETE", context)
        if context.software.deployment(str(target.physical_id)) is None:
            return Done()
        step = _poll(target, context, after=BACKSTOP)
        return _deleted(context) if isinstance(step, Done) else step

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Adopt a deployment of the project that belongs to nobody."""
        check_named(target)
        context.software.adopt_deployment(str(target.physical_id))
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the key, under which a lost attempt has stored the deployment."""
        return None if context.software.deployment(key) is None else key

    # -- signals and values ------------------------------------------------------------------------

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Take the values of outputs.

        :raises SignalError: they are no map.
        """
        if details is not None and not isinstance(details, Mapping):
            raise SignalError("A signal to a deployment must be a map of its outputs")
        return Signal(metadata=target.metadata, reason="", outputs=details or {})

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the outputs of the last action that has ended."""
        return {**dict.fromkeys(ALWAYS_SENT), **(target.data.get("outputs") or {})}

    # -- inside ------------------------------------------------------------------------------------

    def derived_config(self, target: ResourceView, config: Json, inputs: Sequence[JsonMap]) -> Json:
        """Return the config that the guest applies.

        :param config: text or map of the config that is deployed.
        :param inputs: its inputs with their values.
        """
        return "" if config is None else config

    def _act(self, target: ResourceView, action: str, context: StepContext) -> Step:
        if not _acts(target, action, _source(target, context)):
            return Done()
        # The deployment's id is stored before the server can signal: such a signal is never refused.
        return Poll(STARTING, after=0.0, physical_id=target.physical_id or target.key)

    def _continue(self, target: ResourceView, action: str, progress: Json, context: StepContext) -> Step:
        if progress == STARTING:
            self._deploy(target, action, context)
        return _poll(target, context)

    def _deploy(self, target: ResourceView, action: str, context: StepContext) -> None:
        source = _source(target, context)
        properties = target.properties
        values = properties["input_values"] or {}
        transport = properties["signal_transport"]
        inputs = with_inputs(source.inputs, values)
        inputs += deploy_inputs(target, action, OFFERED[transport], context)
        derived = ConfigSpec(
            name=properties["name"] or source.name or target.physical_name,
            group=source.group or UNGROUPED,
            config=self.derived_config(target, source.config, inputs),
            inputs=inputs,
            outputs=source.outputs,
            options=source.options,
        )
        waits = transport != "NO_SIGNAL"
        spec = DeploymentSpec(properties["server"], action, target.key, derived, values, waits)
        context.software.deploy(str(target.physical_id), spec)

    def _is_replaced(self, target: ResourceView, before: DeploymentState, context: StepContext) -> bool:
        old = {item["name"]: item.get("value") for item in before.derived.inputs}
        inputs = with_inputs(_source(target, context).inputs, target.properties["input_values"] or {})
        return any(
            item.get("replace_on_change") and item["name"] in old and old[item["name"]] != item["value"]
            for item in inputs
        )


class StructuredDeployment(SoftwareDeployment):
    """A config of StructuredConfig on one server, with the values of inputs in it."""

    type_name = "OS::Heat::StructuredDeployment"
    description = (
        "The deployment of a structured config to a server.\n\n"
        "Otherwise it is as OS::Heat::SoftwareDeployment."
    )
    properties_schema = {**SoftwareDeployment.properties_schema, **STRUCTURED}

    def derived_config(self, target: ResourceView, config: Json, inputs: Sequence[JsonMap]) -> Json:
        """Return the config with the values of inputs in it."""
        values = {item["name"]: item.get("value") for item in inputs}
        is_strict = target.properties["input_values_validate"] == "STRICT"
        fields = {} if config is None else config
        return substituted(fields, values, target.properties["input_key"], is_strict=is_strict)


def _find_source(target: ResourceView, context: StepContext) -> ConfigSpec | None:
    """Return the config to deploy; None: it does not exist."""
    config_id = target.properties["config"]
    return context.software.config(config_id) if config_id else ConfigSpec()


def _source(target: ResourceView, context: StepContext) -> ConfigSpec:
    """Return the config to deploy.

    :raises PermanentError: the config does not exist.
    """
    source = _find_source(target, context)
    if source is None:
        text = f"Software config with id {target.properties['config']} not found"
        raise PermanentError(text, kind="NotFound")
    return source


def _acts(target: ResourceView, action: str, source: ConfigSpec) -> bool:
    if source.group == "component":
        return any(action in config["actions"] for config in source.config["configs"])
    return action in target.properties["actions"]


def _poll(target: ResourceView, context: StepContext, after: float | None = None) -> Step:
    """Return Done with the outputs, or wait for the signal.

    :raises PermanentError: the server has signalled a failure, or the deployment is gone.
    """
    state = context.software.deployment(str(target.physical_id))
    if state is None:
        raise PermanentError(f"Deployment with id {target.physical_id} not found", kind="NotFound")
    if state.status == "COMPLETE":
        return Done(data={"outputs": dict(state.outputs)})
    if state.status == "FAILED":
        raise PermanentError(f"Deployment to server failed: {state.reason}", kind="Error")
    return Park(WAITING, waits_on=f"resource:{target.id}", seen=state.generation, after=after)


def _deleted(context: StepContext) -> Step:
    context.software.delete_deployments()
    return Done()


def check_user_data_format(
    server: Json, path: tuple[str | int, ...], others: Mapping[str, ResourceDefinition]
) -> None:
    """Check that a server of the same stack, by its reference, reads deployments.

    :raises PropertyError: its user_data_format has no agent that does.
    """
    if not is_node(server) or server[FN] != "get_resource":
        return
    other = others.get(server[ARGS][0])
    if other is None or other.type != "OS::Nova::Server" or is_node(other.properties):
        return
    data_format = other.properties.get("user_data_format", "HEAT_CFNTOOLS")
    if not is_node(data_format) and data_format != "SOFTWARE_CONFIG":
        text = (
            f"Resource {other.name}'s property user_data_format should be set to SOFTWARE_CONFIG since there "
            "are software deployments on it."
        )
        raise PropertyError(text, path)


def server_exists(server_id: str, context: StepContext) -> bool:
    """Return whether a server may still signal.

    As in Heat, one that the compute service does not know cannot.  Where there is no compute service, it may.

    :raises RetryableError: the compute service is unavailable.
    """
    try:
        adapter = context.adapter("compute", "2")
    except PermanentError:
        return True
    return bool(adapter.get(f"/servers/{server_id}", raise_exc=False).status_code != 404)
