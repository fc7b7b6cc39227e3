"""How the API shows a resource type: its schema, and a template that has its properties as parameters.

Both shapes are Heat's: ``GET /resource_types/{name}`` and ``GET /resource_types/{name}/template``.
"""

import typing
from collections.abc import Mapping

from ..shapes import Json
from ..template.constraints import AllowedPattern, AllowedValues, Constraint, Length, Range
from .contract.plugin import ResourceType
from .contract.schema import ANY_NAME, BASE_ATTRIBUTES, Attribute, Property

TemplateType = typing.Literal["cfn", "hot"]

HOT_TYPES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "map": "json",
    "list": "comma_delimited_list",
    "any": "json",
}
CFN_TYPES = {
    "string": "String",
    "number": "Number",
    "boolean": "Boolean",
    "json": "Json",
    "comma_delimited_list": "CommaDelimitedList",
}


def resource_type_schema(
    name: str, plugin: ResourceType, *, with_description: bool = False
) -> dict[str, Json]:
    """Return the body of ``GET /resource_types/{name}``; hidden properties and attributes are left out."""
    view = {
        "resource_type": name,
        "properties": {key: _property(prop) for key, prop in _properties(plugin).items()},
        "attributes": {key: _attribute(item) for key, item in _attributes(plugin).items()},
        "support_status": plugin.support_status.to_json(),
    }
    return {**view, "description": plugin.description} if with_description else view


def resource_type_template(
    name: str, plugin: ResourceType, template_type: TemplateType = "cfn"
) -> dict[str, Json]:
    """Return a template with one resource: a parameter for each property, an output for each attribute."""
    document_format = _HOT if template_type == "hot" else _CFN
    resource = type(plugin).__name__
    properties = _properties(plugin)
    attributes = _attributes(plugin)
    outputs = {
        key: document_format.output(resource, key, item.description) for key, item in attributes.items()
    }
    return document_format.document(
        f"Initial template of {resource}",
        {key: document_format.parameter(prop) for key, prop in properties.items()},
        {
            resource: document_format.resource(
                name, {key: document_format.use(key, prop) for key, prop in properties.items()}
            )
        },
        {**outputs, "OS::stack_id": document_format.reference(resource)},
    )


def _properties(plugin: ResourceType) -> dict[str, Property]:
    schema = plugin.properties_schema
    return {key: p for key, p in schema.items() if key != ANY_NAME and not p.support_status.hidden}


def _attributes(plugin: ResourceType) -> dict[str, Attribute]:
    schema = {**plugin.attributes_schema, **BASE_ATTRIBUTES}
    return {key: a for key, a in schema.items() if key != ANY_NAME and not a.support_status.hidden}


def _parameter_type(prop: Property) -> str:
    """Return the parameter type of a property.

    Lists of maps or lists need json; Heat uses comma_delimited_list, which cannot hold them.
    """
    if isinstance(prop.schema, Property) and prop.schema.type in ("map", "list"):
        return "json"
    return HOT_TYPES[prop.type]


def _property(prop: Property) -> dict[str, Json]:
    view: dict[str, Json] = {
        "type": prop.type,
        "required": prop.required,
        "update_allowed": prop.update_allowed,
        "immutable": prop.immutable,
    }
    if prop.description:
        view["description"] = prop.description
    if prop.default is not None:
        view["default"] = prop.default
    if prop.constraints:
        view["constraints"] = _constraints(prop)
    if isinstance(prop.schema, Mapping):
        view["schema"] = {key: _property(member) for key, member in prop.schema.items()}
    elif prop.schema is not None:
        view["schema"] = {"*": _property(prop.schema)}
    return view


def _constraints(prop: Property) -> list[dict[str, Json]]:
    return [
        {**({"description": item.description} if item.description else {}), **item.definition()}
        for item in prop.constraints
    ]


def _attribute(attribute: Attribute) -> dict[str, Json]:
    view: dict[str, Json] = {"type": attribute.type, "description": attribute.description}
    return {key: value for key, value in view.items() if value}


class _Hot:
    """Builds a HOT template."""

    def document(self, description: str, parameters: Json, resources: Json, outputs: Json) -> dict[str, Json]:
        return {
            "heat_template_version": "2016-10-14",
            "description": description,
            "parameters": parameters,
            "resources": resources,
            "outputs": outputs,
        }

    def parameter(self, prop: Property) -> dict[str, Json]:
        view: dict[str, Json] = {"type": _parameter_type(prop)}
        if prop.description:
            view["description"] = prop.description
        if prop.default is not None:
            view["default"] = prop.default
        if prop.constraints:
            view["constraints"] = _constraints(prop)
        return view

    def use(self, name: str, _prop: Property) -> Json:
        return {"get_param": name}

    def resource(self, type_name: str, properties: Json) -> Json:
        return {"type": type_name, "properties": properties}

    def output(self, resource: str, attribute: str, description: str) -> Json:
        return {"value": {"get_attr": [resource, attribute]}, "description": description}

    def reference(self, resource: str) -> Json:
        return {"value": {"get_resource": resource}}


class _Cfn:
    """Builds a CloudFormation template."""

    def document(self, description: str, parameters: Json, resources: Json, outputs: Json) -> dict[str, Json]:
        return {
            "HeatTemplateFormatVersion": "2012-12-12",
            "Description": description,
            "Parameters": parameters,
            "Resources": resources,
            "Outputs": outputs,
        }

    def parameter(self, prop: Property) -> dict[str, Json]:
        view: dict[str, Json] = {"Type": CFN_TYPES[_parameter_type(prop)]}
        if prop.description:
            view["Description"] = prop.description
        if prop.default is not None:
            view["Default"] = prop.default
        for constraint in prop.constraints:
            view.update(_cfn_constraint(constraint))
        if prop.type == "boolean":
            view["AllowedValues"] = ["True", "true", "False", "false"]
        return view

    def use(self, name: str, prop: Property) -> Json:
        split = _parameter_type(prop) == "comma_delimited_list"
        return {"Fn::Split": [",", {"Ref": name}]} if split else {"Ref": name}

    def resource(self, type_name: str, properties: Json) -> Json:
        return {"Type": type_name, "Properties": properties}

    def output(self, resource: str, attribute: str, description: str) -> Json:
        return {"Value": {"Fn::GetAtt": [resource, attribute]}, "Description": description}

    def reference(self, resource: str) -> Json:
        return {"Value": {"Ref": resource}}


def _cfn_constraint(constraint: Constraint) -> dict[str, Json]:
    """Return a constraint in CloudFormation's form, which exists for four kinds only."""
    if isinstance(constraint, Length | Range | AllowedValues | AllowedPattern):
        return constraint.view()
    return {}


_HOT = _Hot()
_CFN = _Cfn()
