"""OS::Zaqar::Queue and OS::Zaqar::SignedQueueURL: queues of messages, and addresses of them."""

import datetime
import urllib.parse
import uuid

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Length
from ...contract import (
    Attribute,
    Done,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    physical_name,
)
from ..marks import MARK_NAME, mark_of
from ..names import quoted
from ..service import Conflict, Service, service_of

MESSAGES = "message"
"""The type of the service in the service catalog."""
JSON_PATCH = "application/openstack-messaging-v2.0-json-patch"
HREF = "href"
METADATA = "metadata"


def queues_of(context: StepContext) -> Service:
    """Return the calls of the service, which wants to know one client from another."""
    client = uuid.uuid5(uuid.NAMESPACE_URL, str(context.session().get_project_id()))
    return service_of(context, MESSAGES, headers={"Client-ID": str(client)})


class Queue(ResourceType):
    """A queue; the service shows any name as an empty queue, so the list is searched."""

    type_name = "OS::Zaqar::Queue"
    support_status = SupportStatus(version="2014.2")
    description = "A queue of messages."
    uses_credentials = True
    service = MESSAGES
    identity = "the name, and the entry ``stoker`` of its metadata"
    properties_schema = {
        "name": Property(
            "string",
            "Name; if omitted, generated from the names of the stack and the resource.",
            constraints=(Length(maximum=64),),
        ),
        METADATA: Property("map", "Metadata.", update_allowed=True),
    }
    attributes_schema = {HREF: Attribute("URL of the queue.")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the queue, unless somebody else has one of this name.

        :raises Conflict: somebody else has one.
        """
        service = queues_of(context)
        name = target.physical_id or _name(target, target.key)
        present = _metadata(service, name)
        mark = mark_of(target.creation_key or target.key)
        if present is not None and present.get(MARK_NAME) != mark:
            raise Conflict(f"message: another queue has the name {name}")
        if present is None:
            service.put(_path(name), {**(target.properties[METADATA] or {}), MARK_NAME: mark})
        return Done(physical_id=name, data={HREF: f"{service.address()}{_path(name)}"})

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Change the metadata."""
        service = queues_of(context)
        path = _path(str(target.physical_id))
        before = {name: value for name, value in service.get(path).items() if not name.startswith("_")}
        after = target.properties[METADATA] or {}
        patch = [
            {"op": "replace" if name in before else "add", "path": f"/metadata/{name}", "value": value}
            for name, value in after.items()
            if before.get(name) != value
        ]
        patch += [
            {"op": "remove", "path": f"/metadata/{name}"}
            for name in before
            if name not in after and name != MARK_NAME
        ]
        if patch:
            service.patch(path, patch, Content_Type=JSON_PATCH)
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the queue; the service deletes also what is not there."""
        if target.physical_id is not None:
            queues_of(context).delete(_path(target.physical_id))
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the name, if the queue that has it has the mark, too."""
        name = _name(target, key)
        present = _metadata(queues_of(context), name) or {}
        return name if present.get(MARK_NAME) == mark_of(key) else None

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the present metadata."""
        present = queues_of(context).get(_path(str(target.physical_id)))
        return {METADATA: {k: v for k, v in present.items() if not k.startswith("_") and k != MARK_NAME}}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the address."""
        return {HREF: target.data.get(HREF), "show": {METADATA: target.properties[METADATA] or {}}}


class SignedQueueURL(ResourceType):
    """The parts of an address with which anybody can use a queue for a while."""

    type_name = "OS::Zaqar::SignedQueueURL"
    support_status = SupportStatus(version="8.0.0")
    description = "A signed URL: temporary access to a queue without a token."
    uses_credentials = True
    service = MESSAGES
    identity = "nothing is made"
    properties_schema = {
        "queue": Property("string", "Name of the queue.", required=True),
        "paths": Property("list", "Paths of the queue that may be used; if omitted, messages."),
        "ttl": Property("integer", "Time to live of the signature, in seconds; if omitted, one day."),
        "methods": Property(
            "list",
            "HTTP methods that may be used; if omitted, GET.",
            schema=Property(
                "string",
                "HTTP method.",
                constraints=(AllowedValues(values=("GET", "DELETE", "PATCH", "POST", "PUT")),),
            ),
        ),
    }
    attributes_schema = {
        "signature": Attribute("Signature.", sensitive=True),
        "expires": Attribute("Expiry time."),
        "paths": Attribute("Paths that may be used."),
        "methods": Attribute("HTTP methods that may be used."),
        "project": Attribute("Id of the project."),
        "query_str": Attribute("Query string with all values of the signature.", sensitive=True),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Have the service sign; to repeat it makes nothing."""
        properties = target.properties
        body = {name: properties[name] for name in ("paths", "methods") if properties[name]}
        if properties["ttl"]:
            moment = datetime.datetime.fromtimestamp(context.now() + properties["ttl"], datetime.UTC)
            body["expires"] = moment.strftime("%Y-%m-%dT%H:%M:%S")
        signed = queues_of(context).post(f"{_path(properties['queue'])}/share", body)
        names = ("signature", "expires", "paths", "methods", "project")
        data = {name: signed[name] for name in names}
        return Done(physical_id=target.physical_id or target.physical_name, data=data)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the parts, and all of them as a query."""
        data = target.data
        query = {
            "signature": data.get("signature"),
            "expires": data.get("expires"),
            "paths": ",".join(data.get("paths") or ()),
            "methods": ",".join(data.get("methods") or ()),
            "project_id": data.get("project"),
            "queue_name": target.properties["queue"],
        }
        return {**data, "query_str": urllib.parse.urlencode(query)}


def _name(target: ResourceView, key: str) -> str:
    """Return the name of the queue that the creation with this key makes; the service takes 64 characters."""
    name = target.properties["name"]
    return str(name) if name else physical_name(target.stack.name, target.name, key)[-64:]


def _path(name: str) -> str:
    return f"/queues/{quoted(name)}"


def _metadata(service: Service, name: str) -> JsonMap | None:
    """Return the metadata of a queue; None: there is none of this name."""
    listed: list[Json] = service.get("/queues", name=name)["queues"]
    if name not in [entry["name"] for entry in listed]:
        return None
    metadata: JsonMap = service.get(_path(name))
    return metadata
