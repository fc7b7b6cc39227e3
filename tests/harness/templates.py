"""Templates that several tests use."""

import typing

Json = typing.Any
VERSION = "2021-04-16"

HELD: Json = {
    "handle": {"type": "OS::Heat::WaitConditionHandle"},
    "held": {
        "type": "OS::Heat::WaitCondition",
        "properties": {"handle": {"get_resource": "handle"}, "count": 1, "timeout": 3600},
    },
}
"""Resources of a stack that is in progress until there is a signal."""


def template(resources: Json, **sections: Json) -> Json:
    """A template of these resources."""
    return {"heat_template_version": VERSION, "resources": resources, **sections}


def one(**properties: Json) -> Json:
    """A TestResource."""
    return {"type": "OS::Heat::TestResource", "properties": properties}


def flat(count: int, **properties: Json) -> Json:
    """Resources that do not need each other."""
    return template({f"r{index}": one(**properties) for index in range(count)})


def chain(length: int) -> Json:
    """Each resource takes the output of the one before."""
    resources = {
        f"r{index}": one(value={"get_attr": [f"r{index - 1}", "output"]} if index else "x")
        for index in range(length)
    }
    return template(resources, outputs={"last": {"value": {"get_attr": [f"r{length - 1}", "output"]}}})


def layered(layers: int, width: int, **properties: Json) -> Json:
    """Each resource of a layer needs three of the layer before."""
    resources = {}
    for layer in range(layers):
        for index in range(width):
            below = [f"l{layer - 1}_{(index + step) % width}" for step in range(3)] if layer else []
            value = {"list_join": ["", [{"get_attr": [name, "output"]} for name in below]]} if below else "x"
            digest = {"digest": ["md5", value]} if below else value
            resources[f"l{layer}_{index}"] = one(value=digest, **properties)
    return template(resources)
