"""The base of the types of the load balancing service, which changes one part of a balancer at a time.

As long as it works on a balancer, it answers 409 to every change of it and of its parts.  A step that meets
that waits for its turn: it reads the state of what is worked on, and repeats its request once that is free.
A balancer that is deleted with its stack goes with all its parts by one request, where `cascade` allows it.
"""

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Mapping
from contextlib import contextmanager

from ....shapes import Json, JsonMap
from ...contract import CloudCalls, PermanentError, Poll, ResourceView, RetryableError, Step, StepContext
from ..declared import DeclaredType
from ..marks import TagMark
from ..polling import STEADY_PAUSE, pause
from ..service import INTERFACES, LATE_CALL, Conflict, RemoteNotFound, Service
from .cascade import tree_to_delete
from .state import BALANCERS, PENDING, PROVISIONED, ReadState

TURN = "turn"
"""Key of the progress of a step that waits: the path of what the service works on."""
CASCADED = "cascaded"
"""Key of the progress of a deletion that has deleted the whole balancer: the moment of that."""
CHANGED = "changed"
"""Key of the progress of an update that waits: the names of the properties that have changed."""
_IMMUTABLE = re.compile(r"\b(?P<kind>[A-Za-z0-9 ]+?) (?P<id>[0-9a-fA-F-]{36}) is immutable")
_WORKED_ON = re.compile(
    r"Invalid state PENDING_\w+ of (?P<kind>loadbalancer) resource (?P<id>[0-9a-fA-F-]{36})"
)
"""The texts of the two refusals."""
_COLLECTIONS: Mapping[str, str] = {
    "loadbalancer": BALANCERS,
    "listener": "/lbaas/listeners",
    "pool": "/lbaas/pools",
    "l7policy": "/lbaas/l7policies",
}
"""By the thing's name in such a text, without spaces, the collection in which its state can be read."""


class NotItsTurn(RetryableError):
    """The service works on the balancer, or on a part of it, and takes no change meanwhile.

    :ivar path: path of what it works on; "": the text does not say so.
    """

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.path = path


class BalancerService(Service):
    """Calls of the load balancing service.  Those that change something may raise `NotItsTurn`."""

    def post(self, path: str, body: Json, **headers: str) -> Json:
        with _turns():
            return super().post(path, body, **headers)

    def put(self, path: str, body: Json, *, creates: bool = False, **headers: str) -> Json:
        with _turns():
            return super().put(path, body, creates=creates, **headers)

    def delete(self, path: str, **query: str | int | bool) -> None:
        with _turns():
            super().delete(path, **query)


@contextmanager
def _turns() -> typing.Iterator[None]:
    try:
        yield
    except Conflict as error:
        match = _WORKED_ON.search(str(error)) or _IMMUTABLE.search(str(error))
        if match is None:
            raise
        words = match["kind"].lower().split()
        names = ("".join(words[-length:]) for length in (1, 2))
        collection = next((_COLLECTIONS[name] for name in names if name in _COLLECTIONS), None)
        raise NotItsTurn(str(error), f"{collection}/{match['id']}" if collection else "") from error


class OctaviaType(DeclaredType):
    """Base of the types of the load balancing service."""

    service = "load-balancer"
    project_filter = "project_id"
    always_named = True


class BalancerPart(OctaviaType):
    """Base of the types of balancers and their parts, which take turns."""

    mark = TagMark()
    status = PROVISIONED
    slow_delete = True

    def service_for(self, context: CloudCalls) -> Service:
        """Return the calls of the service, with an error of its own for a balancer that is worked on."""
        return BalancerService(context.adapter(self.service, INTERFACES[self.service].version))

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the thing, at once or when it is its turn."""
        create = super().handle_create
        return self._in_turn({"since": context.now()}, lambda: create(target, context), context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Create the thing, if that had to wait; then poll until it is in a good state."""
        if TURN not in progress:
            check = super().check_create_complete
            return self._in_turn(progress, lambda: check(target, progress, context), context)
        if target.attempt > 1 and target.physical_id is None:
            created = self.find_created(target.key, target, context)
            target = dataclasses.replace(target, physical_id=created)
        create = super().handle_create
        return self._after_wait(progress, lambda: create(target, context), context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Change the thing, at once or when it is its turn."""
        update = super().handle_update
        progress = {"since": context.now(), CHANGED: sorted(changed)}
        return self._in_turn(progress, lambda: update(target, changed, context), context)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Change the thing, if that had to wait; then poll until it is in a good state."""
        if TURN not in progress:
            return super().check_update_complete(target, progress, context)
        update = super().handle_update
        changed = frozenset(progress[CHANGED])
        return self._after_wait(progress, lambda: update(target, changed, context), context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the thing, with its balancer where that is allowed, at once or when it is its turn."""
        progress = {"since": context.now()}
        return self._in_turn(progress, lambda: self._delete(target, progress, context), context)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Delete the thing, if that had to wait; then poll until it is gone."""
        if TURN not in progress:
            check = super().check_delete_complete
            return self._in_turn(progress, lambda: check(target, progress, context), context)
        status = self._turn_state(progress, context).status
        if progress[TURN].startswith(f"{BALANCERS}/") and not status:
            return self._deleted(target, context)
        delete = functools.partial(self._delete, target, progress, context)
        if status in PROVISIONED.bad and self._may_cascade(target, progress, context):
            return self._in_turn(progress, delete, context)
        return self._after_wait(progress, delete, context)

    def _delete(self, target: ResourceView, progress: JsonMap, context: StepContext) -> Step:
        """Delete the thing, or the whole balancer that it is a part of."""
        service = self.service_for(context)
        tree = tree_to_delete(target, service, context)
        if tree is None:
            return super().handle_delete(target, context)
        if tree.status not in PENDING and tree.take():
            try:
                if tree.has_grown(service):
                    return super().handle_delete(target, context)
                service.delete(tree.path, cascade="true")
            except RemoteNotFound:
                return self._deleted(target, context)
            progress = {**progress, CASCADED: context.now()}
        return self._wait_for_turn(progress, tree.path, context)

    def _may_cascade(self, target: ResourceView, progress: JsonMap, context: StepContext) -> bool:
        """Return whether a balancer that has failed goes with the thing.

        A state of failure that was read just after the request may be the one from before it; later it says
        that the service could not delete the balancer.
        """
        if context.now() - progress.get(CASCADED, context.now()) > LATE_CALL:
            return False
        return tree_to_delete(target, self.service_for(context), context) is not None

    def _in_turn(self, progress: JsonMap, step: Callable[[], Step], context: StepContext) -> Step:
        """Return the step that the function makes; where others have their turn, the next poll.

        :param progress: the progress of that poll, but for what it waits for.
        """
        try:
            return step()
        except NotItsTurn as error:
            return self._wait_for_turn(progress, error.path, context)

    def _wait_for_turn(self, progress: JsonMap, path: str, context: StepContext) -> Poll:
        return Poll(progress={**progress, TURN: path}, after=pause(progress["since"], context.now()))

    def _after_wait(self, progress: JsonMap, step: Callable[[], Step], context: StepContext) -> Step:
        """Return the step that the function makes, once nothing is worked on any more.

        :raises PermanentError: what was worked on has failed, so that it takes no more changes.
        """
        path = progress[TURN]
        state = self._turn_state(progress, context)
        if state.status in PROVISIONED.bad:
            text = f"load-balancer: {path.rpartition('/')[2]} has provisioning_status {state.status}"
            help_text = "it takes no changes until an administrator has failed it over"
            raise PermanentError(f"{text}: {help_text}", kind="ResourceInError")
        if state.status in PENDING or not state.take():
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        return self._in_turn(progress, step, context)

    def _turn_state(self, progress: JsonMap, context: StepContext) -> ReadState:
        """Return the state of what a step waits for, which all steps of the project share."""
        path = progress[TURN]
        return context.shared(("turn", path), lambda: ReadState(self._status(path, context)), STEADY_PAUSE)

    def _status(self, path: str, context: StepContext) -> str:
        """Return the state of a balancer or a part of it; "": there is none."""
        if not path:
            return ""
        try:
            answer = self.service_for(context).get(path)
        except RemoteNotFound:
            return ""
        return PROVISIONED.of(next(iter(answer.values())))
