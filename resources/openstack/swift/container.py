"""OS::Swift::Container and AWS::S3::Bucket: containers of the object storage service."""

import typing
import urllib.parse
import uuid
from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues
from ...contract import (
    Attribute,
    Done,
    PermanentError,
    Poll,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    physical_name,
)
from ..declared import REMOTE
from ..marks import mark_of
from ..names import quoted
from ..polling import STEADY_PAUSE
from ..service import Conflict, RemoteNotFound, Service, service_of
from ..translated import pairs

META = "x-container-meta-"
MARK = f"{META}stoker"
"""Header with the mark, and before it an id that stands for the name of the resource in its stack."""
URL = "url"
BATCH = 100
"""Objects that one step deletes."""


class StoredContainer(ResourceType):
    """Base of the two types.

    A PUT creates a container or changes its headers.  So the container is searched for first: one without the
    mark belongs to somebody else.  One that carries the mark of the same resource is that of the resource's
    predecessor, which had the same name: the replacement takes it over with what is in it, and the deletion
    of the predecessor leaves it.
    """

    uses_credentials = True
    service = "object-store"
    identity = "the name, and the header ``X-Container-Meta-Stoker``"

    def name_of(self, target: ResourceView, key: str) -> str:
        """Return the name of the container that the creation with this key makes."""
        name = target.properties.get("name")
        return str(name) if name else physical_name(target.stack.name, target.name, key)

    def headers(self, target: ResourceView, context: StepContext) -> Mapping[str, str]:
        """Return the headers that the template gives the container."""
        raise NotImplementedError

    def after_create(self, target: ResourceView, service: Service) -> None:
        """Make what the container needs in further calls; may be repeated."""

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the container, unless somebody else has one of this name.

        :raises Conflict: somebody else has one.
        """
        service = service_of(context, self.service)
        name = target.physical_id or self.name_of(target, target.key)
        present = _head(service, name)
        if present is not None and not _is_of_resource(present, target):
            raise Conflict(f"object-store: another container has the name {name}")
        self._put(name, target, present or {}, context)
        self.after_create(target, service)
        return self._done(name, service)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the container, unless the replacement has taken it over."""
        replacement = context.replacement()
        if target.physical_id is None or (replacement and replacement.physical_id == target.physical_id):
            return Done()
        return self._delete(target, service_of(context, self.service), context)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Delete more objects, and finally the container."""
        return self._delete(target, service_of(context, self.service), context)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the container is there.

        :raises RemoteNotFound: the container is gone.
        """
        return self._done(str(target.physical_id), service_of(context, self.service))

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the name, if the container that has it carries the mark of the creation."""
        name = self.name_of(target, key)
        present = _head(service_of(context, self.service), name) or {}
        return name if present.get(MARK, "").endswith(mark_of(key)) else None

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the container is gone."""
        if target.physical_id is None:
            return True
        return _head(service_of(context, self.service), target.physical_id) is None

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> None:
        """Give the container its own headers again, if the replacement has taken it over."""
        if target.physical_id is None:
            return
        present = _head(service_of(context, self.service), target.physical_id)
        if present is not None and _is_of_resource(present, target):
            self._put(target.physical_id, target, present, context)

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        service = service_of(context, self.service)
        return {**target.data, REMOTE: _shown(service.head(_path(str(target.physical_id))))}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return addresses, and the headers that the service reports."""
        url = str(target.data.get(URL) or "")
        return {
            "DomainName": urllib.parse.urlsplit(url).hostname,
            "WebsiteURL": f"{url}/{target.physical_id}",
            "show": target.data.get(REMOTE) or {},
        }

    def refuse_objects(self, target: ResourceView) -> None:
        """Refuse to delete the objects of a container.

        :raises PermanentError: they are not to be deleted.
        """
        raise NotImplementedError

    def _put(self, name: str, target: ResourceView, present: Mapping[str, str], context: StepContext) -> None:
        """Create the container or change its headers; entries that the template does not have are removed."""
        headers = {key.lower(): value for key, value in self.headers(target, context).items()}
        key = target.creation_key or target.key
        wanted = {**headers, MARK: f"{_resource(target)}{mark_of(key)}"}
        stale = {key: "" for key in present if key.startswith(META) and key not in wanted}
        service_of(context, self.service).set_headers(_path(name), {**stale, **wanted}, creates=True)

    def _done(self, name: str, service: Service) -> Step:
        data = {URL: service.address(), REMOTE: _shown(service.head(_path(name)))}
        return Done(physical_id=name, data=data)

    def _delete(self, target: ResourceView, service: Service, context: StepContext) -> Step:
        path = _path(str(target.physical_id))
        try:
            objects = service.get(path, format="json", limit=BATCH) or []
            if objects:
                self.refuse_objects(target)
            for entry in objects:
                context.checkpoint()
                _delete_object(service, f"{path}/{urllib.parse.quote(entry['name'])}")
            if len(objects) < BATCH:
                service.delete(path)
                return Done()
        except RemoteNotFound:
            return Done()
        except Conflict:  # The list of objects is late, or somebody has added some.
            return Poll(progress={}, after=STEADY_PAUSE)
        return Poll(progress={}, after=0.0)


class SwiftContainer(StoredContainer):
    """A container."""

    type_name = "OS::Swift::Container"
    description = "A container of objects."
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "X-Container-Read": Property("string", "Read access control list (ACL) of the container."),
        "X-Container-Write": Property("string", "Write access control list (ACL) of the container."),
        "X-Container-Meta": Property(
            "map", "Container metadata: headers ``X-Container-Meta-KEY``.", default={}
        ),
        "X-Account-Meta": Property(
            "map",
            "Account metadata: headers ``X-Account-Meta-KEY``; kept when the container is deleted.",
            default={},
        ),
        "PurgeOnDelete": Property(
            "boolean",
            "Deletion of all objects with the container; otherwise only an empty container is deleted.",
            default=False,
            support_status=SupportStatus(version="2015.1"),
        ),
    }
    attributes_schema = {
        "DomainName": Attribute("Host name of the container's URL.", "string"),
        "WebsiteURL": Attribute("URL of the container.", "string"),
        "RootURL": Attribute("URL of the account.", "string"),
        "ObjectCount": Attribute("Number of objects.", "integer", volatile=True),
        "BytesUsed": Attribute("Total size of the objects, in bytes.", "integer", volatile=True),
        "HeadContainer": Attribute("All headers of the container.", "map", volatile=True),
    }

    def headers(self, target: ResourceView, context: StepContext) -> Mapping[str, str]:
        """Return access lists and metadata."""
        properties = target.properties
        lists = {name: properties[name] for name in ("X-Container-Read", "X-Container-Write")}
        metadata = {
            f"{META}{key}": str(value) for key, value in (properties["X-Container-Meta"] or {}).items()
        }
        return {**metadata, **{name: value for name, value in lists.items() if value is not None}}

    def after_create(self, target: ResourceView, service: Service) -> None:
        """Set the metadata of the account."""
        entries = target.properties["X-Account-Meta"] or {}
        if entries:
            service.set_headers("", {f"X-Account-Meta-{key}": str(value) for key, value in entries.items()})

    def refuse_objects(self, target: ResourceView) -> None:
        """Refuse to delete objects, unless `PurgeOnDelete` is true.

        :raises PermanentError: it is false.
        """
        if not target.properties["PurgeOnDelete"]:
            text = f"Deleting non-empty container ({target.physical_id}) when PurgeOnDelete is False"
            raise _not_supported(text)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return addresses, numbers and headers."""
        headers = target.data.get(REMOTE) or {}
        return {
            **super().attribute_values(target),
            "RootURL": target.data.get(URL),
            "ObjectCount": int(headers.get("x-container-object-count") or 0),
            "BytesUsed": int(headers.get("x-container-bytes-used") or 0),
            "HeadContainer": headers,
        }


class Bucket(StoredContainer):
    """A container under the names of CloudFormation."""

    type_name = "AWS::S3::Bucket"
    description = "A container of objects, under the names of CloudFormation."
    properties_schema = {
        "AccessControl": Property(
            "string",
            "Canned access control list; if omitted, only the stack's user has access.",
            constraints=(
                AllowedValues(
                    values=(
                        *("Private", "PublicRead", "PublicReadWrite", "AuthenticatedRead"),
                        *("BucketOwnerRead", "BucketOwnerFullControl"),
                    )
                ),
            ),
        ),
        "WebsiteConfiguration": Property(
            "map",
            "Static website, shown by Swift's static web middleware.",
            schema={
                "IndexDocument": Property("string", "Name of the index page."),
                "ErrorDocument": Property("string", "Suffix of the names of the error pages."),
            },
        ),
        "Tags": pairs("Container metadata: headers ``X-Container-Meta-S3-Tag-KEY``."),
    }
    attributes_schema = {
        "DomainName": Attribute("Host name of the container's URL.", "string"),
        "WebsiteURL": Attribute("URL of the container.", "string"),
    }

    def headers(self, target: ResourceView, context: StepContext) -> Mapping[str, str]:
        """Return access lists and metadata; users are named by their ids, which no domain makes ambiguous."""
        properties = target.properties
        headers = {f"{META}s3-tag-{entry['Key']}": entry["Value"] for entry in properties["Tags"] or ()}
        for name, key in (("index", "IndexDocument"), ("error", "ErrorDocument")):
            if document := (properties["WebsiteConfiguration"] or {}).get(key):
                headers[f"{META}web-{name}"] = document
        access = properties["AccessControl"]
        session = context.session()
        project = session.get_project_id()
        owner = f"{project}:{session.get_user_id()}"
        readers = {"AuthenticatedRead": f"{project}:*"}
        readers |= dict.fromkeys(("PublicRead", "PublicReadWrite"), ".r:*")
        headers["x-container-read"] = readers.get(access, owner)
        # Swift lets nobody write whom it does not know: all users are the most that can be.
        headers["x-container-write"] = "*:*" if access == "PublicReadWrite" else owner
        return headers

    def refuse_objects(self, target: ResourceView) -> None:
        """Refuse to delete objects.

        :raises PermanentError: always.
        """
        raise _not_supported(f"The bucket you tried to delete is not empty ({target.physical_id}).")


def _not_supported(text: str) -> PermanentError:
    return PermanentError(f"{text} is not supported for resource.", kind="ResourceActionNotSupported")


def _path(name: str) -> str:
    return f"/{quoted(name)}"


def _head(service: Service, name: str) -> Mapping[str, str] | None:
    try:
        return service.head(_path(name))
    except RemoteNotFound:
        return None


def _delete_object(service: Service, path: str) -> None:
    try:
        service.delete(path)
    except RemoteNotFound:
        return  # Somebody else has deleted it.


def _resource(target: ResourceView) -> str:
    """Return the part of a mark that a resource has in common with what replaces it."""
    return f"{uuid.uuid5(uuid.NAMESPACE_URL, f'{target.stack.id}/{target.name}')}/"


def _is_of_resource(headers: Mapping[str, str], target: ResourceView) -> bool:
    return headers.get(MARK, "").startswith(_resource(target))


def _shown(headers: Mapping[str, str]) -> dict[str, typing.Any]:
    return {name: value for name, value in headers.items() if name != MARK}
