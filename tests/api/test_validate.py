"""POST /validate: what it says of nested stacks, and what it checks where values are missing."""

import json

import pytest
from client.serving import Answer, Json, Service, fault
from harness.templates import one, template

NUMBER = {"type": "number", "description": "How long"}


def random(length: Json = None, **sections: Json) -> Json:
    """A template with a random text, whose length is the parameter `aparam`."""
    parameters = {"aparam": {**NUMBER, "default": 10}}
    text = {"type": "OS::Heat::RandomString", "properties": {"length": length or {"get_param": "aparam"}}}
    return template({"text": text}, **{"parameters": parameters, **sections})


def number_field(**more: Json) -> Json:
    return {"Type": "Number", "Description": "How long", "NoEcho": "false", "Label": "aparam", **more}


def answer(service: Service, tenant: str, body: Json, *, query: str = "", **fields: Json) -> Answer:
    files = {name: json.dumps(text) for name, text in fields.pop("files", {}).items()}
    sent = {"template": body, "files": files, **fields}
    return service.call("POST", f"/v1/{tenant}/validate{query}", sent)


def nested(service: Service, tenant: str, body: Json, **fields: Json) -> Json:
    response = answer(service, tenant, body, query="?show_nested=true", **fields)
    assert response.status == 200, response
    return response.body


def test_a_file_that_is_a_type_is_in_the_environment_also_without_show_nested(
    service: Service, tenant: str
) -> None:
    body = template({"r": {"type": "mine.yaml"}})
    validation = answer(service, tenant, body, files={"mine.yaml": random()}).body
    assert validation["Environment"]["resource_registry"] == {"mine.yaml": "mine.yaml", "resources": {}}
    assert "NestedParameters" not in validation


def test_the_parameters_of_nested_stacks_are_shown_on_all_levels(service: Service, tenant: str) -> None:
    middle = template(
        {"inside": {"type": "inner.yaml"}},
        description="in between",
        parameters={"aparam": NUMBER},
        parameter_groups=[{"label": "g", "parameters": ["aparam"]}],
    )
    body = template(
        {"r": {"type": "middle.yaml", "properties": {"aparam": {"get_param": "size"}}}, "none": one()},
        parameters={"size": {"type": "number", "default": 5}},
    )
    validation = nested(service, tenant, body, files={"middle.yaml": middle, "inner.yaml": random()})
    assert validation["NestedParameters"] == {
        "r": {
            "Type": "middle.yaml",
            "Description": "in between",
            "Parameters": {"aparam": number_field(Value=5)},
            "ParameterGroups": [{"label": "g", "parameters": ["aparam"]}],
            "NestedParameters": {
                "inside": {
                    "Type": "inner.yaml",
                    "Description": "No description",
                    "Parameters": {"aparam": number_field(Default=10)},
                }
            },
        }
    }
    # The file that only the nested stack uses is none of this environment's types.
    registry = validation["Environment"]["resource_registry"]
    assert registry == {"middle.yaml": "middle.yaml", "resources": {}}


def test_a_group_shows_one_member(service: Service, tenant: str) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 3, "resource_def": {"type": "My::Random", "properties": {"aparam": 7}}},
    }
    environment = {
        "resource_registry": {"My::Random": "mine.yaml"},
        "parameter_defaults": {"aparam": 20},
    }
    files = {"mine.yaml": random()}
    validation = nested(service, tenant, template({"g": group}), files=files, environment=environment)
    assert validation["NestedParameters"] == {
        "g": {
            "Type": "OS::Heat::ResourceGroup",
            "Description": "No description",
            "Parameters": {},
            "NestedParameters": {
                "0": {
                    "Type": "My::Random",
                    "Description": "No description",
                    "Parameters": {"aparam": number_field(Default=20, Value=7)},
                }
            },
        }
    }
    assert validation["Environment"]["resource_registry"] == {"My::Random": "mine.yaml", "resources": {}}


def test_a_template_in_a_property_is_a_nested_stack(service: Service, tenant: str) -> None:
    stack = {
        "type": "OS::Heat::Stack",
        "properties": {"template": {"get_file": "mine.yaml"}, "parameters": {"aparam": 4}},
    }
    validation = nested(service, tenant, template({"s": stack}), files={"mine.yaml": random()})
    assert validation["NestedParameters"]["s"]["Parameters"] == {"aparam": number_field(Default=10, Value=4)}


@pytest.mark.parametrize(
    "value", [{"get_param": "missing"}, {"get_attr": ["other", "output"]}, {"get_resource": "other"}]
)
@pytest.mark.parametrize("in_group", [False, True])
def test_values_that_are_not_known_are_left_out(
    service: Service, tenant: str, value: Json, in_group: bool
) -> None:
    child = {"type": "mine.yaml", "properties": {"aparam": value}}
    if in_group:
        child = {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": child}}
    body = template({"r": child, "other": one()}, parameters={"missing": {"type": "number"}})
    validation = nested(service, tenant, body, files={"mine.yaml": random(parameters={"aparam": NUMBER})})
    entry = validation["NestedParameters"]["r"]
    entry = entry["NestedParameters"]["0"] if in_group else entry
    assert entry["Parameters"] == {"aparam": number_field()}


MISSING = {
    "word": {"type": "string"},
    "words": {"type": "json"},
    "on": {"type": "boolean"},
    "secret": {"type": "string", "hidden": True},
}
"""Parameters without values."""
UNKNOWN: dict[str, Json] = {
    "a value": {"get_param": "word"},
    "a part": {"get_param": ["words", "a", 0]},
    "a hidden value": {"get_param": "secret"},
    "text of it": {"str_replace": {"template": "a", "params": {"a": {"get_param": "word"}}}},
    "a chosen value": {"if": [{"equals": [{"get_param": "word"}, "a"]}, {"get_param": "nothing"}, 2]},
    "the name of a resource": {"get_resource": {"get_param": "word"}},
    "the name of an attribute": {"get_attr": ["other", {"get_param": "word"}]},
    "the name of a file": {"get_file": {"get_param": "word"}},
}


@pytest.mark.parametrize("value", UNKNOWN.values(), ids=UNKNOWN)
def test_properties_that_depend_on_missing_values_are_accepted(
    service: Service, tenant: str, value: Json
) -> None:
    body = template(
        {"r": one(value=value), "other": one()}, parameters=MISSING, outputs={"o": {"value": value}}
    )
    response = answer(service, tenant, body)
    assert response.status == 200, response


@pytest.mark.parametrize(
    "condition", ["is_on", {"not": "is_on"}, {"and": ["is_on", {"equals": [1, 1]}]}, {"get_param": "on"}]
)
def test_a_resource_that_may_not_exist_is_not_judged(service: Service, tenant: str, condition: Json) -> None:
    """A missing value decides whether the resource exists; with that value the stack may be made."""
    body = template(
        {
            "r": {"type": "OS::No::Such", "condition": condition},
            "s": {**one(valeu=1), "condition": condition},
            "t": {**one(value={"get_param": "nothing"}), "condition": condition},
            "n": {"type": "wrong.yaml", "condition": condition},
            "user": one(value={"get_attr": ["t", "output"]}),
        },
        parameters=MISSING,
        conditions={"is_on": {"get_param": "on"}},
        outputs={"o": {"value": {"get_attr": ["r", "x"]}, "condition": condition}},
    )
    wrong = template({"r": {"type": "OS::No::Such"}})
    response = answer(service, tenant, body, files={"wrong.yaml": wrong})
    assert response.status == 200, response
    assert answer(service, tenant, body, parameters={"on": True, "word": "a"}).status == 400


@pytest.mark.parametrize(
    ("resources", "where"),
    [
        ({"r": one(valeu=1)}, "resources.r.properties: : Unknown Property valeu"),
        ({"r": one(wait_secs="x", value={"get_param": "word"})}, "resources.r.properties.wait_secs"),
        (
            {"r": one(value={"get_param": "wrod"})},
            "resources.r.properties.value: : The Parameter (wrod)",
        ),
        ({"r": one(value={"get_attr": ["r2", "output"]})}, "resources.r.properties.value.get_attr"),
        ({"r": {"type": "inner.yaml"}}, "resources.r.resources.text.properties.length"),
        ({"r": {"type": "inner.yaml", "properties": {"x": {"get_param": "word"}}}}, "resources.r"),
    ],
)
def test_the_rest_is_checked_although_values_are_missing(
    service: Service, tenant: str, resources: Json, where: str
) -> None:
    files = {"inner.yaml": random("long")}
    response = answer(service, tenant, template(resources, parameters=MISSING), files=files)
    assert fault(response)[0] == 400
    assert where in response.error["message"]


def test_a_value_that_a_nested_stack_lacks_is_no_error(service: Service, tenant: str) -> None:
    """Heat's rule: only who creates the stack needs all values."""
    child = random(parameters={"aparam": NUMBER, "other": {"type": "number"}})
    for properties in ({}, {"other": {"get_attr": ["r2", "output"]}}, {"other": {"get_param": "word"}}):
        body = template(
            {"r": {"type": "mine.yaml", "properties": properties}, "r2": one()}, parameters=MISSING
        )
        response = answer(service, tenant, body, files={"mine.yaml": child})
        assert response.status == 200, response
    sent = {"stack_name": "s", "template": template({"r": {"type": "mine.yaml"}})}
    sent["files"] = {"mine.yaml": json.dumps(child)}
    refused = service.call("POST", f"/v1/{tenant}/stacks", sent)
    assert fault(refused) == (400, "UserParameterMissing")
    unknown = template({"r": {"type": "mine.yaml", "properties": {"none": 1}}})
    assert fault(answer(service, tenant, unknown, files={"mine.yaml": child}))[0] == 400


def test_a_default_against_its_own_constraint_is_warned_of(service: Service, tenant: str) -> None:
    declared = {"type": "string", "default": "9", "constraints": [{"allowed_pattern": "[a-z]+"}]}
    body = template({"r": one(value={"get_param": "p"})}, parameters={"p": declared})
    response = answer(service, tenant, body)
    assert response.status == 200, response
    [warning] = response.body["Warnings"]
    assert warning.startswith("parameters.p.default: no stack can be created with this template: ")
    assert '"9" does not match' in warning
    for parameters in ({}, {"p": "a"}):
        sent = {"stack_name": "s", "template": body, "parameters": parameters}
        assert service.call("POST", f"/v1/{tenant}/stacks", sent).status == 400
    assert answer(service, tenant, body, parameters={"p": "9"}).status == 400


def test_a_repetition_over_a_value_that_is_not_known_is_accepted(service: Service, tenant: str) -> None:
    """The value comes from a parameter, from one of a nested stack, or from another resource."""
    missing = {"words": {"type": "comma_delimited_list"}, "map": {"type": "json"}}
    sources: list[Json] = [
        {"%w%": {"get_param": "words"}},
        {"%w%": {"get_param": "words"}, "%x%": ["a", "b"]},
        {"%w%": {"get_param": ["map", "a"]}},
        {"%w%": {"get_attr": ["other", "show"]}},
        {"%w%": {"str_split": [",", {"get_param": "words"}]}},
        {"get_param": "map"},
    ]
    repeats: list[Json] = [
        {"repeat": {"for_each": source, "template": "%w%", **more}}
        for source in sources
        for more in ({}, {"permutations": False})
    ]
    resources = {
        f"r{index}": {"type": "OS::Heat::Value", "properties": {"value": repeat}}
        for index, repeat in enumerate(repeats)
    }
    body = template({**resources, "other": one()}, parameters=missing)
    response = answer(service, tenant, body)
    assert response.status == 200, response
    response = answer(service, tenant, template({"n": {"type": "n.yaml"}}), files={"n.yaml": body})
    assert response.status == 200, response


def test_many_equal_nested_stacks_are_described_within_the_budget(service: Service, tenant: str) -> None:
    """A tree of four levels with a few files, in which the same description is repeated very often."""
    words = {f"p{index}": {"type": "string", "default": "x", "description": "y" * 200} for index in range(50)}
    files = {"3.yaml": template({}, parameters=words)}
    for level in (2, 1, 0):
        children = {f"c{index}": {"type": f"{level + 1}.yaml"} for index in range(18)}
        files[f"{level}.yaml"] = template(children)
    body = template({"r": {"type": "0.yaml"}})
    assert answer(service, tenant, body, files=files).status == 200
    response = answer(service, tenant, body, files=files, query="?show_nested=1")
    assert fault(response) == (400, "RequestLimitExceeded")


def parameter(**declared: Json) -> Json:
    return template({}, parameters={"p": {"type": "string", **declared}})


TEXTS: dict[str, tuple[Json, str, str]] = {
    "no type of a parameter's": (
        parameter(type="text"),
        "InvalidSchemaError",
        "Parameter 'p' is invalid: ",
    ),
    "a default that is no number": (
        parameter(type="number", default="x"),
        "InvalidSchemaError",
        "Parameter 'p' is invalid: Invalid default (",
    ),
    "an unknown type": (
        template({"r": {"type": "OS::No::Such"}}),
        "StackValidationFailed",
        "The Resource Type (OS::No::Such) could not be found.",
    ),
    "no type": (template({"r": {}}), "StackValidationFailed", "Each resource must contain a type key."),
    "a slash in a name": (
        template({"a/b": one()}),
        "StackValidationFailed",
        'Resource name may not contain "/"',
    ),
    "an unknown keyword": (
        template({"r": {**one(), "property": {}}}),
        "StackValidationFailed",
        '"property" is not a valid keyword inside a resource definition',
    ),
    "an unknown condition": (
        template({"r": {**one(), "condition": "c"}}),
        "StackValidationFailed",
        'resources.r.condition: Invalid condition "c"',
    ),
    "an unknown attribute": (
        template({"r": one(), "s": one(value={"get_attr": ["r", "x"]})}),
        "StackValidationFailed",
        "resources.s: The Referenced Attribute (r x) is incorrect.",
    ),
    "a wrong deletion policy": (
        template({"r": {**one(), "deletion_policy": "Keep"}}),
        "StackValidationFailed",
        'resources.r.deletion_policy: Invalid deletion policy "Keep"',
    ),
    "an update policy of a type without one": (
        template({"r": {**one(), "update_policy": {"x": 1}}}),
        "StackValidationFailed",
        "Property error: : resources.r.update_policy: : Unknown Property x",
    ),
    "a group with an unknown parameter": (
        template({}, parameter_groups=[{"parameters": ["p"]}]),
        "StackValidationFailed",
        "Parameter Groups error: parameter_groups",
    ),
    "an output without a value": (
        template({}, outputs={"o": {}}),
        "StackValidationFailed",
        "Each output must contain a value key.",
    ),
    "a text that is no template": ("a: [", "HTTPBadRequest", "Template not in valid format: "),
    "an unknown version": (
        {"heat_template_version": "invalid"},
        "InvalidTemplateVersion",
        'The template version is invalid: "invalid". "heat_template_version" should be one of: 2013-05-23, ',
    ),
    "no version": (
        {"heat_template_version": None, "description": "x"},
        "InvalidTemplateVersion",
        "The template version is invalid: ",
    ),
    "an unknown section": (
        template({}, resource={}),
        "InvalidTemplateSection",
        "The template section is invalid: resource",
    ),
    "an unknown property": (
        template({"r": one(valeu=1)}),
        "StackValidationFailed",
        "Property error: : resources.r.properties: : Unknown Property valeu",
    ),
    "a wrong value": (
        template({"r": one(wait_secs="x")}),
        "StackValidationFailed",
        "Property error: : resources.r.properties.wait_secs: : Value 'x' is not a number",
    ),
    "a required property": (
        template({"r": {"type": "OS::Heat::ResourceGroup"}}),
        "StackValidationFailed",
        "Property error: : resources.r.properties: : Property resource_def not assigned",
    ),
    "an unknown parameter": (
        template({"r": one(value={"list_join": ["", [{"get_param": "missing"}]]})}),
        "StackValidationFailed",
        "Property error: : resources.r.properties.value: : The Parameter (missing) was not provided.",
    ),
    "a file that was not sent": (
        template({"r": one(value={"get_file": "f"})}),
        "StackValidationFailed",
        'Property error: : resources.r.properties.value: : No content found in the "files" section for '
        "get_file path: f",
    ),
    "an unknown resource": (
        template({"r": one(value={"get_resource": "nope"})}),
        "InvalidTemplateReference",
        'The specified reference "nope" (in r.Properties.value) is incorrect.',
    ),
    "an unknown dependency": (
        template({"r": {**one(), "depends_on": "nope"}}),
        "InvalidTemplateReference",
        'The specified reference "nope" (in r.DependsOn) is incorrect.',
    ),
    "a circle": (
        template({"r": {**one(), "depends_on": "r"}}),
        "CircularDependencyException",
        "Circular Dependency Found: ",
    ),
    "a nested value": (
        template({"r": {"type": "inner.yaml"}}),
        "StackValidationFailed",
        "Property error: : resources.r.resources.text.properties.length: : Value 'long' is not an integer",
    ),
}
"""Mistakes with the type of the error and Heat's text, behind which a hint may follow."""


@pytest.mark.parametrize("path", ["validate", "stacks", "stacks/preview"])
@pytest.mark.parametrize(("body", "kind", "text"), TEXTS.values(), ids=TEXTS)
def test_errors_begin_with_heats_texts(
    service: Service, tenant: str, path: str, body: Json, kind: str, text: str
) -> None:
    files = {"inner.yaml": json.dumps(random("long"))}
    sent = {"template": body, "files": files, **({} if path == "validate" else {"stack_name": "s"})}
    response = service.call("POST", f"/v1/{tenant}/{path}", sent)
    assert fault(response) == (400, kind)
    assert response.error["message"].startswith(text)


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ({}, "UserParameterMissing", "The Parameter (p) was not provided."),
        ({"q": 1, "p": 1}, "UnknownUserParameter", "The Parameter (q) was not defined in template."),
        ({"p": "x"}, "StackValidationFailed", "Parameter 'p' is invalid: "),
    ],
)
def test_errors_of_given_parameters_begin_with_heats_texts(
    service: Service, tenant: str, values: Json, kind: str, text: str
) -> None:
    body = template({}, parameters={"p": {"type": "number"}})
    sent = {"template": body, "stack_name": "s", "parameters": values}
    response = service.call("POST", f"/v1/{tenant}/stacks", sent)
    assert fault(response) == (400, kind)
    assert response.error["message"].startswith(text)


@pytest.mark.parametrize(
    ("environment", "kind", "text"),
    [
        ({"sections": {}}, "HTTPBadRequest", "Environment not in valid format: "),
        ("a: [", "HTTPBadRequest", "Environment not in valid format: "),
        (
            {"resource_registry": {"resources": {"r": {"hooks": "x"}}}},
            "InvalidBreakPointHook",
            'Invalid hook type "x" for resource breakpoint, acceptable hook types are: pre-create',
        ),
        (
            {"resource_registry": {"resources": {"r": {"restricted_actions": "x"}}}},
            "InvalidRestrictedAction",
            'Invalid restricted_action type "x" for resource, acceptable restricted_action types are: ',
        ),
    ],
)
def test_errors_of_environments_begin_with_heats_texts(
    service: Service, tenant: str, environment: Json, kind: str, text: str
) -> None:
    response = answer(service, tenant, template({"r": one()}), environment=environment)
    assert fault(response) == (400, kind)
    assert response.error["message"].startswith(text)


def test_a_template_above_a_limit_is_refused(service: Service, tenant: str) -> None:
    response = answer(service, tenant, "description: " + "x" * 600_000)
    assert fault(response) == (400, "RequestLimitExceeded")
    assert response.error["message"].startswith("Request limit exceeded: ")


def test_an_output_that_cannot_be_computed_has_an_error_up_to_the_root(service: Service, tenant: str) -> None:
    """Tempest's test_output_error_nested with one level more and an output that does not exist."""
    inner = template(
        {"t": one(value="a")},
        outputs={"a": {"value": {"get_attr": ["t", "output"]}}, "b": {"value": {"get_param": "foo"}}},
    )

    def around(name: str, child: str) -> Json:
        outputs = {key: {"value": {"get_attr": [name, key]}} for key in ("a", "b", "gone")}
        return template({name: {"type": child}}, outputs=outputs)

    files = {"inner.yaml": json.dumps(inner), "middle.yaml": json.dumps(around("low", "inner.yaml"))}
    path = service.created(tenant, "s", around("parent", "middle.yaml"), files=files)
    by_key = {item["output_key"]: item for item in service.get(path)["stack"]["outputs"]}
    assert (by_key["a"]["output_value"], "output_error" in by_key["a"]) == ("a", False)
    assert by_key["b"]["output_value"] is None
    assert by_key["b"]["output_error"] == (
        "Error in parent output b: Error in low output b: The Parameter (foo) was not provided."
    )
    path = service.created(tenant, "flat", around("parent", "inner.yaml"), files=files)
    by_key = {item["output_key"]: item for item in service.get(path)["stack"]["outputs"]}
    assert by_key["b"]["output_error"] == "Error in parent output b: The Parameter (foo) was not provided."
    assert by_key["gone"]["output_error"] == "The Referenced Attribute (parent gone) is incorrect."


FITTING: Json = {
    "parameters": {
        "length": {"type": "number", "default": 3},
        "character_classes": {"type": "comma_delimited_list", "default": []},
        "more": {"type": "string", "default": "x"},
    },
    "outputs": {"value": {"value": "v"}},
}
"""Parameters and outputs of a template that can be in the place of OS::Heat::RandomString."""
MISFITS: list[tuple[Json, str]] = [
    (
        {"parameters": {"length": {"type": "string", "default": "3"}}},
        "Property length type mismatch between facade OS::Heat::RandomString (Integer) and provider (String)",
    ),
    (
        {"parameters": {"more": {"type": "string"}}},
        "Provider requires property more unknown in facade OS::Heat::RandomString",
    ),
    ({"outputs": {}}, "Attribute value for facade OS::Heat::RandomString missing in provider"),
]


@pytest.mark.parametrize(("sections", "text"), MISFITS)
def test_a_template_that_does_not_fit_the_type_that_it_is_mapped_to_is_refused(
    service: Service, tenant: str, sections: Json, text: str
) -> None:
    body = template({"r": {"type": "OS::Heat::RandomString", "properties": {"length": 4}}})
    environment = {"resource_registry": {"OS::Heat::RandomString": "mine.yaml"}}
    fields = {"environment": environment, "files": {"mine.yaml": template({}, **FITTING)}}
    assert answer(service, tenant, body, **fields).status == 200
    fields["files"] = {"mine.yaml": template({}, **{**FITTING, **sections})}
    response = answer(service, tenant, body, **fields)
    assert fault(response) == (400, "StackValidationFailed")
    assert response.error["message"] == text
    assert response.error["errors"] == [{"path": "resources.r", "message": text}]


@pytest.mark.parametrize("kind", ["My::Text", "OS::Heat::RandomString"])
def test_a_template_for_one_resource_has_to_fit_the_one_for_all_of_its_type(
    service: Service, tenant: str, kind: str
) -> None:
    """Heat's rule, too: it then compares the value with nothing else."""
    registry = {kind: "all.yaml", "resources": {"r": {kind: "one.yaml"}}}
    general = template({}, parameters={"a": {"type": "string", "default": "x"}}, outputs={"b": {"value": 1}})
    files = {"all.yaml": general, "one.yaml": general}
    body = template({"r": {"type": kind}})
    fields = {"environment": {"resource_registry": registry}, "files": files}
    assert answer(service, tenant, body, **fields).status == 200
    response = answer(service, tenant, body, **{**fields, "files": {**files, "one.yaml": template({})}})
    assert fault(response) == (400, "StackValidationFailed")
    assert response.error["message"] == f"Attribute b for facade {kind} missing in provider"


def test_a_template_without_a_required_property_of_the_type_is_refused(service: Service, tenant: str) -> None:
    body = template({"r": {"type": "OS::Heat::ResourceGroup"}})
    environment = {"resource_registry": {"OS::Heat::ResourceGroup": "mine.yaml"}}
    response = answer(service, tenant, body, environment=environment, files={"mine.yaml": template({})})
    text = "Required property resource_def for facade OS::Heat::ResourceGroup missing in provider"
    assert (response.status, response.error["message"]) == (400, text)


def test_a_validation_may_ignore_types_that_are_not_available(service: Service, tenant: str) -> None:
    body = template(
        {"r": {"type": "OS::Monasca::Notification"}, "u": one(value={"get_attr": ["r", "show"]})},
        outputs={"o": {"value": {"get_attr": ["r", "show"]}}},
    )
    response = answer(service, tenant, body)
    assert fault(response) == (400, "ResourceTypeUnavailable")
    assert response.error["message"].startswith("HEAT-E99001 Service monasca is not available")
    assert answer(service, tenant, body, query="?ignore_errors=99001").status == 200
    wrong = template({"r": {"type": "OS::Monasca::Notification"}, "w": one(valeu=1)})
    assert fault(answer(service, tenant, wrong, query="?ignore_errors=99001"))[0] == 400
    refused = service.call("GET", f"/v1/{tenant}/resource_types/OS::Monasca::Notification")
    assert fault(refused) == (400, "ResourceTypeUnavailable")


def test_probable_mistakes_are_warned_of(service: Service, tenant: str) -> None:
    body = template(
        {
            "a": one(value={"get_param": "used"}),
            "b": {
                "type": "OS::Heat::Value",
                "properties": {"value": [{"get_parm": "used"}, {"my_data": "x"}]},
            },
        },
        parameters={name: {"type": "string"} for name in ("used", "idle")},
        outputs={
            "bad": {"value": {"get_resource": "nothing"}},
            "open": {"value": {"get_param": "used"}},
        },
    )
    response = answer(service, tenant, body)
    assert response.status == 200, response
    misspelt, output, unused = response.body["Warnings"]
    assert misspelt == (
        'resources.b.properties.value[0]: "get_parm" is not a function, so it is data; '
        'did you mean "get_param"?'
    )
    assert output.startswith("outputs.bad: its value cannot be computed: ")
    assert '"nothing"' in output
    assert unused == "parameters.idle: nothing uses this parameter"
    assert "Warnings" not in answer(service, tenant, template({"a": one()})).body


@pytest.mark.parametrize("use", [{"Ref": "p"}, {"Fn::Join": ["", [{"Ref": "p"}]]}])
def test_a_parameter_of_the_other_format_that_is_used_is_not_warned_of(
    service: Service, tenant: str, use: Json
) -> None:
    body = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"p": {"Type": "String", "Default": "d"}, "idle": {"Type": "String", "Default": "d"}},
        "Resources": {"r": {"Type": "OS::Heat::TestResource", "Properties": {"value": use}}},
    }
    assert answer(service, tenant, body).body["Warnings"] == ["parameters.idle: nothing uses this parameter"]


def test_a_key_that_a_map_has_twice_is_a_warning(service: Service, tenant: str) -> None:
    text = "heat_template_version: 2018-08-31\nresources: {}\nresources:\n  r: {type: inner.yaml}\n"
    inner = "heat_template_version: 2018-08-31\nresources: {}\nresources: {}\n"
    files = {"inner.yaml": inner, "broken.yaml": "a: ["}
    response = service.call("POST", f"/v1/{tenant}/validate", {"template": text, "files": files})
    assert response.body["Warnings"] == [
        f'{name}: the key "resources" is in its map twice, again in line 3; the last one counts'
        for name in ("template", "inner.yaml")
    ]


def test_all_errors_of_a_template_are_named_at_once(service: Service, tenant: str) -> None:
    body = template(
        {
            "a": {"type": "OS::Heat::TestResorce"},
            "b": one(value={"get_attr": ["a", "output"]}),
            "c": one(wait_secs="long"),
            "d": one(value={"get_param": "nothing"}),
        },
        outputs={"o": {"values": 1}},
    )
    response = answer(service, tenant, body)
    assert response.status == 400
    errors = response.error["errors"]
    first, count, *further = response.error["message"].splitlines()
    assert first.endswith(errors[0]["message"]), "what clients match is the first one"
    assert count == "3 more errors:"
    assert further == [f"- {error['path']}: {error['message']}" for error in errors[1:]]
    assert sorted(error["path"] for error in errors) == [
        "outputs.o",
        "resources.a.type",
        "resources.c.properties.wait_secs",
        "resources.d.properties.value",
    ]
    stack = service.call("POST", f"/v1/{tenant}/stacks", {"stack_name": "s", "template": template({})}).body
    address = f"/v1/{tenant}/stacks/s/{stack['stack']['id']}"
    for method, path in [
        ("POST", f"/v1/{tenant}/stacks"),
        ("POST", f"/v1/{tenant}/stacks/preview"),
        ("PUT", address),
        ("PUT", f"{address}/preview"),
        ("PATCH", address),
    ]:
        named = {"stack_name": "other"} if method == "POST" else {}
        refused = service.call(method, path, {"template": body, **named})
        assert refused.error == response.error, (method, path)
    many = template({f"r{n}": {"type": "No::Such::Type"} for n in range(20)})
    assert len(answer(service, tenant, many).error["errors"]) == 10
    alone = answer(service, tenant, template({"a": one(no="x"), "b": one()})).error
    assert "errors" not in alone
    assert "more error" not in alone["message"]
    native = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {name: {"Type": "No::Such::Type"} for name in "ab"},
    }
    assert [error["path"] for error in answer(service, tenant, native).error["errors"]] == [
        "Resources.a.Type",
        "Resources.b.Type",
    ]


A_TEXT = {"type": "string"}
FACADE = template({}, parameters={"one": A_TEXT, "two": A_TEXT}, outputs={"here-it-is": {"value": "noop"}})


@pytest.mark.parametrize(
    ("concrete", "given", "text"),
    [
        (
            template({}, parameters={"one": A_TEXT}, outputs={"here-it-is": {"value": "x"}}),
            {"one": "pre"},
            "Required property two for facade OS::Thingy missing in provider",
        ),
        (
            template({}, parameters={"one": A_TEXT, "two": A_TEXT}),
            {"one": "pre", "two": "post"},
            "Attribute here-it-is for facade OS::Thingy missing in provider",
        ),
    ],
)
def test_the_text_of_a_misfit_is_heats_whole_text(
    service: Service, tenant: str, concrete: Json, given: Json, text: str
) -> None:
    """Heat's own tests compare it as a whole."""
    registry = {"OS::Thingy": "facade.yaml", "resources": {"r": {"OS::Thingy": "concrete.yaml"}}}
    body = template(
        {"r": {"type": "OS::Thingy", "properties": given}},
        outputs={"one": {"value": {"get_attr": ["r", "here-it-is"]}}},
    )
    files = {"facade.yaml": FACADE, "concrete.yaml": concrete}
    response = answer(service, tenant, body, environment={"resource_registry": registry}, files=files)
    assert response.error["message"] == text
