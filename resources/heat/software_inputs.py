"""Inputs of derived configs: the declared ones with their values, and the ones that say how to signal."""

from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
from ..contract import PermanentError, ResourceView, StepContext

SERVER_ID = ("deploy_server_id", "ID of the server being deployed to")
ACTION = ("deploy_action", "Name of the current action being deployed")
STACK_ID = ("deploy_stack_id", "ID of the stack this deployment belongs to")
RESOURCE_NAME = ("deploy_resource_name", "Name of this deployment resource in the stack")
TRANSPORT = (
    "deploy_signal_transport",
    "How the server should signal to heat with the deployment output values.",
)
SIGNAL_ID = ("deploy_signal_id", "ID of signal to use for signaling output values")
SIGNAL_VERB = ("deploy_signal_verb", "HTTP verb to use for signaling output values")

ACCOUNT = "account"
"""In the place of a method of HTTP: the agent signals by Heat's API, with an account."""
AUTH_URL = ("deploy_auth_url", "URL for API authentication")
USER_NAME = ("deploy_username", "Username for API authentication")
USER_ID = ("deploy_user_id", "User ID for API authentication")
PASSWORD = ("deploy_password", "Password for API authentication")
PROJECT_ID = ("deploy_project_id", "ID of project for API authentication")


def with_inputs(declared: Sequence[JsonMap], input_values: JsonMap) -> list[JsonMap]:
    """Return the declared inputs with their values, and undeclared ones as texts."""
    values = dict(input_values)
    inputs = [{**item, "value": values.pop(item["name"], item.get("default"))} for item in declared]
    return [*inputs, *({"name": name, "type": "String", "value": value} for name, value in values.items())]


def deploy_inputs(target: ResourceView, action: str, verb: str, context: StepContext) -> list[JsonMap]:
    """Return the inputs that an agent needs to signal, in Heat's words.

    :param verb: method of HTTP; ACCOUNT: none; "": the agent does not signal.
    """
    values: list[tuple[tuple[str, str], Json]] = [
        (SERVER_ID, target.properties["server"]),
        (ACTION, action),
        (STACK_ID, f"{target.stack.name}/{target.stack.id}"),
        (RESOURCE_NAME, target.name),
        (TRANSPORT, target.properties["signal_transport"]),
    ]
    if verb == ACCOUNT:
        user = context.signal_user()
        values += [(AUTH_URL, user.auth_url), (USER_NAME, target.name), (USER_ID, user.user_id)]
        values += [(PASSWORD, user.password), (PROJECT_ID, user.project_id)]
    elif verb:
        values += [(SIGNAL_ID, context.presigned().url), (SIGNAL_VERB, verb)]
    return [
        {"name": name, "description": text, "type": "String", "value": value}
        for (name, text), value in values
    ]


def substituted(config: Json, inputs: JsonMap, key: str, *, is_strict: bool) -> Json:
    """Return a config in which each map ``{key: NAME}`` is replaced by the input's value.

    :param is_strict: an unknown input is an error; else its value is None.
    :raises PermanentError: there is no such input.
    """
    if isinstance(config, list):
        return [substituted(item, inputs, key, is_strict=is_strict) for item in config]
    if not isinstance(config, Mapping):
        return config
    name = config.get(key) if len(config) == 1 else None
    if not isinstance(name, str):
        return {part: substituted(item, inputs, key, is_strict=is_strict) for part, item in config.items()}
    if is_strict and name not in inputs:
        raise PermanentError(f"The Parameter ({name}) was not provided.", kind="UserParameterMissing")
    return inputs.get(name)
