"""OS::Heat::Stack in another region or cloud: a stack of the orchestration service there, by its API.

The service may be Heat or Stoker.  Heat writes down an action a moment after it has accepted it, so a view
from before the request does not count until a while after it; see `_is_ours`.
"""

import re
import urllib.parse
from collections.abc import Callable

from ....shapes import Json, JsonMap
from ...contract import (
    Done,
    PermanentError,
    Poll,
    PolledAlike,
    PropertyError,
    ReplaceNeeded,
    ResourceView,
    RetryableError,
    Step,
    StepContext,
    SupportStatus,
)
from ...heat.stack import ATTRIBUTES, PROPERTIES, REMOTE_STACK
from ..declared import REMOTE
from ..marks import TagMark, mark_of, marked
from ..polling import FIRST_PAUSE, STEADY_PAUSE, pause
from ..service import LATE_CALL, Conflict, RemoteNotFound, Service
from .remote_access import as_text, cloud_of, location_of, orchestration

SNAPSHOT = "snapshot_id"
"""Key in the data of a snapshot."""
ASKED = "asked"
"""Key in the data of a resource whose stack was perhaps created."""
NAME = re.compile("[^A-Za-z0-9_.-]")
"""Characters that no stack's name has."""
GONE = "DELETE_COMPLETE"
STARTED_WITHIN = LATE_CALL
"""Seconds in which the service writes down an action that it has accepted."""


class RemoteStack(PolledAlike):
    """A stack of another orchestration service; the variant of OS::Heat::Stack."""

    type_name = REMOTE_STACK
    uses_credentials = True
    always_updated = True
    support_status = SupportStatus("HIDDEN", version="2014.2")
    description = "A stack in another region or cloud."
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES
    identity = "its name, and a tag"
    variant_of = "OS::Heat::Stack"

    def validate(self, properties: JsonMap) -> None:
        """Refuse certificates that are none.

        :raises PropertyError: the value has no certificate.
        """
        text = (properties.get("context") or {}).get("ca_cert")
        if isinstance(text, str) and text and "-----BEGIN CERTIFICATE-----" not in text:
            raise PropertyError("must be certificates in PEM", ("context", "ca_cert"))

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the place can be reached, or continue with a stack that is there already.

        That the place is asked is stored before: a creation that never came so far leaves nothing, so its
        resource can be deleted without a credential that works.
        """
        service = orchestration(target, context)
        if target.physical_id is not None:
            return self._continue_creation(target, service, context)
        progress = {"action": "CREATE", "since": context.now(), "asks": True}
        return Poll(progress, 0.0, data={**target.data, ASKED: True})

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Create the stack with a generated name and a tag; then poll it."""
        if not progress.get("asks") or target.physical_id is not None:
            return self.poll(target, progress, context)
        service = orchestration(target, context)
        name = stack_name(target)
        body = {**goal(target, context), "stack_name": name, "tags": mark_of(target.key)}
        try:
            stack_id = checked(target, lambda: service.post("/stacks", body))["stack"]["id"]
        except Conflict:
            created_id = self.find_created(target.key, target, context)
            if created_id is None:
                raise
            stack_id = created_id
        stack = {"id": stack_id, "stack_name": name}
        progress = {"action": "CREATE", "since": context.now()}
        return Poll(progress, FIRST_PAUSE, physical_id=str(stack_id), data={**target.data, REMOTE: stack})

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Send the goal; the stack itself detects the changes.

        :raises ReplaceNeeded: the place does not have the stack, or not with these credentials.
        """
        try:
            return self._begin("UPDATE", target, context)
        except RemoteNotFound as error:
            raise ReplaceNeeded(str(error)) from error

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        if target.physical_id is None:
            return Done()
        try:
            return self._begin("DELETE", target, context)
        except RemoteNotFound:
            return Done()

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        try:
            return self.poll(target, progress, context)
        except RemoteNotFound:
            return Done()

    def poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Return the end of the action, or the next poll.

        :raises PermanentError: the stack has failed, or something else was done to it.
        """
        _, stack = self._read(target, context)
        action, status = split(stack)
        if status == "IN_PROGRESS":
            return Poll(progress, pause(progress["since"], context.now()))
        if progress.get("waits"):
            return self._begin(progress["action"], target, context)
        late = context.now() - progress["since"] >= STARTED_WITHIN
        if moment(stack) == progress.get("before") and not late:
            return Poll(progress, STEADY_PAUSE)
        if status != "COMPLETE" or action != progress["action"]:
            raise went_to(status_of(stack), stack.get("stack_status_reason"))
        return Done(data={**target.data, REMOTE: dict(stack)})

    def handle_cancel(self, target: ResourceView, progress: Json, context: StepContext) -> None:
        """Stop the creation or update there."""
        service, stack = self._read(target, context)
        if status_of(stack) in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
            service.post(f"{path_of(stack)}/actions", {"cancel_without_rollback": None})

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Suspend the stack, unless it is."""
        return self._begin("SUSPEND", target, context)

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Resume the stack, unless it is."""
        return self._begin("RESUME", target, context)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        return self._begin("CHECK", target, context)

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start a snapshot of the stack, or find the one that a lost attempt has started."""
        service, stack = self._read(target, context)
        path = f"{path_of(stack)}/snapshots"
        snapshot_id = find_snapshot(service, path, target) if target.attempt > 1 else None
        if snapshot_id is None:
            try:
                snapshot_id = service.post(path, {"name": mark_of(target.key)})["id"]
            except Conflict as error:
                raise RetryableError(str(error)) from error
        return Poll({SNAPSHOT: snapshot_id, "since": context.now()}, FIRST_PAUSE)

    def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        service, stack = self._read(target, context)
        snapshot = service.get(f"{path_of(stack)}/snapshots/{progress[SNAPSHOT]}")["snapshot"]
        if snapshot["status"] == "IN_PROGRESS":
            return Poll(progress, pause(progress["since"], context.now()))
        if snapshot["status"] != "COMPLETE":
            raise went_to(f"SNAPSHOT_{snapshot['status']}", snapshot.get("status_reason"))
        return Done(data={SNAPSHOT: snapshot["id"]})

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the snapshot; one that does not exist is ignored."""
        if target.physical_id is None:
            return Done()
        try:
            service, stack = self._read(target, context)
            path = f"{path_of(stack)}/snapshots"
            snapshot_id = target.data.get(SNAPSHOT) or find_snapshot(service, path, target)
            if snapshot_id is not None:
                service.delete(f"{path}/{snapshot_id}")
        except RemoteNotFound:
            return Done()
        except Conflict as error:
            raise RetryableError(str(error)) from error
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the stack with the tag; none where the place was never asked for one."""
        if not target.data.get(ASKED):
            return None
        service = orchestration(target, context)
        return next(iter(marked(TagMark(), mark_of(key), service, "/stacks", "stacks")), None)

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether the region changes.

        Other credentials may be new ones for the same place: the update finds out.
        """
        return cloud_of(before).region != cloud_of(after).region

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the stack is gone; a failed one is repaired by an update."""
        if target.physical_id is None:
            return True
        try:
            self._read(target, context)
        except RemoteNotFound:
            return True
        return False

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the outputs, each by its name and all as ``outputs``; the stack's name, and all of it."""
        stack = target.data.get(REMOTE) or {}
        outputs = {item["output_key"]: item.get("output_value") for item in stack.get("outputs") or ()}
        return {**outputs, "outputs": outputs, "stack_name": stack.get("stack_name"), "show": stack}

    # -- inside ------------------------------------------------------------------------------------

    def _continue_creation(self, target: ResourceView, service: Service, context: StepContext) -> Step:
        """Wait for a stack that a lost attempt has created, or repair it."""
        action, status = split(read(target, service))
        if status == "FAILED":
            return self._begin("UPDATE", target, context)
        return self.poll(target, {"action": action, "since": context.now()}, context)

    def _read(self, target: ResourceView, context: StepContext) -> tuple[Service, JsonMap]:
        service = orchestration(target, context)
        return service, read(target, service)

    def _begin(self, action: str, target: ResourceView, context: StepContext) -> Step:
        """Start an action, once no other one is in progress.

        :raises RemoteNotFound: the stack is gone.
        """
        service, stack = self._read(target, context)
        status = status_of(stack)
        since = context.now()
        waiting = Poll({"action": action, "since": since, "waits": True}, STEADY_PAUSE)
        if action in ("SUSPEND", "RESUME") and status == f"{action}_COMPLETE":
            return Done(data={**target.data, REMOTE: stack})
        if status.endswith("_IN_PROGRESS") and action != "DELETE":
            return waiting
        try:
            send(action, stack, target, service, context)
        except Conflict:
            return waiting
        return Poll({"action": action, "since": since, "before": moment(stack)}, FIRST_PAUSE)


def stack_name(target: ResourceView) -> str:
    """Return the name of the stack: the same for each attempt, and like no other one's."""
    name = NAME.sub("_", target.physical_name)
    return name if name[0].isalpha() else f"s{name[1:]}"


def goal(target: ResourceView, context: StepContext) -> dict[str, Json]:
    """Return the part of requests that describes the stack, as Heat does.

    It has all files of the stack around it, and that one's environment but for its parameters.
    """
    inputs = context.children.inputs()
    properties = target.properties
    parameters = properties["parameters"] or {}
    body = {
        "template": properties["template"],
        "parameters": parameters,
        "environment": {**inputs.environment, "parameters": parameters},
        "files": dict(inputs.files),
        # The stack around it has its own rollback, which updates this one, too.
        "disable_rollback": True,
    }
    return {**body, **({"timeout_mins": properties["timeout"]} if properties["timeout"] else {})}


def send(action: str, stack: JsonMap, target: ResourceView, service: Service, context: StepContext) -> None:
    """Ask for an action.

    :raises Conflict: another action has just begun.
    """
    path = path_of(stack)
    if action == "DELETE":
        service.delete(path)
    elif action == "UPDATE":
        tags = {"tags": as_text(stack["tags"])} if stack.get("tags") else {}
        checked(target, lambda: service.put(path, {**goal(target, context), **tags}))
    else:
        service.post(f"{path}/actions", {action.lower(): None})


def checked(target: ResourceView, request: Callable[[], Json]) -> Json:
    """Return the answer to a goal.

    :raises PermanentError: the service refuses the template; in Heat's words.
    """
    try:
        return request()
    except PermanentError as error:
        if error.kind != "BadRequest":
            raise
        place = location_of(cloud_of(target.properties))
        text = f'Failed validating stack template using Heat endpoint at {place} due to "{error}"'
        raise PermanentError(text, kind="StackValidationFailed") from error


def read(target: ResourceView, service: Service) -> JsonMap:
    """Return the stack.

    :raises RemoteNotFound: the stack is gone; deleted stacks can be read for a while.
    """
    if target.physical_id is None:
        raise RemoteNotFound(f"{target.name} has no stack")
    stored = target.data.get(REMOTE) or {}
    # An adopted stack's name is not known: the service redirects to the address with it.
    place = path_of(stored) if stored.get("stack_name") else f"/stacks/{quoted(target.physical_id)}"
    stack: JsonMap = service.get(place)["stack"]
    if status_of(stack) == GONE:
        raise RemoteNotFound(f"the stack {stack['stack_name']} ({stack['id']}) is deleted")
    return stack


def find_snapshot(service: Service, path: str, target: ResourceView) -> str | None:
    """Return the id of the snapshot that a step with the resource's key has started."""
    listed = service.get(path)["snapshots"]
    return next((str(item["id"]) for item in listed if item.get("name") == mark_of(target.key)), None)


def path_of(stack: JsonMap) -> str:
    """Return the path of a stack."""
    return f"/stacks/{quoted(stack['stack_name'])}/{quoted(stack['id'])}"


def quoted(part: str) -> str:
    """Return a part of a path."""
    return urllib.parse.quote(str(part), safe="")


def status_of(stack: JsonMap) -> str:
    """Return the status as ``ACTION_STATUS``."""
    return str(stack.get("stack_status") or "")


def split(stack: JsonMap) -> tuple[str, str]:
    """Return the action and the status."""
    action, _, status = status_of(stack).partition("_")
    return action, status


def moment(stack: JsonMap) -> list[Json]:
    """Return the fields that change with each action, as JSON."""
    return [stack.get("stack_status"), stack.get("updated_time"), stack.get("stack_status_reason")]


def went_to(status: str, reason: Json) -> PermanentError:
    """Return the error of a stack in another state than it should be, in Heat's words."""
    return PermanentError(f'Went to status {status} due to "{reason or "Unknown"}"', kind="ResourceInError")
