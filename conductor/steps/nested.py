"""The use cases of nested stacks as steps need them; cli/wiring fills this protocol."""

import typing
from collections.abc import Callable, Mapping

from ...db.ids import ResourceId, StackId
from ...db.rows import Resource, Snapshot, Stack
from ...db.states import TaskKind
from ...engine.parent_resource import ParentResource
from ...resources.contract.children import ChildGoal, ChildInputs
from ...shapes import Json, JsonMap


class NestedStackOperations(typing.Protocol):
    """The use cases of nested stacks that steps need: see engine.nested_stacks.NestedStacks.  Thread-safe.

    All that change something check in their transaction, by `ParentResource.guard`, whether the step may act.
    """

    def create(self, nest: ParentResource, goal: ChildGoal, adopted: JsonMap | None = None) -> StackId:
        """Start to create the child, or find the one that the resource has."""

    def update(self, nest: ParentResource, goal: ChildGoal) -> StackId:
        """Start to bring the child to another goal, whatever it does now."""

    def delete(self, nest: ParentResource) -> None:
        """Start to delete the child, whatever it does now; nothing happens where there is none."""

    def act(self, nest: ParentResource, kind: TaskKind) -> StackId:
        """Start to check, suspend or resume the child."""

    def snapshot(self, nest: ParentResource) -> StackId:
        """Start a snapshot of the child, or find the one that an earlier attempt has started."""

    def snapshot_of(self, nest: ParentResource) -> Snapshot | None:
        """Return the child's snapshot that a step with the parent resource's key has started."""

    def delete_snapshot(self, nest: ParentResource) -> None:
        """Start to delete that snapshot, whatever the child does."""

    def find(self, stack_id: StackId, resource_id: ResourceId) -> Stack | None:
        """Return the child of a resource; None: it has none."""

    def rows(self, key: StackId) -> list[Resource]:
        """Return the child's resources."""

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, JsonMap]:
        """Return the resources' definitions in the generated template of a child, in clear."""

    def file(self, stack_id: StackId, name: str) -> str:
        """Return a file of the stack."""

    def has_template(
        self,
        child: Stack,
        member: Resource,
        resource: tuple[str, str],
        type_name: str,
        unseal: Callable[[str], Json],
    ) -> bool:
        """Return whether a type's name leads to the template that a member of a group has."""

    def template(self, url: str) -> str:
        """Return the text of a template at an address."""

    def inputs(
        self, stack_id: StackId, resource: tuple[str, str], unseal: Callable[[str], Json]
    ) -> ChildInputs:
        """Return the parameters that a child of a resource would get, by the resource's name and type."""
