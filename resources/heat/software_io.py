"""Declared inputs and outputs of software configs, in Heat's shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues
from ..contract import Property, PropertyError
from ..contract.properties import resolve_properties

UNGROUPED = "Heat::Ungrouped"
"""The group of a config that no tool is named for."""
TYPES: Mapping[str, Property] = {
    "String": Property("string"),
    "Number": Property("number"),
    "CommaDelimitedList": Property("list"),
    "Json": Property("map"),
    "Boolean": Property("boolean"),
}
"""The types of inputs and outputs, and which type of property each is."""
_TYPE = {"default": "String", "constraints": (AllowedValues(values=tuple(TYPES)),)}
INPUT: Mapping[str, Property] = {
    "name": Property("string", "Name of the input.", required=True),
    "description": Property("string", "Description of the input."),
    "type": Property("string", "Data type of the input.", **_TYPE),  # type: ignore[arg-type]
    "default": Property("any", "Default value of the input."),
    "replace_on_change": Property(
        "boolean",
        "Replacement of the deployment at a change of the input's value, instead of an update.",
        default=False,
    ),
}
OUTPUT: Mapping[str, Property] = {
    "name": Property("string", "Name of the output.", required=True),
    "description": Property("string", "Description of the output."),
    "type": Property("string", "Data type of the output.", **_TYPE),  # type: ignore[arg-type]
    "error_output": Property(
        "boolean", "Error output: true fails the deployment if the output has a value.", default=False
    ),
}

STDOUT = "deploy_stdout"
STDERR = "deploy_stderr"
STATUS_CODE = "deploy_status_code"
ALWAYS_SENT = (STDOUT, STDERR, STATUS_CODE)
"""Outputs of every config, which need no declaration."""


def declared_inputs(inputs: Sequence[Json]) -> list[dict[str, Json]]:
    """Return the inputs of a config as they are stored and shown, each with its value if it has one.

    :raises PropertyError: an input is wrong.
    """
    return [_input(item, index) for index, item in enumerate(inputs)]


def declared_outputs(outputs: Sequence[Json]) -> list[dict[str, Json]]:
    """Return the outputs of a config as they are stored and shown.

    :raises PropertyError: an output is wrong.
    """
    return [_without_none(_resolved(OUTPUT, item, ("outputs", index))) for index, item in enumerate(outputs)]


def _input(item: Json, index: int) -> dict[str, Json]:
    value = {"value": item["value"]} if isinstance(item, Mapping) and "value" in item else {}
    rest = {key: part for key, part in item.items() if key != "value"} if value else item
    schema = dict(INPUT)
    # As in Heat: an empty text is a default of every type.
    if isinstance(rest, Mapping) and rest.get("default") not in (None, "") and rest.get("type") in TYPES:
        schema["default"] = TYPES[rest["type"]]
    resolved = _without_none(_resolved(schema, rest, ("inputs", index)))
    if not resolved["replace_on_change"]:
        del resolved["replace_on_change"]
    return {**resolved, **value}


def _resolved(schema: Mapping[str, Property], item: Json, path: tuple[str | int, ...]) -> dict[str, Json]:
    if not isinstance(item, Mapping):
        raise PropertyError("must be a map with the keys name, type …", path)
    try:
        return resolve_properties(schema, _without_none(item))
    except PropertyError as error:
        raise PropertyError(error.message, (*path, *error.path)) from error


def _without_none(values: JsonMap) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class DeploymentResult:
    """The result that a guest has signalled.

    :ivar outputs: values of the outputs, with the ones of earlier signals.
    :ivar reason: reason for the deployment's status.
    :ivar event: end of the sentence that the event of the signal says: ``succeeded``.
    """

    status: str
    reason: str
    outputs: JsonMap
    event: str


def result_of(declared: Sequence[JsonMap], before: JsonMap, details: JsonMap) -> DeploymentResult:
    """Return the result of a deployment, by Heat's rules.

    A status code other than 0 is a failure, and so is a value of an output that is declared an error.

    :param declared: outputs of the config.
    :param before: the outputs that the deployment has.
    :param details: the body of the signal.
    """
    outputs = dict(before)
    event = "succeeded"
    failures = dict[str, Json]()
    code = details.get(STATUS_CODE)
    if code and str(code) != "0":
        failures[STATUS_CODE] = f"Deployment exited with non-zero status code: {code}"
        event = f"failed ({code})"
    for output in declared:
        name = output["name"]
        if name in details:
            outputs[name] = details[name]
            if output.get("error_output"):
                failures[name] = details[name]
                event = "failed"
    outputs.update({name: details.get(name) for name in ALWAYS_SENT})
    if failures:
        reason = ", ".join(f"{name} : {value}" for name, value in failures.items())
        return DeploymentResult("FAILED", reason, outputs, event)
    return DeploymentResult("COMPLETE", "Outputs received", outputs, event)
