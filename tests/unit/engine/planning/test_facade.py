"""A template in the place of a type or of another template has to fit it, in Heat's words."""

import typing

import pytest
from stoker.engine.planning.facade import Facade, check_facade
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import ANY_NAME, Attribute, Property
from stoker.template.environment import Environment
from stoker.template.errors import FacadeMismatch

Json = typing.Any


class Typed(ResourceType):
    properties_schema = {
        "name": Property("string"),
        "size": Property("integer", required=True),
        "any": Property("any"),
    }
    attributes_schema: typing.ClassVar = {"address": Attribute("the address"), ANY_NAME: Attribute("others")}


class Untyped(ResourceType):
    properties_schema = {ANY_NAME: Property("any"), "size": Property("integer", required=True)}


SIZE = {"size": {"Type": "Number"}}
FACADE = Facade.of_type(Typed())


def misfit(described: Json, outputs: Json, facade: Facade = FACADE, **environment: Json) -> str | None:
    """The error; None: the template fits."""
    try:
        check_facade("My::Type", facade, described, outputs, Environment(**environment))
    except FacadeMismatch as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("described", "outputs", "error"),
    [
        (SIZE, {"address": {}}, None),
        ({**SIZE, "name": {"Type": "String"}, "any": {"Type": "Json"}}, {"address": {}, "more": {}}, None),
        ({}, {"address": {}}, "Required property size for facade My::Type missing in provider"),
        (
            {"size": {"Type": "String"}},
            {"address": {}},
            "Property size type mismatch between facade My::Type (Integer) and provider (String)",
        ),
        (
            {**SIZE, "name": {"Type": "Json"}},
            {"address": {}},
            "Property name type mismatch between facade My::Type (String) and provider (Map)",
        ),
        ({**SIZE, "other": {"Type": "String", "Default": ""}}, {"address": {}}, None),
        (
            {**SIZE, "other": {"Type": "String"}},
            {"address": {}},
            "Provider requires property other unknown in facade My::Type",
        ),
        (SIZE, {"more": {}}, "Attribute address for facade My::Type missing in provider"),
        (SIZE, ["address"], "Attribute address for facade My::Type missing in provider"),
    ],
)
def test_a_template_fits_a_type(described: Json, outputs: Json, error: str | None) -> None:
    assert misfit(described, outputs) == error


def test_a_default_of_the_environment_is_a_value() -> None:
    described = {**SIZE, "other": {"Type": "String"}}
    assert misfit(described, {"address": {}}, parameter_defaults={"other": "x"}) is None


def test_a_type_without_fixed_properties_takes_any_template() -> None:
    assert misfit({"other": {"Type": "String"}}, None, Facade.of_type(Untyped())) is None


def test_a_template_fits_another_template() -> None:
    described = {"a": {"Type": "Number"}, "b": {"Type": "Boolean", "Default": True}, "c": {"Type": "Json"}}
    environment = Environment(parameter_defaults={"c": {}})
    facade = Facade.of_template(described, {"o": {}}, environment)
    assert facade.properties == {"a": "number", "b": "boolean", "c": "map"}
    assert (facade.required, facade.attributes) == ({"a"}, ["o"])
    assert misfit({"a": {"Type": "Number"}}, {"o": {}}, facade) is None
    assert misfit({}, {"o": {}}, facade) == "Required property a for facade My::Type missing in provider"
    assert Facade.of_template({}, None, environment).attributes == ()
