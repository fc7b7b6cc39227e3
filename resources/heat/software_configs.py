"""Software configs: scripts and manifests that servers apply, stored as Stoker's own rows.

A config never changes: another definition makes another config, so that whatever refers to it sees a new id.
"""

import email.message
import json
import pathlib
import uuid
from collections.abc import Iterable, Iterator, Mapping

import yaml

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues, Length
from ..contract import (
    Attribute,
    ConfigSpec,
    Done,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    check_named,
)
from ..mime import mime_message, mime_part, parts_of
from .software_io import INPUT, OUTPUT, UNGROUPED, declared_inputs, declared_outputs

_GROUP_TEXT = "Name of the configuration tool, as the agents in servers know it."
_OPTIONS = Property("map", "Options of the configuration tool.")
_INPUTS = Property(
    "list", "Inputs, whose values deployments set.", schema=Property("map", "Input.", schema=INPUT)
)
_OUTPUTS = Property(
    "list", "Outputs, whose values servers signal.", schema=Property("map", "Output.", schema=OUTPUT)
)
_CONFIG = Attribute("Configuration.", "string", from_property="config")


class ConfigType(ResourceType):
    """Base of the configs: a row that is made once, and deleted with the resource."""

    identity = "id"
    stored_here = True

    def spec(self, target: ResourceView, context: StepContext) -> ConfigSpec:
        """Return the config of a resource."""
        raise NotImplementedError

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the config, under the key of its creation."""
        context.software.create_config(target.key, self.spec(target, context))
        return Done(physical_id=target.key)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        context.software.delete_configs()
        return Done()

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Adopt a config of the project that belongs to nobody."""
        check_named(target)
        context.software.adopt_config(str(target.physical_id))
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the key, under which a lost attempt has stored the config."""
        return key if context.software.has_config(key) else None

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"config": target.properties.get("config")}


class SoftwareConfig(ConfigType):
    """A script or a manifest, as text."""

    type_name = "OS::Heat::SoftwareConfig"
    description = "A software config: a script or manifest for servers, with declared inputs and outputs."
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "group": Property("string", _GROUP_TEXT, default=UNGROUPED),
        "config": Property("string", "Script or manifest."),
        "options": _OPTIONS,
        "inputs": _INPUTS,
        "outputs": _OUTPUTS,
    }
    attributes_schema = {"config": _CONFIG}

    def validate(self, properties: JsonMap) -> None:
        """Check the inputs and outputs.

        :raises PropertyError: the default of an input is not of its type.
        """
        declared_inputs(properties.get("inputs") or [])

    def spec(self, target: ResourceView, context: StepContext) -> ConfigSpec:
        properties = target.properties
        return _declared(target, properties["group"], properties["config"])


class StructuredConfig(SoftwareConfig):
    """A config as a map, in which a deployment replaces inputs by their values."""

    type_name = "OS::Heat::StructuredConfig"
    description = "A structured config: a map in which deployments replace get_input by input values."
    properties_schema = {
        **SoftwareConfig.properties_schema,
        "config": Property("map", "Configuration, as a map."),
    }


class SoftwareComponent(ConfigType):
    """A config for each of several actions."""

    type_name = "OS::Heat::SoftwareComponent"
    description = "A software component: scripts or manifests for the actions of a deployment."
    support_status = SupportStatus(version="2014.2")
    properties_schema = {
        "configs": Property(
            "list",
            "Configs, at most one for each action.",
            required=True,
            constraints=(Length(minimum=1),),
            schema=Property(
                "map",
                "Config.",
                schema={
                    "actions": Property(
                        "list",
                        "Actions that apply the config; agents may support more than Heat's.",
                        default=["CREATE", "UPDATE"],
                        constraints=(Length(minimum=1),),
                        schema=Property("string", "Action."),
                    ),
                    "config": Property("string", "Script or manifest."),
                    "tool": Property("string", _GROUP_TEXT, required=True),
                },
            ),
        ),
        "options": _OPTIONS,
        "inputs": _INPUTS,
        "outputs": _OUTPUTS,
    }
    attributes_schema = {"config": Attribute("Configs.", "string", from_property="configs")}

    def validate(self, properties: JsonMap) -> None:
        """Check the actions, and the inputs.

        :raises PropertyError: an action has two configs.
        """
        declared_inputs(properties.get("inputs") or [])
        names: set[str] = set()
        for index, config in enumerate(properties.get("configs") or ()):
            if not isinstance(config, Mapping) or not isinstance(config.get("actions"), list):
                continue
            for action in config["actions"]:
                if action in names:
                    text = f"Defining more than one configuration for the action {action} is not allowed"
                    raise PropertyError(text, ("configs", index, "actions"))
                names.add(action)

    def spec(self, target: ResourceView, context: StepContext) -> ConfigSpec:
        """Return the configs, for the agent's hook of components."""
        return _declared(target, "component", {"configs": target.properties["configs"]})

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"config": {"configs": target.properties["configs"]}}


class CloudConfig(ConfigType):
    """A config of cloud-init."""

    type_name = "OS::Heat::CloudConfig"
    description = "A cloud-config of cloud-init, written as YAML."
    support_status = SupportStatus(version="2014.1")
    properties_schema = {"cloud_config": Property("map", "Cloud-config of cloud-init.")}
    attributes_schema = {
        "config": Attribute("Cloud-config, as text.", "string", from_property="cloud_config")
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the config as YAML, under the key of its creation."""
        cloud_config = target.properties["cloud_config"]
        spec = ConfigSpec(target.physical_name, UNGROUPED, _cloud_config(cloud_config))
        context.software.create_config(target.key, spec, made_of=cloud_config)
        return Done(physical_id=target.key)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"config": _cloud_config(target.properties["cloud_config"])}


class MultipartMime(ConfigType):
    """Several configs as one message of MIME, which cloud-init takes apart."""

    type_name = "OS::Heat::MultipartMime"
    description = "A multipart MIME message of several configs, for cloud-init as user_data."
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "group": Property(
            "string", _GROUP_TEXT, default=UNGROUPED, support_status=SupportStatus(version="14.0.0")
        ),
        "parts": Property(
            "list",
            "Parts of the message.",
            default=[],
            schema=Property(
                "map",
                "Part.",
                schema={
                    "config": Property(
                        "string", "Content of the part, or the id of a software config.", required=True
                    ),
                    "filename": Property("string", "File name of the part."),
                    "type": Property(
                        "string",
                        "Part type: text, or a multipart message whose parts are included.",
                        default="text",
                        constraints=(AllowedValues(values=("text", "multipart")),),
                    ),
                    "subtype": Property(
                        "string",
                        "MIME subtype of a text part; by default the file name without its extension.",
                    ),
                },
            ),
        ),
    }
    attributes_schema = {"config": Attribute("Multipart message, as text.", "string", from_property="parts")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the message, under the key of its creation."""
        properties = target.properties
        parts = [{**item, "config": config_text(item["config"], context)} for item in properties["parts"]]
        message = mime_message(_mime_parts(parts), target.key)
        context.software.create_config(
            target.key, ConfigSpec(target.physical_name, properties["group"], message), made_of=parts
        )
        return Done(physical_id=target.key, data={"config": message})

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"config": target.data.get("config")}


def config_text(value: str, context: StepContext) -> str:
    """Return the text of the config that a value names by its id; a value that names none is the text."""
    try:
        uuid.UUID(value)
    except ValueError:
        return value
    spec = context.software.config(value)
    if spec is None:
        return value
    return spec.config if isinstance(spec.config, str) else json.dumps(spec.config)


def _mime_parts(parts: Iterable[JsonMap]) -> Iterator[email.message.Message]:
    for item in parts:
        if item["type"] == "multipart":
            yield from parts_of(item["config"])
        else:
            filename = item["filename"] or ""
            yield mime_part(item["config"], item["subtype"] or pathlib.PurePath(filename).stem, filename)


def _cloud_config(cloud_config: Json) -> str:
    return f"#cloud-config\n{yaml.safe_dump(cloud_config)}"


def _declared(target: ResourceView, group: str, config: Json) -> ConfigSpec:
    properties = target.properties
    return ConfigSpec(
        target.physical_name,
        group,
        config,
        declared_inputs(properties["inputs"] or []),
        declared_outputs(properties["outputs"] or []),
        properties["options"] or {},
    )
