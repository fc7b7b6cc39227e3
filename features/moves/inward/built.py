"""The rows of Stoker's that one tree of stacks becomes, before they are stored; values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....db.ids import ContentId
from ....db.imported_keys import ImportedKey
from ....db.rows import Event, Resource, Snapshot, Stack
from ....db.software import StoredConfig, StoredDeployment
from ....engine.context import Compiled
from ....shapes import Json


@dataclass(frozen=True)
class Resizing:
    """The members of a group that an update with the same template changes.

    A signal has resized the group, or members have another definition than the group's: each update brings it
    to the size that the template says.

    :ivar deleted, created, changed: names of members.
    """

    deleted: Sequence[str] = ()
    created: Sequence[str] = ()
    changed: Sequence[str] = ()


@dataclass(frozen=True)
class BuiltStack:
    """The rows of one stack.

    :ivar compiled: the stack's goal as an update would have it.
    :ivar rows: the stack's resources, replaced ones too; of each name the present one comes last.
    :ivar children: the stacks nested in it.
    :ivar resizing: what an update with the same template would change, if it is a group.
    """

    stack: Stack
    compiled: Compiled = field(repr=False)
    rows: Sequence[Resource] = ()
    children: Sequence["BuiltStack"] = ()
    resizing: Resizing = Resizing()

    def all(self) -> Iterator["BuiltStack"]:
        """Yield it, and all stacks nested in it."""
        yield self
        for child in self.children:
            yield from child.all()

    def present_rows(self) -> dict[str, Resource]:
        """Return the resources that were not replaced, by name."""
        return {row.name: row for row in self.rows if row.replaced_by is None and row.snapshot_id is None}


@dataclass(frozen=True)
class BuiltTree:
    """The rows of one tree.

    :ivar contents: templates, environments and files by their ids.
    :ivar credential: the credential of the root, sealed; None: it has none.
    :ivar credential_user: id of the user whose rights the credential gives; None: not known.
    :ivar notes: what differs from Heat after the move.
    """

    root: BuiltStack
    contents: Mapping[ContentId, Json] = field(repr=False)
    events: Sequence[Event] = ()
    snapshots: Sequence[Snapshot] = ()
    copies: Sequence[Resource] = ()
    keys: Sequence[ImportedKey] = ()
    configs: Sequence[StoredConfig] = ()
    deployments: Sequence[StoredDeployment] = ()
    credential: Json = field(default=None, repr=False)
    credential_user: str | None = None
    notes: Sequence[str] = ()

    def resources(self) -> list[Resource]:
        """Return the resources of all stacks."""
        return [row for built in self.root.all() for row in built.rows]
