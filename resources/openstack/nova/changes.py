"""The parts of an update that take a while: interfaces, size, image.  Each part is a stage of the progress.

A stage may run again after a crash at any moment.  So it reads the server, and makes the remaining changes.
Updates with ``converge`` compare the goal with the live properties, which are read here, too.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from ....shapes import Json, JsonMap
from ...contract import CloudCalls, PermanentError, ResourceView, StepContext
from ..bodies import without_nulls
from ..names import KINDS, NameNotFound, quoted, resolve
from ..service import object_of
from .body import encoded, metadata_field, server_name
from .compute import SERVER_STATUS, ServerCalls, fault_of, is_mark, is_settled, unknown_status, users_tags
from .interfaces import (
    MAC,
    InterfaceChanges,
    Nic,
    ServerInterface,
    ServerPorts,
    interface_changes,
    nics_of,
    pair,
)
from .user_data import server_user_data

Stage = dict[str, Json]


class ServerChange:
    """A step of an update of one server."""

    def __init__(
        self, target: ResourceView, context: StepContext, calls: ServerCalls, ports: ServerPorts
    ) -> None:
        self._target = target
        self._context = context
        self._calls = calls
        self._ports = ports

    def begin(self, changed: frozenset[str]) -> list[Stage]:
        """Change what can be changed at once, and return the stages of the rest, in Heat's order.

        :raises RemoteNotFound: the server does not exist.
        """
        server = self._calls.get()
        properties = self._target.properties
        if "metadata" in changed:
            self._calls.put("/metadata", {"metadata": metadata_field(properties["metadata"])})
        if "tags" in changed:
            # The marks are tags, too: without them no later step would find the server.
            marks = [tag for tag in server.get("tags") or () if is_mark(tag)]
            self._calls.put("/tags", {"tags": [*(properties["tags"] or ()), *marks]})
        if "name" in changed:
            self._calls.put("", {"server": {"name": server_name(self._target)}})
        stages = self._stages(changed, server)
        # A rebuild sets the password itself.
        if "admin_pass" in changed and "image" not in changed and properties["admin_pass"]:
            self._calls.act("changePassword", {"adminPass": properties["admin_pass"]})
        return stages

    def _stages(self, changed: frozenset[str], server: JsonMap) -> list[Stage]:
        stages: list[Stage] = []
        if "networks" in changed:
            stages += self._network_stages()
        if "flavor" in changed:
            stages += self._size_stages(server)
        properties = self._target.properties
        if "user_data" in changed and properties["user_data_update_policy"] == "REBUILD":
            stages.append({"do": "rebuild", "user_data": True})
        if "image" in changed:
            stages += self._image_stages(server)
        return stages

    def run(self, stages: Sequence[Stage]) -> list[Stage]:
        """Run the stages one by one, and return the remaining ones; empty: the update is complete."""
        for number, stage in enumerate(stages):
            remaining = _HANDLERS[stage["do"]](self, stage)
            if remaining is not None:
                return [remaining, *stages[number + 1 :]]
        return []

    # -- interfaces --------------------------------------------------------------------------------

    def _network_stages(self) -> list[Stage]:
        """Change what stays in place, and return the stages for the rest."""
        before, after = (view["networks"] for view in (self._target.previous, self._target.properties))
        # The server has the network that the service has chosen; it stays.
        if not before and not after:
            return []
        changes = self._interface_changes(before, after)
        for interface, former, nic in changes.retained:
            was = former or Nic()
            will = dataclasses.replace(nic, port=interface.port)
            if was.extras != will.extras and will.extras is not None:
                self._ports.change(interface.port, will.extras)
            if was.floating_ip != will.floating_ip:
                self._change_floating_ip(was.floating_ip, will)
        # Freed while their ports exist: an interface of the next stage may get the same address.
        freed = [nic.floating_ip for _, nic in changes.detach if nic is not None and nic.floating_ip]
        for floating_ip in freed:
            self._ports.disassociate(floating_ip)
        detached = [dataclasses.asdict(interface) for interface, _ in changes.detach]
        new = [dataclasses.asdict(nic) for nic in changes.attach]
        return [{"do": "detach", "interfaces": detached}, {"do": "attach", "nics": new}]

    def _interface_changes(self, before: Json, after: Json) -> InterfaceChanges:
        interfaces = self._ports.interfaces(str(self._target.physical_id))
        old = nics_of(before, self._context, strict=False)
        new = nics_of(after, self._context)
        allocation = next(
            (entry["allocate_network"] for entry in after or () if entry["allocate_network"]), None
        )
        if allocation == "none":
            return InterfaceChanges(detach=[(item, None) for item in interfaces])
        if not new:
            new = [Nic(network=self._ports.free_network())]
        return interface_changes(old, new, interfaces)

    def _change_floating_ip(self, before: str | None, nic: Nic) -> None:
        if before:
            self._ports.disassociate(before)
        if nic.floating_ip:
            self._ports.associate(nic)

    def _detach(self, stage: Stage) -> Stage | None:
        """Detach interfaces; then delete the ports that were made for them."""
        if not stage["interfaces"]:
            return None
        present = {interface.port for interface in self._ports.interfaces(str(self._target.physical_id))}
        leaving = [ServerInterface(**item) for item in stage["interfaces"] if item["port"] in present]
        for interface in leaving:
            self._calls.detach_within(interface.port, self._context)
        # The two services forget an interface at different moments; its port is free when both have.
        macs = {item["mac"] for item in stage["interfaces"]}
        if leaving or macs & {entry.get(MAC) for entry in _addresses(self._calls.get())}:
            return stage
        self._ports.delete_marked(attached_to=str(self._target.physical_id))
        return None

    def _attach(self, stage: Stage) -> Stage | None:
        """Attach interfaces, and wait until the server's addresses show them."""
        if not stage["nics"]:
            return None
        # The ports are made once, and are of the progress from then on: a repetition attaches the same.
        if "ports" not in stage:
            groups = self._target.properties["security_groups"]
            nics = self._ports.with_ports([Nic(**nic) for nic in stage["nics"]], groups, all_need_one=True)
            return self._attached({**stage, "ports": [[nic.port, nic.tag] for nic in nics]})
        return self._attached(stage)

    def _attached(self, stage: Stage) -> Stage | None:
        by_port = {item.port: item for item in self._ports.interfaces(str(self._target.physical_id))}
        for port, tag in stage["ports"]:
            if port not in by_port:
                self._calls.attach(port, tag)
        listed = {entry["addr"] for entry in _addresses(self._calls.get())}
        attached = [by_port[port] for port, _ in stage["ports"] if port in by_port]
        complete = len(attached) == len(stage["ports"])
        addresses = {address for item in attached for _, address in item.fixed_ips}
        return None if complete and addresses <= listed else stage

    # -- size and image ----------------------------------------------------------------------------

    def _size_stages(self, server: JsonMap) -> list[Stage]:
        flavor = resolve(self._context, "nova.flavor", self._target.properties["flavor"])
        flavor_of_server = self._calls.service.get(f"{KINDS['nova.flavor'].path}/{quoted(flavor)}")
        stage = {"do": "resize", "flavor": flavor, "name": object_of(flavor_of_server, "flavor")["name"]}
        return [] if _has_flavor(server, stage) and is_settled(server) else [stage]

    def _resize(self, stage: Stage) -> Stage | None:
        """Resize, confirm, and wait until the server runs again."""
        server = self._calls.get()
        status = SERVER_STATUS.of(server)
        new = self._target.properties["flavor"]
        if status in SERVER_STATUS.bad:
            SERVER_STATUS.is_pending(server, fault_of)
        if status == "VERIFY_RESIZE":
            return self._confirmed(stage)
        if is_settled(server):
            if _has_flavor(server, stage):
                return None
            # Where a resize fails the service returns to the former size by itself.
            if stage.get("asked"):
                raise PermanentError(f"Resizing to '{new}' failed, status '{status}'", kind="Error")
            self._calls.act("resize", {"flavorRef": stage["flavor"]})
            return {**stage, "asked": True}
        if status not in SERVER_STATUS.pending and status != "ACTIVE":
            raise unknown_status(f"Resizing to '{new}' failed", status)
        return stage

    def _confirmed(self, stage: Stage) -> Stage:
        """Confirm the new size once; one that was confirmed by a lost step is refused as "not resized"."""
        if not stage.get("confirmed"):
            try:
                self._calls.act("confirmResize", None, ignore_conflict=True)
            except PermanentError as error:
                if error.kind != "BadRequest":
                    raise
        return {**stage, "confirmed": True}

    def _image_stages(self, server: JsonMap) -> list[Stage]:
        image = resolve(self._context, "glance.image", self._target.properties["image"])
        now = (server.get("image") or {}).get("id")
        return [] if image == now and is_settled(server) else [{"do": "rebuild", "image": image}]

    def _rebuild(self, stage: Stage) -> Stage | None:
        """Rebuild, and wait until the server runs again."""
        server = self._calls.get()
        # Of a rebuild the server shows nothing later, unlike a size: only the progress tells that it was
        # requested.
        if stage.get("asked"):
            if SERVER_STATUS.of(server) in SERVER_STATUS.bad:
                text = f"Rebuilding server failed, status '{SERVER_STATUS.of(server)}': {fault_of(server)}"
                raise PermanentError(text, kind="Error")
            return None if is_settled(server) else stage
        properties = self._target.properties
        # For new user data the server is rebuilt of the image that it has; one that boots from a volume shows
        # none.
        body: dict[str, Json] = {
            "imageRef": stage.get("image") or (server.get("image") or {}).get("id") or ""
        }
        if stage.get("user_data"):
            user_data = server_user_data(self._target, self._context)
            body["user_data"] = encoded(user_data) if user_data else None
        else:
            body["metadata"] = metadata_field(properties["metadata"])
            if properties["admin_pass"]:
                body["adminPass"] = properties["admin_pass"]
            if properties["image_update_policy"] == "REBUILD_PRESERVE_EPHEMERAL":
                body["preserve_ephemeral"] = True
        self._calls.act("rebuild", body)
        return {**stage, "asked": True}


def _addresses(server: JsonMap) -> list[JsonMap]:
    return [entry for entries in (server.get("addresses") or {}).values() for entry in entries]


def _has_flavor(server: JsonMap, stage: Stage) -> bool:
    """Return whether the server has the stage's flavor; newer services show its name in place of its id."""
    flavor = server.get("flavor") or {}
    return bool(flavor.get("id") == stage["flavor"] or flavor.get("original_name") == stage["name"])


_HANDLERS: Mapping[str, Callable[[ServerChange, Stage], Stage | None]] = {
    "detach": ServerChange._detach,
    "attach": ServerChange._attach,
    "resize": ServerChange._resize,
    "rebuild": ServerChange._rebuild,
}
"""By the stage's name; each returns the rest of its stage, None when it is complete."""


def reported_properties(target: ResourceView, server: JsonMap, context: CloudCalls) -> dict[str, Json]:
    """Return the properties that a server shows; one that is as it was given has the given value.

    :param server: the server as the service has it.
    """
    properties = target.properties
    live: dict[str, Json] = {}
    if properties["name"]:
        live["name"] = server["name"]
    live["flavor"] = _live_flavor(properties["flavor"], context, server)
    image = (server.get("image") or {}).get("id")
    if image and properties["image"]:
        live["image"] = (
            properties["image"] if _resolved("glance.image", properties["image"], context) == image else image
        )
    same_metadata = metadata_field(properties["metadata"]) == server["metadata"]
    live["metadata"] = properties["metadata"] if same_metadata else server["metadata"]
    tags = users_tags(server.get("tags") or ())
    live["tags"] = properties["tags"] if sorted(properties["tags"] or ()) == sorted(tags) else tags
    return live


def live_networks(target: ResourceView, context: StepContext) -> dict[str, Json]:
    """Return the property of the networks as the server has them; nothing where the template has none."""
    networks = target.properties["networks"]
    if not networks:
        return {}
    interfaces = ServerPorts.of(target, context).interfaces(str(target.physical_id))
    return {"networks": _live_networks(networks, nics_of(networks, context, strict=False), interfaces)}


def _live_flavor(declared: str, context: CloudCalls, server: JsonMap) -> str:
    flavor = object_of(server, "flavor")
    named = str(flavor.get("original_name") or flavor.get("id"))
    same = _resolved("nova.flavor", declared, context)
    return declared if same is not None and same == _resolved("nova.flavor", named, context) else named


def _resolved(kind: str, value: str, context: CloudCalls) -> str | None:
    try:
        return resolve(context, kind, value)
    except NameNotFound:
        return None


def _live_networks(
    entries: Sequence[JsonMap], nics: Sequence[Nic], interfaces: Sequence[ServerInterface]
) -> list[Json]:
    """Return the entries that have their interface, and one for each interface that none asks for."""
    if any(entry["allocate_network"] for entry in entries):
        return [without_nulls(entry) for entry in entries]
    interface_of = pair(nics, interfaces)
    unnamed = [item for item in interfaces if item not in interface_of.values()]
    return [
        *(without_nulls(entries[index]) for index in sorted(interface_of)),
        *({"port": item.port} for item in unnamed),
    ]
