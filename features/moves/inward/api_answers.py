"""Answers of Heat's Orchestration API as rows of one tree; pure."""

import datetime
import json
import re
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....shapes import Json, JsonMap
from ..heat.fields import HeatFields
from ..heat.rows import (
    ACTIONS,
    SECTIONS,
    STATUSES,
    HeatConfig,
    HeatDeployment,
    HeatEvent,
    HeatResource,
    HeatStack,
)
from ..heat.type_names import HANDLES, POLICIES, SERVERS, WORKFLOW
from .type_data import DEPLOYMENTS, HEAT_COLLECT_CONFIG

MASK = "******"
"""The text that Heat answers in the place of a hidden value."""
RESOURCE_GROUP = "OS::Heat::ResourceGroup"
REMOVED_MEMBERS = "removed_rsrc_list"
"""The attribute of a group that lists the members which are removed for good."""
DATA_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "OS::Heat::RandomString": {"value": "value"},
    "OS::Heat::TestResource": {"value": "output"},
    "AWS::IAM::AccessKey": {"secret_key": "SecretAccessKey"},
    "OS::Nova::KeyPair": {"private_key": "private_key"},
}
"""By type, the keys of Heat's data whose values attributes show, with the names of the attributes."""
_SIGNALLED = (*HANDLES, *POLICIES, *DEPLOYMENTS, WORKFLOW)
_PARTED = re.compile(r"(\d+)")


@dataclass(frozen=True)
class StackPath:
    """The address of a stack.

    :ivar name: the name, as in the address.
    """

    name: str
    id: str

    def __str__(self) -> str:
        return f"/stacks/{urllib.parse.quote(self.name, safe='')}/{self.id}"


def path_of_link(links: Iterable[JsonMap], relation: str) -> StackPath | None:
    """Return the address of the stack that a link leads to; None: there is no link of that relation."""
    for link in links:
        fields = fields_of(link, "a link")
        if fields.text_or_none("rel") == relation:
            _, _, below = urllib.parse.urlsplit(fields.text("href")).path.partition("/stacks/")
            name, _, behind = below.partition("/")
            stack_id = behind.partition("/")[0]
            if not name or not stack_id:
                raise fields.damaged("href", "leads to no stack")
            return StackPath(urllib.parse.unquote(name), stack_id)
    return None


def fields_of(answer: JsonMap, subject: str) -> HeatFields:
    """Return the fields of an item of an answer.

    :raises Damaged: it is no map.
    """
    fields = HeatFields({"item": answer}, lambda name: f"an answer of Heat, {name}", subject)
    return HeatFields(fields.map("item") or {}, lambda name: f"an answer of Heat, {name}", subject)


def _instant(fields: HeatFields, name: str) -> float | None:
    """Return the seconds since the epoch of a time such as ``2026-11-25T08:00:00Z``; None: there is none.

    :raises Damaged: it is no time.
    """
    text = fields.text_or_none(name)
    if not text:
        return None
    try:
        time = datetime.datetime.fromisoformat(text.removesuffix("Z"))
        return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise fields.damaged(name, "is not a time") from error


def _state(fields: HeatFields, name: str) -> tuple[str, str]:
    """Return the action and the status of a text such as ``CREATE_COMPLETE``.

    :raises Damaged: there is no such action, or no such status.
    """
    action, _, status = fields.text(name).partition("_")
    if action not in ACTIONS or status not in STATUSES:
        raise fields.damaged(name, "is not one that Heat has")
    return action, status


def stack_of(answer: JsonMap, project_id: str, template_id: int) -> HeatStack:
    """Return the stack of an answer of a list, or of one stack; still without resources and events.

    :param template_id: number that the tree has for its template.
    """
    fields = fields_of(answer, "a stack")
    action, status = _state(fields, "stack_status")
    tags = fields.list("tags")
    if not all(isinstance(tag, str) for tag in tags):
        raise fields.damaged("tags", "are not texts")
    return HeatStack(
        id=fields.text("id"),
        name=fields.text("stack_name"),
        project_id=project_id,
        action=action,
        status=status,
        reason=fields.text_or_empty("stack_status_reason"),
        created_at=_instant(fields, "creation_time") or 0.0,
        updated_at=_instant(fields, "updated_time"),
        template_id=template_id,
        username=fields.text_or_none("stack_owner"),
        owner_id=fields.text_or_none("parent"),
        timeout=fields.minutes("timeout_mins"),
        disable_rollback=bool(answer.get("disable_rollback", True)),
        user_project_id=fields.text_or_none("stack_user_project_id"),
        tags=tags,
    )


def in_order(rows: Iterable[JsonMap]) -> list[JsonMap]:
    """Return the resources of a stack in the order of their creation; those of one second by their names."""
    return sorted(rows, key=lambda row: (row.get("creation_time") or "", *_natural(row["resource_name"])))


def resource_of(
    row: JsonMap,
    place: tuple[str, int],
    *,
    metadata: JsonMap,
    attributes: JsonMap,
    data: Mapping[str, str],
) -> HeatResource:
    """Return a resource of a list.

    :param place: id of its stack, and a number that no other resource of the tree has.
    :param data: values that Heat's type has stored, as far as Heat shows them.
    """
    fields = fields_of(row, "a resource")
    name = fields.text("resource_name")
    action, status = _state(fields, "resource_status")
    stack_id, number = place
    created_at = _instant(fields, "creation_time") or 0.0
    return HeatResource(
        id=number,
        uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{stack_id}/{name}")),
        stack_id=stack_id,
        name=name,
        action=action,
        status=status,
        reason=fields.text_or_empty("resource_status_reason"),
        created_at=created_at,
        updated_at=_instant(fields, "updated_time") or created_at,
        physical_id=fields.text_or_none("physical_resource_id") or None,
        metadata=metadata,
        attributes=attributes,
        data=data,
    )


def event_of(answer: JsonMap, stack_id: str, resource_type: str) -> HeatEvent:
    """Return an event of a list, which does not name the resource's type."""
    fields = fields_of(answer, "an event")
    action, _, status = fields.text("resource_status").partition("_")
    return HeatEvent(
        uuid=fields.text("id"),
        stack_id=stack_id,
        resource_name=fields.text("resource_name"),
        resource_type=resource_type,
        physical_id=fields.text_or_none("physical_resource_id"),
        action=action,
        status=status,
        reason=fields.text_or_empty("resource_status_reason"),
        at=_instant(fields, "event_time") or 0.0,
    )


def config_of(answer: JsonMap, project_id: str) -> HeatConfig:
    """Return a software config."""
    fields = fields_of(answer, "a software config")
    config = {key: answer.get(key) for key in ("config", "inputs", "outputs", "options")}
    for key in ("inputs", "outputs"):
        if not all(isinstance(item, dict) for item in fields.list(key)):
            raise fields.damaged(key, "are not maps")
    fields.map("options")
    return HeatConfig(
        id=fields.text("id"),
        project_id=project_id,
        name=fields.text_or_none("name"),
        group=fields.text_or_none("group"),
        config=config,
        created_at=_instant(fields, "creation_time") or 0.0,
    )


def deployment_of(answer: JsonMap, project_id: str) -> HeatDeployment:
    """Return a software deployment."""
    fields = fields_of(answer, "a software deployment")
    return HeatDeployment(
        id=fields.text("id"),
        project_id=project_id,
        config_id=fields.text("config_id"),
        server_id=fields.text("server_id"),
        action=fields.text_or_none("action"),
        status=fields.text_or_none("status"),
        reason=fields.text_or_empty("status_reason"),
        created_at=_instant(fields, "creation_time") or 0.0,
        updated_at=_instant(fields, "updated_time"),
        input_values=fields.map("input_values"),
        output_values=fields.map("output_values"),
    )


def referred_attributes(template: JsonMap) -> dict[str, set[str]]:
    """Return the names of the attributes to which a template refers, by resource.

    A name that a function computes is not among them; nor is a reference to all attributes.
    """
    names: dict[str, set[str]] = {}
    for arguments in _references(template):
        resource, attribute = arguments[:2]
        if isinstance(resource, str) and isinstance(attribute, str):
            names.setdefault(resource, set()).add(attribute)
    return names


def stored_data(type_name: str, exported: Mapping[str, str], attributes: JsonMap) -> dict[str, str]:
    """Return the data of a resource: as exported, or else as far as attributes show it.

    :param exported: the data in Heat's export; empty: there is none.
    """
    data = dict(exported)
    for key, attribute in DATA_ATTRIBUTES.get(type_name, {}).items():
        value = attributes.get(attribute)
        if key not in data and value is not None:
            data[key] = str(value)
    if type_name == RESOURCE_GROUP and (removed := attributes.get(REMOVED_MEMBERS)):
        members = json.loads(removed) if isinstance(removed, str) else removed
        data["name_blacklist"] = ",".join(map(str, members))
    return data


def losses_of(row: JsonMap, definition: JsonMap, metadata: JsonMap) -> Iterator[str]:
    """Yield what a resource loses where Heat exports no data of it.

    :param definition: its definition in the template.
    """
    name = row["resource_name"]
    if row["resource_type"] in _SIGNALLED:
        yield f"{name}: its addresses for signals are new ones: give them to those that signal"
    if row["resource_type"] not in SERVERS:
        return
    if HEAT_COLLECT_CONFIG in metadata:
        yield f"{name}: its guest's keys are not taken over: its guest needs the new os_collect_config"
    networks = (definition.get("properties") or {}).get("networks")
    if not isinstance(networks, list) or not all("port" in item for item in networks if item):
        yield f"{name}: ports that Heat has made for it, if any, stay when it is deleted"


def masked_parameters(environment: JsonMap) -> list[str]:
    """Return the names of the parameters whose values are masked."""
    sections = [environment.get(name) or {} for name in ("parameters", "parameter_defaults")]
    return sorted({name for section in sections for name, value in section.items() if value == MASK})


def filled(environment: JsonMap, values: JsonMap) -> dict[str, Json]:
    """Return an environment with values in the place of masks."""
    document = {name: environment[name] for name in SECTIONS if environment.get(name)}
    for section in ("parameters", "parameter_defaults"):
        items = document.get(section)
        if items:
            document[section] = {
                name: values.get(name, value) if value == MASK else value for name, value in items.items()
            }
    return document


def _references(value: Json) -> Iterator[list[Json]]:
    """Yield the arguments of all references to attributes."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            arguments = item.split(".", 1) if key == "Fn::GetAtt" and isinstance(item, str) else item
            if key in ("get_attr", "Fn::GetAtt") and isinstance(arguments, list) and len(arguments) > 1:
                yield arguments
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names with numbers in them by those numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _PARTED.split(name)]
