"""An update that changes an immutable parameter is refused as Heat refuses it."""

import pytest
from client.serving import Json, Service, fault
from harness.templates import one, template

PARAMETERS = {
    "fixed": {"type": "string", "default": "x", "immutable": True},
    "secret": {"type": "string", "default": "s", "immutable": True, "hidden": True},
    "free": {"type": "string", "default": "x"},
}
REFUSED = "The following parameters are immutable and may not be updated: "


def body(values: Json, **parameters: Json) -> Json:
    declared = {name: {**schema, **parameters.get(name, {})} for name, schema in PARAMETERS.items()}
    return {"template": template({"a": one()}, parameters=declared), "parameters": values}


@pytest.fixture
def path(service: Service, tenant: str) -> str:
    fields = body({"fixed": "one", "secret": "first"})
    return service.created(tenant, "s", fields["template"], parameters=fields["parameters"])


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"fixed": "two", "secret": "first"}, "fixed"),
        ({"secret": "first"}, "fixed"),  # Its default is another value than it has.
        ({"fixed": "one", "secret": "second"}, "secret"),
        ({"fixed": "two", "secret": "second", "free": "y"}, "fixed, secret"),
    ],
)
@pytest.mark.parametrize("below", ["", "/preview"])
def test_a_changed_immutable_parameter_is_refused(
    service: Service, path: str, values: Json, names: str, below: str
) -> None:
    answer = service.call("PUT", path + below, body(values))
    assert fault(answer) == (400, "ImmutableParameterModified")
    assert answer.error["message"] == REFUSED + names
    assert "second" not in str(answer.body)


def test_a_patch_that_changes_an_immutable_parameter_is_refused(service: Service, path: str) -> None:
    assert service.call("PATCH", path, {"parameters": {"free": "y"}}).status == 202
    answer = service.call("PATCH", path, {"parameters": {"secret": "second"}})
    assert fault(answer) == (400, "ImmutableParameterModified")


def test_unchanged_values_and_mutable_parameters_may_be_sent(service: Service, path: str) -> None:
    values = {"fixed": "one", "secret": "first", "free": "z"}
    assert service.call("PUT", path, body(values)).status == 202
    # The new template decides what is immutable.
    loose = body({"fixed": "two", "secret": "first"}, fixed={"immutable": False})
    assert service.call("PUT", path, loose).status == 202


def test_a_parameter_that_is_new_to_the_stack_may_have_any_value(service: Service, path: str) -> None:
    fields = body({"fixed": "one", "secret": "first", "late": "l"}, late={})
    fields["template"]["parameters"]["late"] = {"type": "string", "immutable": True}
    assert service.call("PUT", path, fields).status == 202
    assert fault(service.call("PATCH", path, {"parameters": {"late": "m"}}))[0] == 400
