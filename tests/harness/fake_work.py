"""A conductor's side of a step, without a conductor: a clock that is moved by hand, and peers as given."""

import itertools
import typing
from collections.abc import Mapping

from stoker.resources.contract import (
    Done,
    Json,
    Park,
    Peer,
    Poll,
    ResourceType,
    StackFacts,
    Step,
    Target,
)
from stoker.resources.errors import Cancelled, Final
from stoker.resources.properties import resolve_properties

STACK = StackFacts(id="5ca1ab1e-0000-4000-8000-000000000001", name="demo", tenant="acme")
START = 1_700_000_000.0


class FakeWork:
    """Implements resources.contract.Work.

    :ivar cancelled: the next checkpoint or pause ends the step.
    :ivar peers: by name; what `peer` finds.
    :ivar paused: seconds of each pause so far.
    """

    def __init__(self) -> None:
        self.time = START
        self.cancelled = False
        self.peers: dict[str, Peer] = {}
        self.paused: list[float] = []

    def now(self) -> float:
        return self.time

    def checkpoint(self) -> None:
        if self.cancelled:
            raise Cancelled

    def pause(self, seconds: float) -> None:
        self.checkpoint()
        self.paused.append(seconds)
        self.time += seconds

    def peer(self, name: str) -> Peer:
        if name not in self.peers:
            raise Final(f"The stack has no resource {name}")
        return self.peers[name]

    def signal_url(self, resource_name: str) -> str:
        return (
            f"http://api.test/v1/{STACK.tenant}/stacks/{STACK.name}/{STACK.id}"
            f"/resources/{resource_name}/signal"
        )


_ids = itertools.count(1)


def target_of(
    plugin: ResourceType,
    properties: Mapping[str, Json] | None = None,
    *,
    name: str = "thing",
    key: str = "11111111-2222-4333-8444-555555555555",
    **fields: typing.Any,
) -> Target:
    """A resource of the type, its properties resolved as a conductor would."""
    return Target(
        id=next(_ids),
        name=name,
        type=type(plugin).__name__,
        stack=STACK,
        properties=resolve_properties(plugin.properties_schema, properties or {}),
        key=key,
        **fields,
    )


def after(target: Target, step: Step) -> Target:
    """The resource with what a step wants to be stored."""
    kept = {name: getattr(target, name) for name in target.__dataclass_fields__}
    if step.physical_id is not None:
        kept["physical_id"] = step.physical_id
    if step.data is not None:
        kept["data"] = step.data
    return Target(**kept)


def run(
    plugin: ResourceType,
    action: str,
    target: Target,
    work: FakeWork,
    *,
    changed: frozenset[str] = frozenset(),
) -> Target:
    """Run an action to its end, moving the clock from look to look; the resource as it is then.

    :raises AssertionError: it is parked, or has not ended after 1000 looks.
    """
    handle = getattr(plugin, f"handle_{action}")
    check = getattr(plugin, f"check_{action}_complete")
    step = handle(target, changed, work) if action == "update" else handle(target, work)
    for _ in range(1000):
        target = after(target, step)
        if isinstance(step, Done):
            return target
        assert not isinstance(step, Park), f"{target.name} is parked on {step.waits_on}"
        assert isinstance(step, Poll)
        work.time += step.after
        step = check(target, step.progress, work)
    raise AssertionError(f"{action} of {target.name} does not end")
