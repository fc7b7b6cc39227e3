"""Names for the kinds of identifiers, so that one cannot be passed for another."""

import typing

StackId = typing.NewType("StackId", str)
TraversalId = typing.NewType("TraversalId", str)
TraversalNumber = typing.NewType("TraversalNumber", int)
"""Key of a traversal's row; from the same sequence as the ids of its tasks, and larger than they are."""
ResourceId = typing.NewType("ResourceId", int)
TaskId = typing.NewType("TaskId", int)
SnapshotId = typing.NewType("SnapshotId", str)
ContentId = typing.NewType("ContentId", str)
MemberId = typing.NewType("MemberId", str)
"""One incarnation of a conductor: ``HOST/INCARNATION``."""


def host_of(member: MemberId) -> str:
    """The conductor's host."""
    return member.rsplit("/", 1)[0]
