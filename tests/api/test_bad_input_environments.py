"""Broken environments, parameters and files: each is refused with an error that names what is wrong."""

import typing

import pytest
from client.serving import Service
from harness.templates import one, template

Json = typing.Any
INVALID = "StackValidationFailed"
MISSING = "UserParameterMissing"
UNKNOWN = "UnknownUserParameter"
BAD = "HTTPBadRequest"
LIMIT = "RequestLimitExceeded"
SCHEMA = "InvalidSchemaError"


class Refusals(typing.Protocol):
    service: Service

    def create(self, kind: str, *fragments: str, **fields: Json) -> None: ...


def with_parameter(**schema: Json) -> Json:
    return template({"r": one()}, parameters={"p": schema})


def with_value(value: Json, **schema: Json) -> Json:
    return {"template": with_parameter(**schema), "parameters": {"p": value}}


PARAMETERS = {
    "missing": (
        {"template": with_parameter(type="string")},
        MISSING,
        ["parameters.p", "was not provided"],
    ),
    "unknown": (with_value(1, type="number") | {"parameters": {"p": 1, "q": 2}}, UNKNOWN, ['"q"', "p"]),
    "no number": (with_value("many", type="number"), INVALID, ["parameters.p", "many", "number"]),
    "a digit that is none": (with_value("²", type="number"), INVALID, ["parameters.p", "²", "number"]),
    "no boolean": (with_value("perhaps", type="boolean"), INVALID, ["parameters.p", "perhaps", "true"]),
    "no JSON": (with_value("{", type="json"), INVALID, ["parameters.p", "JSON"]),
    "JSON with NaN": (with_value('{"a": NaN}', type="json"), INVALID, ["parameters.p"]),
    "too short": (
        with_value("a", type="string", constraints=[{"length": {"min": 2}}]),
        INVALID,
        ["parameters.p", "2"],
    ),
    "too large": (
        with_value(11, type="number", constraints=[{"range": {"max": 10}}]),
        INVALID,
        ["parameters.p", "11", "10"],
    ),
    "not allowed": (
        with_value("c", type="string", constraints=[{"allowed_values": ["a", "b"]}]),
        INVALID,
        ["parameters.p", "c", "a", "b"],
    ),
    "not of the pattern": (
        with_value(
            "1a", type="string", constraints=[{"allowed_pattern": "[a-z]+", "description": "letters only"}]
        ),
        INVALID,
        ["parameters.p", "letters only"],
    ),
    "not a multiple": (
        with_value(3, type="number", constraints=[{"modulo": {"step": 2, "offset": 0}}]),
        INVALID,
        ["parameters.p", "3", "2"],
    ),
    "a wrong default": (
        {"template": with_parameter(type="number", default="x")},
        SCHEMA,
        ["parameters.p", "default", "x"],
    ),
    "an unknown type": (
        {"template": with_parameter(type="text")},
        SCHEMA,
        ["parameters.p", "text", "string"],
    ),
    "an unknown constraint": (
        {"template": with_parameter(type="string", constraints=[{"size": 1}])},
        SCHEMA,
        ["parameters.p", "size", "length"],
    ),
    "a constraint of another type": (
        {"template": with_parameter(type="json", constraints=[{"modulo": {"step": 1, "offset": 0}}])},
        SCHEMA,
        ["parameters.p", "modulo"],
    ),
    "a list": ({"parameters": [1]}, BAD, ["parameters", "[1]", "object"]),
    "infinite": (with_value("inf", type="number"), INVALID, ["parameters.p", "inf"]),
}

ENVIRONMENTS = {
    "no YAML": ({"environment": "a: ["}, BAD, ["environment", "not valid YAML"]),
    "a list": ({"environment": [1]}, BAD, ["environment", "object"]),
    "a YAML list": ({"environment": "[1]"}, BAD, ["environment", "must be a mapping"]),
    "a number": ({"environment": 5}, BAD, ["environment", "5"]),
    "an unknown section": (
        {"environment": {"parameter": {}}},
        BAD,
        ['"parameter"', "parameters"],
    ),
    "parameters are a list": (
        {"environment": {"parameters": [1]}},
        BAD,
        ["environment.parameters", "must be a map"],
    ),
    "defaults are a word": (
        {"environment": {"parameter_defaults": "x"}},
        BAD,
        ["environment.parameter_defaults", "must be a map"],
    ),
    "an unknown parameter": ({"environment": {"parameters": {"q": 1}}}, UNKNOWN, ['"q"']),
    "the registry is a list": (
        {"environment": {"resource_registry": []}},
        BAD,
        ["environment.resource_registry", "must be a map"],
    ),
    "a type is a number": (
        {"environment": {"resource_registry": {"A": 5}}},
        BAD,
        ["environment.resource_registry.A", "5"],
    ),
    "an unknown hook": (
        {"environment": {"resource_registry": {"resources": {"r": {"hooks": "pre-cook"}}}}},
        "InvalidBreakPointHook",
        ["resources.r", "pre-cook", "pre-create"],
    ),
    "an unknown restricted action": (
        {"environment": {"resource_registry": {"resources": {"r": {"restricted_actions": "eat"}}}}},
        "InvalidRestrictedAction",
        ["resources.r", "eat", "replace"],
    ),
    "a type that leads nowhere": (
        {"environment": {"resource_registry": {"OS::Heat::TestResource": "OS::No::Such"}}},
        INVALID,
        ["resources.r0.type", "OS::No::Such"],
    ),
    "a mapping without end": (
        {"environment": {"resource_registry": {"OS::Heat*": "OS::Heat::Heat*"}}},
        BAD,
        ["environment.resource_registry", "does not end"],
    ),
    "event sinks are a word": (
        {"environment": {"event_sinks": "x"}},
        BAD,
        ["environment.event_sinks"],
    ),
}

FILES = {
    "a file of the environment that was not sent": (
        {"environment_files": ["e.yaml"]},
        BAD,
        ["environment_files", "e.yaml"],
    ),
    "a file of the environment that is no YAML": (
        {"environment_files": ["e.yaml"], "files": {"e.yaml": "a: ["}},
        BAD,
        ["e.yaml", "not valid YAML"],
    ),
    "a file of the environment that is a list": (
        {"environment_files": ["e.yaml"], "files": {"e.yaml": "[1]"}},
        BAD,
        ["e.yaml", "must be a mapping"],
    ),
    "an unknown strategy": (
        {
            "environment_files": ["e.yaml"],
            "files": {"e.yaml": "parameter_merge_strategies: {default: mix}"},
        },
        INVALID,
        ["e.yaml", "mix", "overwrite"],
    ),
    "environment_files is a word": ({"environment_files": "e.yaml"}, BAD, ["environment_files", "array"]),
    "a name of a file is a number": ({"environment_files": [1]}, BAD, ["environment_files.0", "string"]),
    "files are a list": ({"files": ["a"]}, BAD, ["files", "object"]),
    "a file is a number": ({"files": {"a": 1}}, BAD, ["files.a", "string"]),
}

TABLE = {
    f"{group}: {name}": case
    for group, cases in {"parameter": PARAMETERS, "environment": ENVIRONMENTS, "file": FILES}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("fields", "kind", "fragments"), TABLE.values(), ids=TABLE)
def test_broken_files_and_environments_are_refused(
    refusals: Refusals, fields: Json, kind: str, fragments: list[str]
) -> None:
    refusals.create(kind, *fragments, **fields)


def test_the_value_of_a_hidden_parameter_is_not_repeated_in_the_error(refusals: Refusals) -> None:
    fields = with_value("s3cret", type="string", hidden=True, constraints=[{"length": {"max": 2}}])
    body = {"stack_name": "refused", **fields}
    answer = refusals.service.call("POST", "/v1/quiet/stacks", body)
    assert answer.status == 400
    assert "s3cret" not in str(answer.body)
