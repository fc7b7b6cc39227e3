"""The use cases of nested stacks as steps need them; cli/wiring fills this protocol."""

import typing
from collections.abc import Callable, Mapping

from ...db.ids import StackId
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
        """Start to create the child, or find it if an earlier attempt did."""

    def update(self, nest: ParentResource, key: StackId, goal: ChildGoal) -> None:
        """Start to bring the child to another goal, whatever it does now."""

    def delete(self, nest: ParentResource, key: StackId) -> None:
        """Start to delete the child, whatever it does now."""

    def act(self, nest: ParentResource, key: StackId, kind: TaskKind) -> None:
        """Start to check, suspend or resume the child."""

    def snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Start a snapshot of the child, or find the one that an earlier attempt has started."""

    def snapshot_of(self, nest: ParentResource, key: StackId) -> Snapshot | None:
        """Return the child's snapshot that a step with the parent resource's key has started."""

    def delete_snapshot(self, nest: ParentResource, key: StackId) -> None:
        """Start to delete that snapshot, whatever the child does."""

    def find(self, key: StackId, root_id: StackId) -> Stack | None:
        """Return the child of a resource of a tree; None: the tree has no such stack."""

    def rows(self, key: StackId) -> list[Resource]:
        """Return the child's resources."""

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, JsonMap]:
        """Return the resources' definitions in the generated template of a child, in clear."""

    def file(self, stack_id: StackId, name: str) -> str:
        """Return a file of the stack."""

    def template(self, url: str) -> str:
        """Return the text of a template at an address."""

    def inputs(
        self, stack_id: StackId, resource: tuple[str, str], unseal: Callable[[str], Json]
    ) -> ChildInputs:
        """Return the parameters that a child of a resource would get, by the resource's name and type."""
