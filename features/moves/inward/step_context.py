"""The context with which an import asks resource types for the goals of nested stacks: it reads only.

It offers no service of the cloud.  A type that needs one cannot be moved.
"""

import typing
from collections.abc import Mapping, Sequence

from ....conductor.steps.child_secrets import failing_outputs, open_inner_values, open_outputs
from ....db.rows import Resource
from ....db.states import Status
from ....engine.children import inputs_of_child
from ....engine.context import Compiled, EngineContext
from ....resources.contract.children import ChildInputs, ChildState, GroupMember, in_order
from ....resources.contract.context import StepContext
from ....resources.contract.errors import PermanentError
from ....resources.contract.views import ReferencedResource, Sibling
from ....sealing.secrets import Secrets
from ....shapes import JsonMap
from .built import BuiltStack

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session


class ReadChildren:
    """The part of `Children` that reads, for the nested stack of one resource.

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
        """Return a file of the stack around it.

        :raises PermanentError: there is no such file.
        """
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
        """Return the inputs that the nested stack gets."""
        parent = self._parent
        return inputs_of_child(
            self._context, parent.environment, parent.files, self._resource, self._secrets.open
        )

    def members(self) -> Sequence[GroupMember]:
        """Return the members of a group, failed ones first, then the oldest."""
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
        """Return the outputs of the nested stack."""
        return (
            {} if self._child is None else open_outputs(self._child.stack.outputs, self._rows, self._secrets)
        )

    def output_errors(self) -> Mapping[str, str]:
        """Return the errors of outputs that can never be computed."""
        if self._child is None:
            return {}
        return failing_outputs(self._child.stack.outputs, self._rows, self._secrets)

    def inner_values(self, requested: Sequence[Sequence[str | int]]) -> JsonMap:
        """Return attributes of resources of the nested stack."""
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


class ReadContext:
    """The part of `StepContext` that reads, for one resource.

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

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return self._now

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        """Return another resource of the stack; None: there is none with this physical id."""
        for row in self._rows.values():
            if row.physical_id == physical_id:
                return ReferencedResource(row.plugin, self._secrets.open_value(row.data) or {}, row.name)
        return None

    def sibling(self, name: str) -> Sibling:
        """Refuse.

        :raises PermanentError: always.
        """
        raise PermanentError(f"an import does not read the resource {name}")

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

    @property
    def children(self) -> ReadChildren:
        """Return the nested stack of the resource."""
        return self._children

    def as_context(self) -> StepContext:
        """Return it as resource types take it, which call nothing else in an import."""
        return typing.cast(StepContext, self)
