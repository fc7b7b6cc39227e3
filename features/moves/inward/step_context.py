"""The context with which an import asks resource types for the goals of nested stacks: it reads only.

It offers no service of the cloud.  A type that needs one cannot be moved.
"""

import typing
from collections.abc import Callable, Hashable, Mapping, Sequence

from ....conductor.steps.child_secrets import failing_outputs, open_inner_values, open_outputs
from ....db.rows import Resource
from ....db.states import Status
from ....engine.children import inputs_of_child
from ....engine.context import Compiled, EngineContext
from ....resources.contract.children import ChildInputs, ChildReads, ChildState, GroupMember, in_order
from ....resources.contract.cloud import RemoteCloud
from ....resources.contract.context import GoalContext
from ....resources.contract.errors import PermanentError
from ....resources.contract.views import DeletionView, ReferencedResource, Sibling
from ....sealing.secrets import Secrets
from ....shapes import Json, JsonMap
from .built import BuiltStack

T = typing.TypeVar("T")

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session


class ReadChildren(ChildReads):
    """The reads of the nested stack of one resource.

    :param parent: the goal of the stack around it.
    :param resource: name of the resource, and its type as declared.
    :param child: the nested stack; None: it is not built yet.
    :param template: Heat's template of the nested stack, for types that fetch it from an address.
    """

    def __init__(
        self,
        context: EngineContext,
        secrets: Secrets,
        parent: Compiled,
        resource: tuple[str, str],
        *,
        child: BuiltStack | None = None,
        template: str = "",
    ) -> None:
        self._context = context
        self._secrets = secrets
        self._parent = parent
        self._resource = resource
        self._child = child
        self._template = template

    def file(self, name: str) -> str:
        files = dict(self._parent.files)
        if (operator := self._context.registry.operator) is not None:
            files = dict(operator.with_templates(files))
        if name not in files:
            raise PermanentError(f"the file {name} is not among those of the stack")
        return str(files[name])

    def template(self, url: str) -> str:
        """Return Heat's template of the nested stack, in the place of that at the address."""
        return self._template

    def inputs(self) -> ChildInputs:
        parent = self._parent
        return inputs_of_child(
            self._context, parent.environment, parent.files, self._resource, self._secrets.open
        )

    def members(self) -> Sequence[GroupMember]:
        members = [
            GroupMember(
                row.name,
                None,
                self._secrets.open_value(row.reference_id),
                row.status == Status.FAILED,
                row.created_at,
                row.physical_id,
            )
            for row in self._rows.values()
        ]
        return in_order(members)

    def outputs(self) -> JsonMap:
        return (
            {} if self._child is None else open_outputs(self._child.stack.outputs, self._rows, self._secrets)
        )

    def output_errors(self) -> Mapping[str, str]:
        if self._child is None:
            return {}
        return failing_outputs(self._child.stack.outputs, self._rows, self._secrets)

    def inner_values(self, requested: Sequence[Sequence[str | int]]) -> JsonMap:
        return open_inner_values(requested, self._rows, self._secrets)

    def state(self) -> ChildState | None:
        """Return the state of the nested stack; None: it is not built yet."""
        if self._child is None:
            return None
        stack = self._child.stack
        return ChildState(stack.action, stack.status, stack.reason, stack.name, stack.traversal, id=stack.id)

    @property
    def _rows(self) -> dict[str, Resource]:
        return {} if self._child is None else self._child.present_rows()


class ReadContext(GoalContext):
    """The calls by which a type makes the goal of the nested stack of one resource.

    :param now: seconds since the epoch.
    :param rows: the stack's resources that are built already, by name.
    """

    def __init__(
        self, now: float, rows: Mapping[str, Resource], secrets: Secrets, children: ReadChildren
    ) -> None:
        self._now = now
        self._rows = rows
        self._secrets = secrets
        self._children = children

    @property
    def children(self) -> ReadChildren:
        return self._children

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        for row in self._rows.values():
            if row.physical_id == physical_id:
                return ReferencedResource(row.plugin, self._secrets.open_value(row.data) or {}, row.name)
        return None

    def sibling(self, name: str) -> Sibling:
        """Refuse: a resource of another name may not be built yet.

        :raises PermanentError: always.
        """
        raise PermanentError(f"an import does not read the resource {name}")

    def replacement(self) -> None:
        """Return none: an import reads no resource that another one replaces."""

    def deletions(self) -> Sequence[DeletionView]:
        """Return none: a stack that is being deleted is not moved."""
        return ()

    def now(self) -> float:
        return self._now

    def checkpoint(self) -> None:
        """Do nothing: an import is not cancelled."""

    def session(self) -> "Session":
        """Refuse.

        :raises PermanentError: always.
        """
        raise PermanentError("an import asks no service of the cloud")

    def adapter(self, service: str, version: str, microversion: str | None = None) -> "Adapter":
        """Refuse.

        :raises PermanentError: always.
        """
        raise PermanentError("an import asks no service of the cloud")

    def remote_adapter(
        self, cloud: RemoteCloud, service: str, version: str, credential: Callable[[], Json]
    ) -> "Adapter":
        """Refuse.

        :raises PermanentError: always.
        """
        raise PermanentError("an import asks no service of the cloud")

    def shared(
        self, key: Hashable, make: Callable[[], T], max_age: float, *, checked_by_use: bool = False
    ) -> T:
        """Return what `make` makes: nothing is shared with other stacks."""
        return make()
