"""A conductor's side of a step, without a conductor: a clock that is moved by hand, and siblings as given."""

import itertools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stoker.engine.signal_urls import SignalAddresses
from stoker.resources.contract.children import ChildGoal, ChildInputs, ChildState, GroupMember
from stoker.resources.contract.errors import Cancelled, ChildGone, PermanentError
from stoker.resources.contract.guests import GuestAccess, Presigned, StackUser
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.contract.software import ConfigSpec, DeploymentSpec, DeploymentState
from stoker.resources.contract.steps import Done, Park, Poll, Step
from stoker.resources.contract.views import (
    DeletionView,
    ReferencedResource,
    ReplacementView,
    ResourceView,
    Sibling,
    StackFacts,
)
from stoker.shapes import Json

STACK = StackFacts(id="5ca1ab1e-0000-4000-8000-000000000001", name="demo", project_id="acme")
START = 1_700_000_000.0


class FakeChildren:
    """Implements resources.children.Children: one child, which stays as it was begun.

    :ivar goals: last requested goals by the child's id.
    :ivar states: states by the child's id, at most one.
    :ivar requests: actions and ids of the children, in the order of the calls.
    """

    def __init__(self) -> None:
        self.goals: dict[str, ChildGoal] = {}
        self.states: dict[str, ChildState] = {}
        self.requests: list[tuple[str, str]] = []
        self.values: dict[str, Json] = {}
        self.files: dict[str, str] = {}
        self.failed: set[str] = set()

    def create(self, key: str, goal: ChildGoal, adopted: Mapping[str, Json] | None = None) -> str:
        if (state := self.state()) is not None:
            return state.id
        return self._begin("CREATE", goal, f"child-{key}"[:36])

    def update(self, goal: ChildGoal) -> str:
        return self._begin("UPDATE", goal)

    def delete(self) -> None:
        if self.state() is not None:
            self._begin("DELETE")

    def act(self, action: str) -> str:
        return self._begin(action.upper())

    def snapshot(self, key: str) -> str:
        return self._begin("SNAPSHOT")

    def snapshot_state(self, key: str) -> ChildState | None:
        return self.state()

    def delete_snapshot(self, key: str) -> None:
        self.requests.append(("DELETE_SNAPSHOT", key))

    def state(self) -> ChildState | None:
        return next((replace(state, id=child) for child, state in self.states.items()), None)

    def inner_values(self, requested: Sequence[Sequence[str | int]]) -> Mapping[str, Json]:
        return {}

    def output_errors(self) -> Mapping[str, str]:
        return {}

    def outputs(self) -> Mapping[str, Json]:
        return self.values

    def members(self) -> Sequence[GroupMember]:
        state = self.state()
        goal = None if state is None else self.goals.get(state.id)
        bodies = {} if goal is None else goal.template["resources"]
        group_members = [
            GroupMember(name, body, f"ref-{name}", name in self.failed) for name, body in bodies.items()
        ]
        return sorted(group_members, key=lambda item: (not item.is_failed, item.name))

    def file(self, name: str) -> str:
        if name not in self.files:
            raise PermanentError(f"no file {name}")
        return self.files[name]

    def template(self, url: str) -> str:
        return self.file(url)

    def inputs(self) -> ChildInputs:
        return ChildInputs(self.files, {"parameter_defaults": {"size": 3}, "resource_registry": {}})

    def end(self, child: str, status: str = "COMPLETE", reason: str = "") -> None:
        """The child comes to an end."""
        state = self.states[child]
        if (state.action, status) == ("DELETE", "COMPLETE"):
            del self.states[child]
        else:
            self.states[child] = ChildState(state.action, status, reason, traversal=state.traversal)

    def _begin(self, action: str, goal: ChildGoal | None = None, child: str | None = None) -> str:
        if child is None:
            if (state := self.state()) is None:
                raise ChildGone
            child = state.id
        self.requests.append((action, child))
        traversal = str(len(self.requests))
        self.states[child] = ChildState(action, "IN_PROGRESS", f"Stack {action} started", traversal=traversal)
        if goal is not None:
            self.goals[child] = goal
        return child


class FakeSoftware:
    """Implements resources.contract.software.Software in memory; nobody signals."""

    def __init__(self) -> None:
        self.configs: dict[str, ConfigSpec] = {}
        self.deployments: dict[str, DeploymentSpec] = {}

    def config(self, config_id: str) -> ConfigSpec | None:
        return self.configs.get(config_id)

    def create_config(self, config_id: str, spec: ConfigSpec, *, made_of: Json = None) -> None:
        self.configs.setdefault(config_id, spec)

    def has_config(self, config_id: str) -> bool:
        return config_id in self.configs

    def adopt_config(self, config_id: str) -> None:
        if config_id not in self.configs:
            raise PermanentError(f"Software config with id {config_id} not found")

    def delete_configs(self) -> None:
        self.configs.clear()

    def deploy(self, deployment_id: str, spec: DeploymentSpec) -> None:
        self.deployments[deployment_id] = spec

    def deployment(self, deployment_id: str) -> DeploymentState | None:
        spec = self.deployments.get(deployment_id)
        if spec is None:
            return None
        return DeploymentState("IN_PROGRESS" if spec.waits else "COMPLETE", "", {}, spec.derived, 0)

    def adopt_deployment(self, deployment_id: str) -> None:
        if deployment_id not in self.deployments:
            raise PermanentError(f"Deployment with id {deployment_id} not found")

    def delete_deployments(self) -> None:
        self.deployments.clear()


class FakeContext:
    """Implements StepContext.

    :ivar row: number of the resource's row.
    :ivar cancelled: the next checkpoint or pause ends the step.
    :ivar siblings: resources by name, for `peer`.
    :ivar to_delete: resources that the stack's deletion has still to delete.
    :ivar paused: seconds of each pause so far.
    """

    def __init__(self) -> None:
        self.time = START
        self.row = 1
        self.cancelled = False
        self.siblings: dict[str, Sibling] = {}
        self.referred: dict[str, ReferencedResource] = {}
        self.to_delete: list[DeletionView] = []
        self.paused: list[float] = []
        self._children: dict[int, FakeChildren] = {}
        self.software = FakeSoftware()

    @property
    def children(self) -> FakeChildren:
        """The nested stack of the resource; all resources are in one stack, and so have the same files."""
        if self.row not in self._children:
            self._children[self.row] = FakeChildren()
            for others in self._children.values():
                self._children[self.row].files = others.files
                break
        return self._children[self.row]

    def now(self) -> float:
        return self.time

    def checkpoint(self) -> None:
        if self.cancelled:
            raise Cancelled

    def pause(self, seconds: float) -> None:
        self.checkpoint()
        self.paused.append(seconds)
        self.time += seconds

    def sibling(self, name: str) -> Sibling:
        if name not in self.siblings:
            raise PermanentError(f"The stack has no resource {name}")
        return self.siblings[name]

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        return self.referred.get(physical_id)

    def replacement(self) -> ReplacementView | None:
        return None

    def deletions(self) -> Sequence[DeletionView]:
        return self.to_delete

    def signal_url(self, resource_name: str) -> str:
        return (
            f"http://api.test/v1/{STACK.project_id}/stacks/{STACK.name}/{STACK.id}"
            f"/resources/{resource_name}/signal"
        )

    def session(self) -> typing.Any:
        raise PermanentError("The stack has no credential of a user")

    def presigned(self) -> Presigned:
        return Presigned(f"{self.signal_url('my handle')}/1", "5161")

    def signal_user(self) -> StackUser:
        return SignalAddresses("http://api.test", b"key").signal_user(STACK, "thing", 1)

    def guest_access(self) -> GuestAccess:
        return SignalAddresses("http://api.test", b"key").guest_access(STACK, "thing", self.row)


_ids = itertools.count(1)


def target_of(
    plugin: ResourceType,
    properties: Mapping[str, Json] | None = None,
    *,
    name: str = "thing",
    key: str = "11111111-2222-4333-8444-555555555555",
    **fields: typing.Any,
) -> ResourceView:
    """A resource of the type, its properties resolved as a conductor would."""
    return ResourceView(
        id=next(_ids),
        name=name,
        type=type(plugin).__name__,
        stack=STACK,
        properties=resolve_properties(plugin.properties_schema, properties or {}),
        key=key,
        **fields,
    )


def after(target: ResourceView, step: Step) -> ResourceView:
    """The resource with what a step wants to be stored."""
    fields = {name: getattr(target, name) for name in target.__dataclass_fields__}
    if step.physical_id is not None:
        fields["physical_id"] = step.physical_id
    if step.data is not None:
        fields["data"] = step.data
    return ResourceView(**fields)


def run(
    plugin: ResourceType,
    action: str,
    target: ResourceView,
    context: FakeContext,
    *,
    changed: frozenset[str] = frozenset(),
) -> ResourceView:
    """Run an action to its end, moving the clock from poll to poll; return the resource as it is then.

    :raises AssertionError: the step is parked, or has not ended after 1000 polls.
    """
    handle = getattr(plugin, f"handle_{action}")
    check = getattr(plugin, f"check_{action}_complete")
    step = handle(target, changed, context) if action == "update" else handle(target, context)
    for _ in range(1000):
        target = after(target, step)
        if isinstance(step, Done):
            return target
        assert not isinstance(step, Park), f"{target.name} is parked on {step.waits_on}"
        assert isinstance(step, Poll)
        context.time += step.after
        step = check(target, step.progress, context)
    raise AssertionError(f"{action} of {target.name} does not end")
