"""OS::Manila::Share: a file system that several clients use at once."""

import dataclasses
from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...contract import Attribute, CloudCalls, Done, Poll, Property, ResourceView, Step, StepContext
from ..bodies import NamedRemote, texts
from ..declared import REMOTE
from ..marks import MARK_NAME, MetadataMark
from ..polling import pause
from ..service import object_of, objects_of
from ..statuses import StatusMeaning
from .base import ManilaType, as_in_template
from .share_access import AccessRules

RULES = "access_rules"
LOCATIONS = "export_locations"
MESSAGE = "user_message"
"""The field of a bad share that says why; the service keeps it apart."""
STATUS = StatusMeaning(
    pending=(
        *("CREATING", "CREATING_FROM_SNAPSHOT", "DELETING", "EXTENDING", "SHRINKING", "REVERTING"),
        *("MANAGE_STARTING", "MIGRATING", "MIGRATING_TO", "SERVER_MIGRATING", "REPLICATION_CHANGE"),
        *("BACKUP_CREATING", "BACKUP_RESTORING", "AWAITING_TRANSFER", "NETWORK_CHANGE", "ENSURING"),
    ),
    bad=(
        *("ERROR", "ERROR_DELETING", "EXTENDING_ERROR", "SHRINKING_ERROR", "REVERTING_ERROR"),
        *("SHRINKING_POSSIBLE_DATA_LOSS_ERROR", "MANAGE_ERROR", "BACKUP_RESTORING_ERROR"),
    ),
)
CHANGED_AS = {"name": "display_name", "description": "display_description", "is_public": "is_public"}
"""The fields of a change, which has other names for them than a creation."""
RULE = Property(
    "map",
    "Access rule.",
    schema={
        "access_to": Property("string", "Address, user or name that gets access.", required=True),
        "access_type": Property(
            "string",
            "Access type: meaning of access_to.",
            required=True,
            constraints=(AllowedValues(values=("ip", "user", "cert", "cephx")),),
        ),
        "access_level": Property(
            "string",
            "Access level: ro (read-only) or rw (read and write); if omitted, rw.",
            constraints=(AllowedValues(values=("ro", "rw")),),
        ),
    },
)


class ManilaShare(ManilaType):
    """A share."""

    type_name = "OS::Manila::Share"
    description = "A share: a file system for several clients."
    path = "/shares"
    item = "share"
    quota = {"shares": 1, "gigabytes": "size"}
    lost_with_it = "its data go"
    list_path = "/shares/detail"
    mark = MetadataMark()
    slow_delete = True
    status = STATUS
    references = {
        "snapshot": NamedRemote("manila.share_snapshot"),
        "share_network": NamedRemote("manila.share_network"),
        "share_type": NamedRemote("manila.share_type", "share_type"),
    }
    renamed = {"share_protocol": "share_proto"}
    apart = (RULES,)
    properties_schema = {
        "share_protocol": Property(
            "string",
            "Shared file system protocol.",
            required=True,
            constraints=(AllowedValues(values=("NFS", "CIFS", "GlusterFS", "HDFS", "CEPHFS")),),
        ),
        "size": Property("integer", "Size, in GiB.", required=True),
        "snapshot": Property(
            "string",
            "Name or id of the snapshot that the share is created from.",
            constraints=(Custom(check_name="manila.share_snapshot"),),
        ),
        "name": Property("string", "Name.", update_allowed=True),
        "metadata": Property("map", "Metadata.", update_allowed=True),
        "share_network": Property(
            "string",
            "Name or id of the share network.",
            constraints=(Custom(check_name="manila.share_network"),),
        ),
        "description": Property("string", "Description.", update_allowed=True),
        "share_type": Property(
            "string", "Name or id of the share type.", constraints=(Custom(check_name="manila.share_type"),)
        ),
        "is_public": Property(
            "boolean",
            "Public visibility: true shows the share to all projects.",
            default=False,
            update_allowed=True,
        ),
        RULES: Property("list", "Access rules.", default=[], update_allowed=True, schema=RULE),
    }
    attributes_schema = {
        "availability_zone": Attribute("Availability zone.", "string"),
        "host": Attribute("Host of the share; for administrators.", "string"),
        LOCATIONS: Attribute("Export locations, for mounting the share.", "list"),
        "share_server_id": Attribute("Id of the share server; for administrators.", "string"),
        "created_at": Attribute("Time of creation.", "string"),
        "status": Attribute("Status.", "string"),
        "project_id": Attribute("Id of the project.", "string"),
    }

    # -- creation and update -----------------------------------------------------------------------

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return {**super().create_body(target, context), "metadata": texts(target.properties["metadata"])}

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has access rules, which the service takes once it is available."""
        return bool(target.properties[RULES])

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        return {CHANGED_AS[name]: target.properties[name] for name in sorted(CHANGED_AS.keys() & changed)}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Replace the metadata, but for the mark, if they have changed."""
        if "metadata" not in changed:
            return
        service = self.service_for(context)
        present = object_of(self.get(service, self.id_of(target)), "metadata")
        marked = {name: value for name, value in present.items() if name == MARK_NAME}
        body = {"metadata": {**texts(target.properties["metadata"]), **marked}}
        service.put(f"{self.path_of(target)}/metadata", body)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Send the fields that have changed, then bring the access rules to the new ones."""
        step = super().handle_update(target, changed, context)
        return self._with_rules(step, context.now(), target, context) if RULES in changed else step

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the share, and its rules, if they change, are in a good state."""
        step = super().check_update_complete(target, progress, context)
        return self._with_rules(step, progress["since"], target, context) if progress.get(RULES) else step

    def _continue_creation(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        step = super()._continue_creation(target, progress, context)
        has_rules = bool(target.properties[RULES])
        return self._with_rules(step, progress["since"], target, context) if has_rules else step

    def _with_rules(self, step: Step, since: float, target: ResourceView, context: StepContext) -> Step:
        """Return the step, or the next poll, if the share has not the right access rules yet.

        :param since: the moment since which the share is waited for.
        """
        rules = AccessRules(self.service_for(context), self.id_of(target))
        if isinstance(step, Done) and rules.converge(target.properties[RULES] or ()):
            return step
        return Poll(progress={"since": since, RULES: True}, after=pause(since, context.now()))

    # -- reading -----------------------------------------------------------------------------------

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        share = self.get(self.service_for(context), self.id_of(target))
        return {**target.data, REMOTE: self._located(share, context)}

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the present fields and access rules."""
        rules = AccessRules(self.service_for(context), self.id_of(target))
        live = super().live_properties(target, context)
        return {**live, RULES: rules.reported(target.properties[RULES] or ())}

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; the metadata without the mark."""
        live = dict(super().reported_properties(target, remote, context))
        if "metadata" in live:
            live["metadata"] = as_in_template(_own_metadata(remote), target.properties["metadata"])
        return live

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer, without the mark."""
        values = super().attribute_values(target)
        return {**values, "show": {**values["show"], "metadata": _own_metadata(values["show"])}}

    def problem(self, remote: JsonMap) -> str:
        return str(remote.get(MESSAGE) or "")

    def _wait(self, remote: JsonMap | None, since: float, target: ResourceView, context: StepContext) -> Step:
        """Return the end of the action with the addresses of the share, or the next poll."""
        if remote is not None and self.status.of(remote) in self.status.bad:
            remote = {**remote, MESSAGE: self._message(remote, context)}
        step = super()._wait(remote, since, target, context)
        if not isinstance(step, Done) or remote is None:
            return step
        return dataclasses.replace(step, data=self._data(self._located(remote, context), target))

    def _unwrapped(self, answer: Json) -> JsonMap:
        """Return the share, whose metadata are read in several places."""
        share = super()._unwrapped(answer)
        _own_metadata(share)
        return share

    def _message(self, share: JsonMap, context: StepContext) -> str:
        """Return the last message that the service has for the share's users; empty: it has none."""
        answer = self.service_for(context).get("/messages", resource_id=share["id"])
        messages = sorted(objects_of(answer, "messages"), key=lambda message: str(message["created_at"]))
        return str(messages[-1]["user_message"]) if messages else ""

    def _located(self, share: JsonMap, context: StepContext) -> JsonMap:
        """Return the share with the addresses at which clients mount it; as in Heat, without details."""
        answer = self.service_for(context).get(f"{self.path}/{share['id']}/{LOCATIONS}")
        return {**share, LOCATIONS: [location["path"] for location in objects_of(answer, LOCATIONS)]}


def _own_metadata(share: JsonMap) -> dict[str, Json]:
    """Return the metadata without the mark."""
    metadata = {} if share.get("metadata") is None else object_of(share, "metadata")
    return {name: value for name, value in metadata.items() if name != MARK_NAME}
