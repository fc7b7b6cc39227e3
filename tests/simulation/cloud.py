"""A cloud that remembers what was made in it, and what was wrong with that."""

import typing
from collections.abc import Callable, Mapping

from simulation import threads
from stoker.resources.contract.context import CloudCalls, Collection, StepContext
from stoker.resources.contract.errors import PermanentError, ReplaceNeeded, RetryableError, StepError
from stoker.resources.contract.implied import ImpliedDependency
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Attribute, Property
from stoker.resources.contract.steps import Done, Park, Poll, Step
from stoker.resources.contract.views import ResourceView
from stoker.shapes import Json


class CloudObject(typing.NamedTuple):
    """:ivar needs: physical ids of the things that it needs.
    :ivar value: what it holds; a picture keeps it.
    :ivar picture: the picture that it is made of.
    """

    stack: str
    resource: str
    key: str
    needs: tuple[str, ...]
    value: str = ""
    picture: str = ""


LOST = "it was there and is lost"
"""A step may come to this whose task was taken away; no resource may."""


class Cloud:
    """Things by their physical id.

    :ivar calls: calls of the rarer hooks of Sim::Volume.
    :ivar lists: how often the things were listed.
    :ivar lost_answers: keys and values of the changes that were carried out, and whose first answer was lost.
    :ivar unlistable: the error of the next lists; None: they are answered.
    :ivar unlisted: things that lists do not have.
    :ivar live: by physical id, properties that somebody has changed behind our back.
    :ivar pictures: of things, by their key: what snapshots keep.
    :ivar lent: what goes from one stack to another: nobody has it until it is adopted.
    :ivar late: what calls have made that hung.
    :ivar is_owned: whether a stack's resource has the thing; a detached call makes one that none has.
    :ivar slots: by name, the thing that has it; no other thing can.
    :ivar room: what making room for a replacement comes to, the next times, by the resource's name.
    :ivar attempts: number of the attempt of each call that creates a thing.
    :ivar sick: things whose check fails -> whether a repair cures them.
    :ivar unread: what a refresh of a resource raises, the next times, by its name.
    :ivar wrong: what must never happen and did.
    """

    def listed(self) -> dict[str, Mapping[str, Json]]:
        """The things by physical id, with what somebody has changed.

        :raises StepError: it is `unlistable`.
        """
        self.lists += 1
        if self.unlistable is not None:
            raise self.unlistable
        return {thing: self.live.get(thing, {}) for thing in self.objects if thing not in self.unlisted}

    def __init__(self) -> None:
        self.lent: set[str] = set()
        self.late: set[str] = set()
        self.is_owned: Callable[[str], bool] = lambda physical: True
        self.calls: list[str] = []
        self.slots: dict[str, str] = {}
        self.room: dict[str, list[Exception | Poll]] = {}
        self.attempts: list[int] = []
        self.sick: dict[str, bool] = {}
        self.unread: dict[str, list[Exception]] = {}
        self.live: dict[str, Json] = {}
        self.lists = 0
        self.unlistable: StepError | None = None
        self.unlisted: set[str] = set()
        self.objects: dict[str, CloudObject] = {}
        self.physical_ids: dict[str, str] = {}
        self.tries: dict[str, int] = {}
        self.lost_answers: set[tuple[str, str]] = set()
        self.pictures: dict[str, str] = {}
        self.wrong: list[str] = []
        self.hung: set[tuple[str, str]] = set()
        self.cancelled: list[str] = []
        self._numbers = 0

    def make(self, target: ResourceView, *, late: bool = False) -> str:
        """Make a thing, or find the one that an earlier attempt made with the same key.

        :param late: by a call that hung: the things it needs may be gone by now, and so may be what another
            attempt has made; what it makes then has to be removed again.
        """
        existing = self.physical_ids.get(target.key)
        if existing in self.objects:
            return str(existing)
        if existing is not None and not late:
            self.wrong.append(f"{target.stack.name}.{target.name} was made again after its deletion")
        value = self._value(target)
        self._numbers += 1
        physical = f"thing-{self._numbers}"
        self.physical_ids[target.key] = physical
        needs = tuple(x for x in target.properties["needs"] if x in self.objects or not late)
        picture = str(target.properties["picture"])
        self.objects[physical] = CloudObject(target.stack.id, target.name, target.key, needs, value, picture)
        if late:
            self.late.add(physical)
        return physical

    def call(self, name: str, target: ResourceView) -> bool:
        """A call to the cloud, which hangs where the resource says so, the first time; whether it did."""
        # Each deletion has a key of its own; what it deletes stays the same.
        request = (name, str(target.physical_id) if name == "delete" else target.key)
        hangs = name in target.properties["hangs"] and request not in self.hung
        if hangs:
            self.hung.add(request)
            threads.hang()
        return hangs

    def stumble(self, target: ResourceView) -> None:
        """Fail at every second try, where the resource says so; a creation has counted one before.

        :raises RetryableError: it fails.
        """
        if target.properties["stumbles"]:
            tries = self.tries[target.key] = self.tries.get(target.key, 0) + 1
            if tries % 2:
                raise RetryableError(f"stumbles at try {tries}")

    def lose_answer(self, target: ResourceView) -> None:
        """Lose the first answer, where the resource says so, to a call that was carried out.

        :raises RetryableError: the answer is lost.
        """
        change = (target.key, target.properties["value"])
        if target.properties["unanswered"] and change not in self.lost_answers:
            self.lost_answers.add(change)
            raise RetryableError("no answer", after=20.0)

    def take_slot(self, physical: str, slot: str) -> None:
        """Give a thing the slot that it shall have.

        :raises RetryableError: another thing has it.
        """
        if slot and self.slots.setdefault(slot, physical) != physical:
            raise RetryableError(f"{slot} is in use by {self.slots[slot]}")

    def free_slots(self, physical: str | None) -> None:
        """Take from a thing the slots that it has."""
        self.slots = {slot: owner for slot, owner in self.slots.items() if owner != physical}

    def make_room(self, target: ResourceView) -> Poll | None:
        """Answer with the next item of `room`, if there is one; then free the slots of the object."""
        planned = self.room.get(target.name) or [None]
        planned_one = planned.pop(0)
        if isinstance(planned_one, Exception):
            raise planned_one
        if planned_one is None:
            self.free_slots(target.physical_id)
            self.call("prepare", target)
        return planned_one

    def users(self, physical: str | None) -> list[str]:
        """The names of those that need a thing."""
        return sorted(item.resource for item in self.objects.values() if physical in item.needs)

    def refresh(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the data of an object, with its present users."""
        self.calls.append(f"refresh {target.name}")
        self.call("refresh", target)
        if self.unread.get(target.name):
            raise self.unread[target.name].pop(0)
        if target.physical_id not in self.objects:
            raise PermanentError(LOST)
        return {**target.data, "users": self.users(target.physical_id)}

    def change(self, target: ResourceView) -> None:
        """Bring a thing to its new properties."""
        self.call("update", target)
        if target.physical_id not in self.objects:
            raise PermanentError(LOST)
        old = self.objects[target.physical_id]
        needs = tuple(target.properties["needs"])
        value = self._value(target)
        picture = str(target.properties["picture"])
        self.objects[target.physical_id] = old._replace(needs=needs, value=value, picture=picture)

    def _value(self, target: ResourceView) -> str:
        """Return the content that an object shall have; a picture that was deleted has none."""
        picture = target.properties["picture"]
        if not picture:
            return str(target.properties["value"])
        if picture not in self.pictures:
            raise PermanentError(f"{picture} is gone")
        return self.pictures[picture]

    def take_picture(self, target: ResourceView) -> str:
        """Keep what a thing holds; again the same for the same key."""
        if target.physical_id not in self.objects:
            raise PermanentError("it is gone")
        name = f"picture-{target.key}"
        self.pictures.setdefault(name, self.objects[target.physical_id].value)
        return name

    def unmake(self, physical: str) -> None:
        """Remove a thing; one that is gone stays gone."""
        users = {n: t.resource for n, t in self.objects.items() if physical in t.needs and n not in self.lent}
        users = {n: name for n, name in users.items() if n not in self.late or self.is_owned(n)}
        if users:
            self.wrong.append(f"{physical} was deleted under {list(users.values())}")
        self.objects.pop(physical, None)
        self.free_slots(physical)

    def check_needs(self, target: ResourceView) -> None:
        """A thing is about to be made that needs others: they must be there."""
        for physical in target.properties["needs"]:
            if physical not in self.objects and physical.startswith("thing"):  # And is no stack.
                self.wrong.append(f"{target.stack.name}.{target.name} began before {physical} was there")


BAD_STEPS: Mapping[str, Step] = {
    "data": Done("id", {"x": object()}),
    "nan": Done("id", {"x": float("nan")}),
    "progress": Poll({"x": {1, 2}}),
    "id": Done(object()),  # type: ignore[arg-type]
    "waits_on": Park({}, "resource:none"),
}


def types(cloud: Cloud) -> Mapping[str, type[ResourceType]]:
    """The resource types of that cloud."""

    class Server(ResourceType):
        """Is made in several polls; may ask to be tried again, or fail."""

        snapshot_on_delete = True

        properties_schema = {
            "needs": Property("list", default=[], update_allowed=True),
            "value": Property("string", default="", update_allowed=True),
            "looks": Property("integer", default=1, update_allowed=True),
            "after": Property("number", default=1, update_allowed=True),
            "flaky": Property("integer", default=0, update_allowed=True),
            "stumbles": Property("boolean", "Every second look fails.", default=False),
            "unanswered": Property(
                "boolean", "The first call of each update gets no answer.", default=False, update_allowed=True
            ),
            "size": Property("integer", "Cannot be changed.", default=1),
            "network": Property("string", "Cannot be changed.", names="neutron.network"),
            "fail": Property("boolean", default=False, update_allowed=True),
            "returns": Property("string", "Something that no resource type may return.", default=""),
            "fail_with_value": Property("boolean", default=False),
            "endless": Property("boolean", default=False, update_allowed=True),
            "picture": Property("string", "What it is made of.", default="", update_allowed=True),
            "picture_looks": Property("integer", default=1, update_allowed=True),
            "shy": Property("boolean", "Fails to be pictured.", default=False, update_allowed=True),
            "secret": Property("string", default="", update_allowed=True),
            "offers": Property("string", "Something that others use.", update_allowed=True),
            "hangs": Property(
                "list",
                "Calls that hang once: create, made, look, update, delete, refresh, prepare.",
                default=[],
            ),
        }
        attributes_schema = {
            "address": Attribute("Address."),
            "value": Attribute("As given."),
            "users": Attribute("Those that stand on it.", volatile=True),
        }

        def collection(self) -> Collection | None:
            return Collection("compute", "/servers", lambda context, project_id: cloud.listed())

        def remote(self, target: ResourceView, context: CloudCalls) -> Mapping[str, Json]:
            if target.physical_id not in cloud.objects:
                raise PermanentError("it is gone", kind="NotFound")
            return cloud.live.get(str(target.physical_id), {})

        def reported_properties(
            self, target: ResourceView, remote: Mapping[str, Json], context: StepContext
        ) -> Mapping[str, Json]:
            return remote

        def handle_create(self, target: ResourceView, context: StepContext) -> Step:
            cloud.attempts.append(target.attempt)
            cloud.check_needs(target)
            tries = cloud.tries[target.key] = cloud.tries.get(target.key, 0) + 1
            if tries <= target.properties["flaky"]:
                raise RetryableError(f"try {tries}")
            if target.properties["fail"]:
                raise PermanentError("told to fail")
            if target.properties["fail_with_value"]:
                raise PermanentError(f"cannot use {target.properties['value']}")
            if target.properties["returns"]:
                return BAD_STEPS[target.properties["returns"]]
            late = cloud.call("create", target)
            physical = cloud.make(target, late=late)
            cloud.call("made", target)
            return Poll({"looks": 0}, target.properties["after"], physical, {"address": f"at-{physical}"})

        def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
            if target.physical_id not in cloud.objects:
                raise PermanentError(LOST)
            cloud.call("look", target)
            cloud.stumble(target)
            looks = progress["looks"] + 1
            if target.properties["endless"] or looks < target.properties["looks"]:
                return Poll({"looks": looks}, target.properties["after"])
            return Done()

        def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
            cloud.check_needs(target)
            if target.properties["fail"]:
                raise PermanentError("told to fail")
            cloud.change(target)
            cloud.lose_answer(target)
            return Poll({"looks": 0}, target.properties["after"])

        def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
            return self.check_create_complete(target, progress, context)

        def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
            if target.properties["shy"]:
                raise PermanentError("told to be shy")
            return Poll(
                {"looks": 0}, target.properties["after"], data={"picture": cloud.take_picture(target)}
            )

        def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
            looks = progress["looks"] + 1
            return Poll({"looks": looks}) if looks < target.properties["picture_looks"] else Done()

        def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
            cloud.pictures.pop(f"picture-{target.key}", None)
            return Poll({"looks": 0}, target.properties["after"])

        def handle_restore(
            self, properties: Mapping[str, Json], data: Mapping[str, Json]
        ) -> Mapping[str, Json]:
            return {"picture": data["picture"]}

        def handle_check(self, target: ResourceView, context: StepContext) -> Step:
            cloud.call("check", target)
            cloud.stumble(target)
            if target.physical_id not in cloud.objects:
                raise PermanentError("it is gone")
            if target.physical_id in cloud.sick:
                raise PermanentError("it is sick")
            return Done()

        def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
            cloud.call("delete", target)
            if target.physical_id is not None:
                cloud.unmake(target.physical_id)
            return Done()

        def handle_cancel(self, target: ResourceView, progress: Json, context: StepContext) -> None:
            cloud.cancelled.append(target.name)

        def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
            return cloud.physical_ids.get(key)

        def attribute_values(self, target: ResourceView) -> dict[str, Json]:
            attributes = {name: target.data[name] for name in ("users",) if name in target.data}
            return {"address": target.data.get("address"), "value": target.properties["value"], **attributes}

        def refresh(self, target: ResourceView, context: StepContext) -> Mapping[str, Json]:
            return cloud.refresh(target)

    class Volume(Server):
        """Uses what of the contract concerns updates beyond the schema; outlives a failed update."""

        properties_schema = {
            **Server.properties_schema,
            "slot": Property("string", "What only one thing at a time can have.", default=""),
        }
        update_policy_schema = {"batch": Property("integer", default=1), "kind": Property("string")}
        replaced_when_check_failed = False

        def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
            cloud.calls.append(f"update {target.update_policy['batch']}")
            if target.properties["value"] == "elsewhere":
                raise ReplaceNeeded
            return super().handle_update(target, changed, context)

        def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
            cloud.calls.append("failed?")
            return target.physical_id not in cloud.objects

        def handle_create(self, target: ResourceView, context: StepContext) -> Step:
            step = super().handle_create(target, context)
            if step.physical_id is not None:
                cloud.take_slot(step.physical_id, target.properties["slot"])
            return step

        def prepare_for_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
            cloud.calls.append(f"prepare {target.physical_id}")
            return cloud.make_room(target)

        def restore_after_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
            cloud.calls.append(f"restore {target.physical_id}")
            replacement = context.replacement()
            if replacement is not None:
                cloud.free_slots(replacement.physical_id or cloud.physical_ids.get(replacement.key))
            if target.physical_id in cloud.objects:
                cloud.take_slot(str(target.physical_id), target.properties["slot"])
            return None

        def live_properties(self, target: ResourceView, context: StepContext) -> Mapping[str, Json]:
            live: Mapping[str, Json] = cloud.live.get(str(target.physical_id), {})
            return live

    class Machine(Volume):
        """Repairs what a check has found; makes room for a replacement by the loss of the thing."""

        def prepare_for_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
            waits = super().prepare_for_replace(target, context)
            if waits is None and target.physical_id in cloud.objects:
                cloud.unmake(str(target.physical_id))
            return waits

        def restore_after_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
            waits = super().restore_after_replace(target, context)
            if target.physical_id not in cloud.objects:
                raise ReplaceNeeded
            return waits

        def handle_repair(self, target: ResourceView, context: StepContext) -> Step:
            cloud.calls.append("repair")
            return Poll({"looks": 0}, target.properties["after"])

        def check_repair_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
            if not cloud.sick.get(str(target.physical_id), True):
                raise PermanentError("it cannot be repaired")
            cloud.sick.pop(str(target.physical_id), None)
            return Done(data={**target.data, "address": "another"})

    class Client(Server):
        """Uses what servers offer, without a reference to them."""

        properties_schema = {
            **Server.properties_schema,
            "uses": Property("string", "It is made behind all that offer this.", update_allowed=True),
        }
        implied_dependencies = (ImpliedDependency("uses", "Sim::Server", "offers"),)

    return {
        **{"Sim::Server": Server, "Sim::Volume": Volume},
        **{"Sim::Machine": Machine, "Sim::Client": Client},
    }
