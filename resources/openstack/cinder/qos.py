"""OS::Cinder::QoSSpecs and OS::Cinder::QoSAssociation: limits for volumes of a type; for administrators."""

from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    CloudCalls,
    Done,
    Poll,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..bodies import texts
from ..compared import BEFORE, ComparedType
from ..marks import chosen_id
from ..names import NameNotFound, resolve
from ..service import RemoteNotFound, Service, service_of

PATH = "/qos-specs"
CONSUMER = "consumer"
"""The entry of the specs that says who applies them; it changes, and is never removed."""
SHOW = Attribute("All fields, as the service's API returns them.", "map")


class QoSSpecs(ComparedType):
    """Limits for volumes, by the names that the storage or the hypervisor knows."""

    type_name = "OS::Cinder::QoSSpecs"
    support_status = SupportStatus(version="7.0.0")
    description = "QoS specs: performance limits for the volumes of associated types; for administrators."
    service = "block-storage"
    path = PATH
    item = "qos_specs"
    items = "qos_specs"
    identity = "the name, which one set of specs may have"
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "specs": Property(
            "map",
            "QoS specs by name; ``consumer`` is front-end (compute host), back-end (storage) or both.",
            required=True,
            update_allowed=True,
        ),
    }
    attributes_schema = {"show": SHOW}

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the name and the limits, which are one map."""
        properties = target.properties
        return {"name": properties["name"] or target.physical_name, **texts(properties["specs"])}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return nothing: the limits have calls of their own."""
        return {}

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set the limits, and remove those that were removed from the template."""
        service = self.service_for(context)
        path = self.path_of(target)
        specs = texts(target.properties["specs"])
        present = self.get(service, self.id_of(target)).get("specs") or {}
        if specs:
            service.put(path, {self.item: specs})
        if left_over := sorted(present.keys() - specs.keys() - {CONSUMER}):
            service.put(f"{path}/delete_keys", {"keys": left_over})

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """End all associations, which would keep the specs from being deleted."""
        self.service_for(context).act_by_get(f"{self.path_of(target)}/disassociate_all")

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        return {"specs": remote.get("specs") or {}}


class QoSAssociation(ResourceType):
    """The association of volume types with limits.

    The physical id is one of our own, as in Heat, and is stored before the first call, together with the
    associations that somebody else has made.  Those stay.
    """

    type_name = "OS::Cinder::QoSAssociation"
    support_status = SupportStatus(version="8.0.0")
    description = "The association of volume types with QoS specs; for administrators."
    service = "block-storage"
    uses_credentials = True
    identity = "the associated things; Stoker first stores which associations exist"
    properties_schema = {
        "qos_specs": Property(
            "string",
            "Name or id of the QoS specs.",
            required=True,
            constraints=(Custom(check_name="cinder.qos_specs"),),
        ),
        "volume_types": Property(
            "list",
            "Names or ids of the volume types.",
            required=True,
            update_allowed=True,
            schema=Property(
                "string", "Name or id of a volume type.", constraints=(Custom(check_name="cinder.vtype"),)
            ),
        ),
    }
    attributes_schema = {"show": SHOW}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store which associations are there."""
        if target.physical_id is not None:
            return self.check_create_complete(target, None, context)
        path = _path(target.properties, context)
        data = {**target.data, BEFORE: _present(_service(context), path)}
        return Poll(progress={}, after=0.0, physical_id=chosen_id(target.key), data=data)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Make the associations; one that is there already is no error."""
        path = _path(target.properties, context)
        _call("associate", _types(target.properties, context), path, context)
        return Done()

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Make the associations that are new, and end those that are left over."""
        path = _path(target.properties, context)
        after = _types(target.properties, context)
        _call("associate", after, path, context)
        left_over = [item for item in _types(target.previous, context) if item not in after]
        _call("disassociate", self._own(left_over, target), path, context)
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """End the associations that this resource has made."""
        if target.physical_id is None:
            return Done()
        try:
            path = _path(target.properties, context)
            types = _types(target.properties, context)
        except NameNotFound:
            return Done()
        _call("disassociate", self._own(types, target), path, context)
        return Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that all volume types are associated.

        :raises RemoteNotFound: one is not.
        """
        present = _present(_service(context), _path(target.properties, context))
        for volume_type in _types(target.properties, context):
            if volume_type not in present:
                raise RemoteNotFound(f"block-storage: volume type {volume_type} is not associated")
        return Done()

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether nothing was ever associated; an update makes what is missing."""
        return target.physical_id is None

    def prepare_for_replace(self, target: ResourceView, context: StepContext) -> None:
        """End the associations: a volume type is associated with one set of limits at a time."""
        self.handle_delete(target, context)

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> None:
        """Make the associations again."""
        if target.physical_id is not None:
            self.check_create_complete(target, None, context)

    def _own(self, types: Sequence[str], target: ResourceView) -> list[str]:
        return [item for item in types if item not in target.data.get(BEFORE, ())]


def _service(context: StepContext) -> Service:
    return service_of(context, "block-storage")


def _path(properties: JsonMap, context: StepContext) -> str:
    return f"{PATH}/{resolve(context, 'cinder.qos_specs', properties['qos_specs'])}"


def _types(properties: JsonMap, context: StepContext) -> list[str]:
    return [resolve(context, "cinder.vtype", name) for name in properties["volume_types"] or ()]


def _present(service: Service, path: str) -> list[str]:
    return [str(item["id"]) for item in service.get(f"{path}/associations")["qos_associations"]]


def _call(action: str, types: Sequence[str], path: str, context: StepContext) -> None:
    """Associate or disassociate volume types, which the service does by a GET."""
    for volume_type in types:
        try:
            _service(context).act_by_get(f"{path}/{action}", vol_type_id=volume_type)
        except RemoteNotFound:
            if action == "associate":
                raise
