"""Resource types as the API shows them, in the shape of Heat's answers."""

import json

from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Attribute, Property, SupportStatus
from stoker.resources.heat.none import NoneResource
from stoker.resources.heat.random_string import RandomString
from stoker.resources.rendering import resource_type_schema, resource_type_template
from stoker.template.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range

SHOW = {"description": "All fields, as the service's API returns them.", "type": "map"}


class Server(ResourceType):
    description = "A server."
    support_status = SupportStatus("DEPRECATED", "5.0.0", "Use another.", SupportStatus(version="2014.1"))
    properties_schema = {
        "name": Property(
            "string",
            "Its name.",
            required=True,
            constraints=(Length("Short.", 1, 8), AllowedPattern(pattern="[a-z]+")),
        ),
        "size": Property("integer", default=1, update_allowed=True, constraints=(Range(minimum=1),)),
        "step": Property("number", constraints=(Modulo(step=2), Custom(check_name="acme.step"))),
        "kind": Property("string", immutable=True, constraints=(AllowedValues(values=("a", "b")),)),
        "public": Property("boolean"),
        "disks": Property("list", schema=Property("map", schema={"gb": Property("integer")})),
        "tags": Property("list"),
        "labels": Property("map"),
        "extra": Property("any"),
        "old": Property("string", support_status=SupportStatus("HIDDEN")),
    }
    attributes_schema = {
        "address": Attribute("Its address.", "string"),
        "other": Attribute("What else."),
        "secret": Attribute(support_status=SupportStatus("HIDDEN")),
    }


def test_the_schema_has_the_shape_of_heat():
    plain = {"required": False, "update_allowed": False, "immutable": False}
    assert resource_type_schema("Acme::Server", Server()) == {
        "resource_type": "Acme::Server",
        "properties": {
            "name": {
                **plain,
                "type": "string",
                "required": True,
                "description": "Its name.",
                "constraints": [
                    {"description": "Short.", "length": {"min": 1, "max": 8}},
                    {"allowed_pattern": "[a-z]+"},
                ],
            },
            "size": {
                **plain,
                "type": "integer",
                "default": 1,
                "update_allowed": True,
                "constraints": [{"range": {"min": 1}}],
            },
            "step": {
                **plain,
                "type": "number",
                "constraints": [
                    {"modulo": {"step": 2, "offset": 0}},
                    {"custom_constraint": "acme.step"},
                ],
            },
            "kind": {
                **plain,
                "type": "string",
                "immutable": True,
                "constraints": [{"allowed_values": ["a", "b"]}],
            },
            "public": {**plain, "type": "boolean"},
            "disks": {
                **plain,
                "type": "list",
                "schema": {"*": {**plain, "type": "map", "schema": {"gb": {**plain, "type": "integer"}}}},
            },
            "tags": {**plain, "type": "list"},
            "labels": {**plain, "type": "map"},
            "extra": {**plain, "type": "any"},
        },
        "attributes": {
            "address": {"description": "Its address.", "type": "string"},
            "other": {"description": "What else."},
            "show": SHOW,
        },
        "support_status": {
            "status": "DEPRECATED",
            "version": "5.0.0",
            "message": "Use another.",
            "previous_status": {
                "status": "SUPPORTED",
                "version": "2014.1",
                "message": None,
                "previous_status": None,
            },
        },
    }


def test_the_description_is_shown_where_requested():
    assert resource_type_schema("Acme::Server", Server(), with_description=True)["description"] == "A server."


def test_a_type_that_takes_any_name_shows_none():
    schema = resource_type_schema("OS::Heat::None", NoneResource())
    assert (schema["properties"], schema["attributes"]) == ({}, {"show": SHOW})


def test_the_hot_template_has_a_parameter_for_each_property():
    template = resource_type_template("Acme::Server", Server(), "hot")
    assert template["heat_template_version"] == "2016-10-14"
    assert template["description"] == "Initial template of Server"
    assert template["parameters"]["name"] == {
        "type": "string",
        "description": "Its name.",
        "constraints": [
            {"description": "Short.", "length": {"min": 1, "max": 8}},
            {"allowed_pattern": "[a-z]+"},
        ],
    }
    assert template["parameters"]["size"] == {
        "type": "number",
        "default": 1,
        "constraints": [{"range": {"min": 1}}],
    }
    assert {key: value["type"] for key, value in template["parameters"].items()} == {
        "name": "string",
        "size": "number",
        "step": "number",
        "kind": "string",
        "public": "boolean",
        "disks": "json",
        "tags": "comma_delimited_list",
        "labels": "json",
        "extra": "json",
    }
    assert template["resources"] == {
        "Server": {
            "type": "Acme::Server",
            "properties": {key: {"get_param": key} for key in template["parameters"]},
        }
    }
    assert template["outputs"] == {
        "address": {"value": {"get_attr": ["Server", "address"]}, "description": "Its address."},
        "other": {"value": {"get_attr": ["Server", "other"]}, "description": "What else."},
        "show": {"value": {"get_attr": ["Server", "show"]}, "description": SHOW["description"]},
        "OS::stack_id": {"value": {"get_resource": "Server"}},
    }


def test_the_cfn_template_has_its_own_words():
    template = resource_type_template("Acme::Server", Server())
    assert template["HeatTemplateFormatVersion"] == "2012-12-12"
    assert template["Description"] == "Initial template of Server"
    parameters = template["Parameters"]
    assert parameters["name"] == {
        "Type": "String",
        "Description": "Its name.",
        "MinLength": 1,
        "MaxLength": 8,
        "AllowedPattern": "[a-z]+",
    }
    assert parameters["size"] == {"Type": "Number", "Default": 1, "MinValue": 1}
    assert parameters["step"] == {"Type": "Number"}
    assert parameters["kind"] == {"Type": "String", "AllowedValues": ["a", "b"]}
    assert parameters["public"] == {"Type": "Boolean", "AllowedValues": ["True", "true", "False", "false"]}
    assert parameters["labels"] == {"Type": "Json"}
    resource = template["Resources"]["Server"]
    assert resource["Type"] == "Acme::Server"
    assert resource["Properties"]["tags"] == {"Fn::Split": [",", {"Ref": "tags"}]}
    assert resource["Properties"]["disks"] == {"Ref": "disks"}
    assert resource["Properties"]["name"] == {"Ref": "name"}
    assert template["Outputs"]["address"] == {
        "Value": {"Fn::GetAtt": ["Server", "address"]},
        "Description": "Its address.",
    }
    assert template["Outputs"]["OS::stack_id"] == {"Value": {"Ref": "Server"}}


def test_hidden_properties_are_in_neither():
    assert "sequence" in RandomString.properties_schema
    assert "sequence" not in resource_type_schema("x", RandomString())["properties"]
    assert "sequence" not in resource_type_template("x", RandomString(), "hot")["parameters"]
    assert "sequence" not in resource_type_template("x", RandomString())["Parameters"]


def test_what_is_shown_is_json():
    documents = [resource_type_schema("x", RandomString()), resource_type_template("x", RandomString())]
    assert json.loads(json.dumps(documents)) == documents
