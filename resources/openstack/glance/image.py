"""OS::Glance::WebImage: an image that the service fetches from the web."""

import contextlib
from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedPattern, AllowedValues, Range
from ...contract import (
    Attribute,
    CloudCalls,
    Done,
    PermanentError,
    Poll,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ...heat.none import NoneResource
from ..bodies import texts
from ..declared import REMOTE, DeclaredType
from ..marks import MARK_NAME, chosen_id, mark_of
from ..polling import FIRST_PAUSE
from ..service import Conflict, RemoteNotFound
from ..statuses import StatusMeaning

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
UUID = AllowedPattern(
    pattern="^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$"
)
MATCHING = ("ami", "ari", "aki")
"""Formats of disks that are also formats of containers."""
FAILED_IMPORT = "os_glance_failed_import"
"""Field with the stores into which the data could not be brought; the image then stays queued."""


class WebImage(DeclaredType):
    """An image whose data the service fetches; its id is chosen here, so that it is its own mark."""

    type_name = "OS::Glance::WebImage"
    support_status = SupportStatus(version="12.0.0")
    description = "An image whose data the image service imports from a URL."
    service = "image"
    project_filter = "owner"
    path = "/images"
    item = ""
    items = "images"
    mark = None
    identity = "the id, which Stoker chooses where ``id`` names none"
    status = StatusMeaning(
        pending=("QUEUED", "SAVING", "IMPORTING", "UPLOADING"), bad=("KILLED",), deleted=("DELETED",)
    )
    apart = ("location", "extra_properties", "members", "active")
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "id": Property("string", "Id of the image, a UUID; if omitted, generated."),
        "visibility": Property(
            "string",
            "Visibility.",
            default="private",
            update_allowed=True,
            constraints=(AllowedValues(values=("public", "private", "community", "shared")),),
        ),
        "protected": Property("boolean", "Deletion protection.", default=False, update_allowed=True),
        "min_disk": Property(
            "integer", "Minimum disk size of a server, in GiB.", default=0, constraints=(Range(minimum=0),)
        ),
        "min_ram": Property(
            "integer", "Minimum memory of a server, in MiB.", default=0, constraints=(Range(minimum=0),)
        ),
        "architecture": Property("string", "CPU architecture of the operating system.", update_allowed=True),
        "kernel_id": Property("string", "Id of the kernel image.", update_allowed=True, constraints=(UUID,)),
        "os_distro": Property("string", "Operating system distribution.", update_allowed=True),
        "os_version": Property("string", "Operating system version.", update_allowed=True),
        "owner": Property("string", "Id of the owning project.", update_allowed=True),
        "ramdisk_id": Property(
            "string", "Id of the RAM disk image.", update_allowed=True, constraints=(UUID,)
        ),
        "disk_format": Property(
            "string",
            "Disk format.",
            required=True,
            constraints=(
                AllowedValues(
                    values=(
                        *("ami", "ari", "aki", "vhd", "vhdx", "vmdk"),
                        *("raw", "qcow2", "vdi", "iso", "ploop"),
                    )
                ),
            ),
        ),
        "container_format": Property(
            "string",
            "Container format.",
            required=True,
            constraints=(AllowedValues(values=("ami", "ari", "aki", "bare", "ovf", "ova", "docker")),),
        ),
        "location": Property("string", "URL of the image data, with http or https.", required=True),
        "tags": Property("list", "Tags.", update_allowed=True),
        "extra_properties": Property("map", "Additional properties.", default={}, update_allowed=True),
        "members": Property(
            "list",
            "Ids of the member projects, which have access to the image.",
            update_allowed=True,
            schema=Property("string", "Id of a project."),
        ),
        "active": Property(
            "boolean",
            "Activation: true reactivates, false deactivates the image.",
            default=True,
            update_allowed=True,
        ),
    }
    attributes_schema = {"show": Attribute("All fields, as the service's API returns them.", "map")}

    def validate(self, properties: JsonMap) -> None:
        """Check that the formats match, and that projects are named for a shared image only."""
        container = properties.get("container_format")
        if container in MATCHING and properties.get("disk_format", container) != container:
            text = f"disk_format must be {container}, too, where container_format is {container}"
            raise PropertyError(text, ("disk_format",))
        if properties.get("members") and properties.get("visibility", "shared") != "shared":
            raise PropertyError("members can be given only where visibility is shared", ("members",))

    # -- creation ----------------------------------------------------------------------------------

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new image; one whose id the template chooses gets a mark."""
        body = super().create_body(target, context)
        body.setdefault("name", target.physical_name)
        chosen = target.properties["id"]
        extra = texts(target.properties["extra_properties"])
        if chosen:
            extra[MARK_NAME] = mark_of(target.key)
        return {**body, "id": chosen or chosen_id(target.key), **extra}

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id, if it is there, and was not somebody else's."""
        chosen = target.properties["id"]
        try:
            image = self.get(self.service_for(context), chosen or chosen_id(key))
        except RemoteNotFound:
            return None
        return str(image["id"]) if not chosen or image.get(MARK_NAME) == mark_of(key) else None

    def has_more(self, target: ResourceView) -> bool:
        """Return True: its data have to be fetched."""
        return True

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Let the service fetch the data, unless it does already."""
        service = self.service_for(context)
        for member in target.properties["members"] or ():
            self._add_member(target, member, context)
        image = self.get(service, self.id_of(target))
        if image["status"] == "queued" and not image.get("os_glance_importing_to_stores"):
            method = {"name": "web-download", "uri": target.properties["location"]}
            with contextlib.suppress(Conflict):  # An earlier step has started it a moment ago.
                service.post(f"{self.path_of(target)}/import", {"method": method})

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Start the import; poll until the data are there; deactivate the image if it is to be inactive.

        :raises PermanentError: the service could not fetch the image's data.
        """
        if progress.get("more"):
            self.after_create(target, context)
            return Poll(progress={"since": context.now()}, after=FIRST_PAUSE)
        image = self._look(target, progress["since"], context)
        if image is not None and (failed := image.get(FAILED_IMPORT)):
            why = self._import_error(target, context) or f"stores: {failed}"
            text = f"The service could not fetch {target.properties['location']}: {why}"
            raise PermanentError(text, kind="ResourceInError")
        step = self._wait(image, progress["since"], target, context)
        if isinstance(step, Done) and not target.properties["active"]:
            self.service_for(context).post(f"{self.path_of(target)}/actions/deactivate", None)
            return self._done(target, context)
        return step

    # -- changes -----------------------------------------------------------------------------------

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Change fields by a JSON patch, members and activity by calls of their own.

        The service has members of shared images only, so they come behind or before the visibility.
        """
        service = self.service_for(context)
        is_shared = target.properties["visibility"] == "shared"
        image = self.get(service, self.id_of(target))
        if "members" in changed and not is_shared and image["visibility"] == "shared":
            self._set_members(target, context)
        patch = self._patch(target, changed, image)
        if patch:
            service.patch(self.path_of(target), patch, Content_Type=PATCH_TYPE)
        if "members" in changed and is_shared:
            self._set_members(target, context)
        if "active" in changed:
            action = "reactivate" if target.properties["active"] else "deactivate"
            service.post(f"{self.path_of(target)}/actions/{action}", None)
        return self._done(target, context)

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; tags have no order."""
        live = dict(super().reported_properties(target, remote, context))
        tags = target.properties["tags"]
        if tags is not None and sorted(live["tags"]) == sorted({*tags}):
            live["tags"] = tags
        return live

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the service's answer without our mark."""
        image = target.data.get(REMOTE) or {}
        return {"show": {name: value for name, value in image.items() if name != MARK_NAME}}

    def _done(self, target: ResourceView, context: StepContext) -> Done:
        """Return the end of an action, with the image as it is now."""
        return Done(data=self._data(self.get(self.service_for(context), self.id_of(target)), target))

    def _patch(self, target: ResourceView, changed: Collection[str], image: JsonMap) -> list[dict[str, Json]]:
        """Return the operations that bring the fields of the image to the properties."""
        properties = {name: target.properties[name] for name in changed if name not in self.apart}
        if "tags" in changed:
            properties["tags"] = target.properties["tags"] or []
        if "extra_properties" in changed:
            before = target.previous.get("extra_properties") or {}
            properties |= dict.fromkeys(before)
            properties |= texts(target.properties["extra_properties"])
        operations = []
        for name, value in sorted(properties.items()):
            path = "/" + name.replace("~", "~0").replace("/", "~1")
            if value is None and name in image:
                operations.append({"op": "remove", "path": path})
            elif value is not None:
                operations.append({"op": "replace" if name in image else "add", "path": path, "value": value})
        return operations

    def _import_error(self, target: ResourceView, context: StepContext) -> str:
        """Return the service's message about the last import that failed, if it says so."""
        tasks = self.service_for(context).get(f"{self.path_of(target)}/tasks")["tasks"]
        failed = [task for task in tasks if task["status"] == "failure"]
        return str(max(failed, key=lambda task: str(task["updated_at"]))["message"]) if failed else ""

    def _set_members(self, target: ResourceView, context: StepContext) -> None:
        service = self.service_for(context)
        path = f"{self.path_of(target)}/members"
        present = {item["member_id"] for item in service.get(path)["members"]}
        members = set(target.properties["members"] or ())
        for member in sorted(members - present):
            self._add_member(target, member, context)
        for member in sorted(present - members):
            service.delete(f"{path}/{member}")

    def _add_member(self, target: ResourceView, member: str, context: StepContext) -> None:
        try:
            self.service_for(context).post(f"{self.path_of(target)}/members", {"member": member})
        except Conflict:
            return  # An earlier step has added it.


class Image(NoneResource):
    """The image type for a version of the service that is gone; it makes nothing, as in Heat."""

    type_name = "OS::Glance::Image"
    description = "No image: the version 1 of the image API that it needs was removed."
    support_status = SupportStatus("HIDDEN", message="Use OS::Glance::WebImage.", version="22.0.0")
