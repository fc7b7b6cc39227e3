"""Reading nested stacks for the steps of their parents' resources."""

import typing
from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from ..db import content, resources, snapshots, stacks
from ..db.errors import NotFound
from ..db.ids import ContentId, StackId
from ..db.rows import Resource, Snapshot, Stack
from ..resources.errors import ChildGone, PermanentError
from ..resources.nested.parameterize import restore_values
from ..resources.registry import ResourceRegistry
from ..sealing.stored import StoredLookup
from ..template.residual import evaluate
from .context import EngineContext
from .parent_resource import ParentResource, child_snapshot_id

Json = typing.Any


def living_child(conn: Connection, row: Resource, registry: ResourceRegistry) -> Stack | None:
    """Return the stack that a resource is; None: its type has none, or the stack does not exist."""
    if row.physical_id is None or not registry.is_nested(row.plugin):
        return None
    return stacks.find_undeleted(conn, StackId(row.physical_id))


def refuse_address(url: str) -> str:
    """Refuse to fetch a template.

    :raises PermanentError: always.
    """
    raise PermanentError(f"Could not fetch remote template '{url:.300}': no host is allowed")


class NestedStackReader:
    """Reads what steps need to know of nested stacks.  Thread-safe."""

    def __init__(self, context: EngineContext, templates: Callable[[str], str] = refuse_address) -> None:
        """Keep the collaborators.

        :param templates: returns the template at an address, or raises PermanentError.
        """
        self._context = context
        self._templates = templates

    def find(self, key: StackId, stack_id: StackId) -> Stack | None:
        """Return the child of a resource of the stack.

        None: it is deleted, or never existed, or belongs to another tree.  (An orphaned child is in another
        tree than the stack that it was created for.)
        """
        found = self._context.database.read(lambda conn: stacks.find_undeleted(conn, key))
        return found if found is not None and _same_tree(found, self.stack(stack_id)) else None

    def rows(self, key: StackId) -> list[Resource]:
        """Return the child's resources."""
        return self._context.database.read(lambda conn: resources.of_stack(conn, key))

    def bodies(self, child: Stack, unseal: Callable[[str], Json]) -> Mapping[str, Mapping[str, Json]]:
        """Return what the generated template of a child says of its resources, in clear.

        :param unseal: opens the token of a secret.
        """
        given = evaluate(child.parameters, StoredLookup(unseal))
        return restore_values(self.content(child.template_id), given)

    def file(self, stack_id: StackId, name: str) -> str:
        """Return the text of a file of the stack.

        :raises PermanentError: the stack has no such file.
        """
        files: Mapping[str, str] = self.content(self.stack(stack_id).files_id)
        if (operator := self._context.registry.operator) is not None:
            files = operator.with_templates(files)
        if name not in files:
            raise PermanentError(
                f"the file {name} is not among those of the stack", kind="StackValidationFailed"
            )
        return str(files[name])

    def template(self, url: str) -> str:
        """Return the text of a template at an address.

        :raises PermanentError: it cannot be fetched.
        """
        return self._templates(url)

    def snapshot_of(self, nest: ParentResource, key: StackId) -> Snapshot | None:
        """Return the child's snapshot that a step with the parent resource's key has begun."""
        self.parent(nest, key)
        snapshot_id = child_snapshot_id(nest.key)
        try:
            return self._context.database.read(lambda conn: snapshots.get(conn, key, snapshot_id))
        except NotFound:
            return None

    def parent(self, nest: ParentResource, key: StackId) -> Stack:
        """Return the stack around a child.

        :raises ChildGone: the child does not belong to its tree.
        """
        parent = self.stack(nest.stack_id)
        if not _same_tree(self.stack(key), parent):
            raise ChildGone
        return parent

    def stack(self, key: StackId) -> Stack:
        """Return a stack.

        :raises NotFound: there is none.
        """
        return self._context.database.read(lambda conn: stacks.get(conn, key))

    def content(self, key: ContentId) -> Mapping[str, Json]:
        """Return a stored template, environment or set of files."""
        found: Mapping[str, Json] = self._context.database.read(lambda conn: content.get(conn, key))
        return found


def _same_tree(one: Stack, other: Stack) -> bool:
    return one.root_id == other.root_id
