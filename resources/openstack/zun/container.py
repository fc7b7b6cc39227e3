"""OS::Zun::Container: a container."""

import dataclasses
import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from ....shapes import Json, JsonMap
from ...contract import (
    CloudCalls,
    Done,
    PermanentError,
    Poll,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..bodies import texts, without_nulls
from ..declared import REMOTE, DeclaredType
from ..marks import MARK_NAME, Mark
from ..names import quoted, resolve
from ..polling import STEADY_PAUSE
from ..service import RemoteNotFound, Service, object_of, objects_of, service_of
from ..statuses import StatusMeaning
from .container_schema import ATTRIBUTES, PROPERTIES
from .networks import Entry, Interfaces, body_of

RESTART_POLICY = re.compile(r"(?P<name>no|always|unless-stopped|on-failure)|on-failure:(?P<count>\d*)")
IN_PLACE = ("name", "cpu", "memory")
NETWORKS = "networks"
KINDS = {"network": "neutron.network", "port": "neutron.port"}
"""Kinds of the things that an entry of the networks names."""


class _LabelMark(Mark):
    """A mark among the labels, under `MARK_NAME`."""

    place = f"the label ``{MARK_NAME}``"

    def put(self, body: dict[str, Json], mark: str) -> None:
        body["labels"] = {**(body.get("labels") or {}), MARK_NAME: mark}

    def query(self, mark: str) -> Mapping[str, str]:
        return {}  # The service does not filter by labels.

    def is_on(self, remote: JsonMap, mark: str) -> bool:
        return mark in self.texts(remote)

    def texts(self, remote: JsonMap) -> Sequence[Json]:
        labels = remote.get("labels")
        return (labels.get(MARK_NAME),) if isinstance(labels, Mapping) else ()


class Container(DeclaredType):
    """A container."""

    type_name = "OS::Zun::Container"
    support_status = SupportStatus(version="9.0.0")
    description = "An application container."
    service = "application-container"
    path = "/containers"
    delete_query = {"stop": "true"}
    item = ""
    items = "containers"
    id_field = "uuid"
    list_parameters = {}
    update_method = "PATCH"
    slow_delete = True
    mark = _LabelMark()
    status = StatusMeaning(
        pending=("CREATING", "CREATED", "DELETING", "REBUILDING", "RESTARTING"),
        bad=("ERROR", "DEAD"),
        deleted=("DELETED",),
    )
    apart = (NETWORKS, "mounts", "command", "restart_policy")
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES

    def validate(self, properties: JsonMap) -> None:
        """Check the policy, and that volumes and networks are named in one way."""
        policy = properties.get("restart_policy")
        if isinstance(policy, str) and policy and not RESTART_POLICY.fullmatch(policy):
            text = f'restart_policy "{policy}" is invalid. Valid values are "no", "on-failure[:max-retry]", '
            raise PropertyError(f'{text}"always", and "unless-stopped".', ("restart_policy",))
        for index, mount in enumerate(properties.get("mounts") or ()):
            _check_one(mount, ("volume_id", "volume_size"), ("mounts", index))
        for index, network in enumerate(properties.get(NETWORKS) or ()):
            if not network["network"] and not network["port"]:
                raise PropertyError("One of network and port is needed", (NETWORKS, index))
            if network["fixed_ip"] and network["port"]:
                raise PropertyError("fixed_ip and port exclude each other", (NETWORKS, index))

    # -- creation ----------------------------------------------------------------------------------

    def post(self, service: Service, body: JsonMap, target: ResourceView) -> Json:
        """Create a container that runs."""
        return service.post(f"{self.path}?run=true", self.request(body, target))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new container; what is empty is not sent."""
        properties = target.properties
        fields = super().create_body(target, context)
        fields |= {name: texts(fields[name]) for name in ("environment", "labels") if name in fields}
        fields["nets"] = [body_of(entry) for entry in _entries(properties, context)]
        fields["mounts"] = [_mount(mount) for mount in properties["mounts"] or ()]
        if properties["command"]:
            fields["command"] = shlex.split(properties["command"])
        if policy := RESTART_POLICY.fullmatch(properties["restart_policy"] or ""):
            name = policy["name"] or "on-failure"
            fields["restart_policy"] = {"Name": name, "MaximumRetryCount": policy["count"] or "0"}
        return {name: value for name, value in fields.items() if value not in ([], {}, "")}

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        return body

    def problem(self, remote: JsonMap) -> str:
        return str(remote.get("status_reason") or "")

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the container runs, or has run.

        :raises PermanentError: it has stopped, although its standard input is to stay open.
        """
        step = super().check_create_complete(target, progress, context)
        if isinstance(step, Done) and step.data is not None:
            container = step.data[REMOTE]
            if self.status.of(container) == "STOPPED" and container.get("interactive"):
                text = f"Error in creating container '{target.name}' - interactive mode was enabled but the "
                raise PermanentError(f"{text}container has stopped running", kind="ResourceInError")
        return step

    # -- update ------------------------------------------------------------------------------------

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        return {name: target.properties[name] for name in IN_PLACE if name in changed}

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Send the fields that have changed, then exchange interfaces."""
        step = super().handle_update(target, changed, context)
        if NETWORKS not in changed:
            return step
        return Poll(progress={"since": context.now(), "requested": []}, after=0.0)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the container is in a good state, and has the right interfaces."""
        if "requested" in progress:
            interfaces = Interfaces(self.service_for(context), self.path_of(target))
            former, after = (_entries(each, context) for each in (target.previous, target.properties))
            requested = interfaces.converge(former, after, progress["requested"])
            if requested is not None:
                return Poll(progress={**progress, "requested": sorted(requested)}, after=STEADY_PAUSE)
        return super().check_update_complete(target, progress, context)

    # -- reading -----------------------------------------------------------------------------------

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        container = self.get(self.service_for(context), self.id_of(target))
        return {**target.data, REMOTE: _addressed(container, context)}

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields that an update can change; the service shows others in other forms."""
        live = super().reported_properties(target, remote, context)
        return {name: value for name, value in live.items() if name in IN_PLACE}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer, without the mark."""
        values = super().attribute_values(target)
        labels = values["show"].get("labels") or {}
        labels = {name: value for name, value in labels.items() if name != MARK_NAME}
        return {**values, "show": {**values["show"], "labels": labels}}

    def _unwrapped(self, answer: Json) -> JsonMap:
        """Return the container, whose labels and addresses are read in several places."""
        container = super()._unwrapped(answer)
        for name in ("labels", "addresses"):
            if container.get(name) is not None:
                object_of(container, name)
        return container

    def _look(self, target: ResourceView, since: float, context: StepContext) -> JsonMap | None:
        """Return the container; each is read alone, for the service refuses the parameters of lists."""
        return self.get(self.service_for(context), self.id_of(target))

    def _wait(self, remote: JsonMap | None, since: float, target: ResourceView, context: StepContext) -> Step:
        """Return the end of the action with the addresses by the names of networks, or the next poll."""
        step = super()._wait(remote, since, target, context)
        if not isinstance(step, Done) or remote is None:
            return step
        return dataclasses.replace(step, data=self._data(_addressed(remote, context), target))


def _check_one(entry: JsonMap, names: Sequence[str], path: tuple[str | int, ...]) -> None:
    """Check that an entry has one of two values."""
    if len([name for name in names if entry[name]]) != 1:
        raise PropertyError(f"One of {' and '.join(names)} is needed, and not both", path)


def _entries(properties: JsonMap, context: StepContext) -> list[Entry]:
    """Return the entries of the networks, with ids in place of names."""
    return [
        {
            name: resolve(context, KINDS[name], value) if name in KINDS else value
            for name, value in without_nulls(entry).items()
        }
        for entry in properties.get(NETWORKS) or ()
    ]


def _mount(mount: JsonMap) -> dict[str, Json]:
    """Return a volume as the service takes it."""
    names = {"volume_id": "source", "volume_size": "size", "mount_path": "destination"}
    return {names[name]: value for name, value in without_nulls(mount).items()}


def _addressed(container: JsonMap, context: StepContext) -> JsonMap:
    """Return the container with its addresses by the names of networks, too, as in Heat."""
    addresses = object_of(container.get("addresses") or {})
    named: dict[str, Json] = {}
    for network in addresses:
        entries = objects_of(addresses, network)
        try:
            answer = service_of(context, "network").get(f"/networks/{quoted(network)}")
        except RemoteNotFound:
            continue
        name = str(object_of(answer, "network")["name"])
        named[name] = [*named.get(name, ()), *entries]
    return {**container, "addresses": {**addresses, **named}}
