"""The sizes of trees of stacks, as they are stored."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import usage
from .bulk import Write
from .ids import StackId
from .schema import tables
from .usage import UsageChange


@dataclass(frozen=True)
class TreeSize:
    """The size of a tree.

    :ivar resources: of all stacks in it that are not deleted, without what was replaced.
    :ivar counted: resources that the last request for the root could count.
    :ivar excess: the number above `counted` that is stored with the root.
    """

    resources: int
    counted: int
    excess: int

    @property
    def grown(self) -> int:
        """Return by how many resources it is larger than its request could count."""
        return max(0, self.resources - self.counted)


def _size() -> sa.Select[tuple[int, int, int]]:
    s = tables.stack.c
    r = tables.resource.c
    root: sa.BindParameter[str] = sa.bindparam("root")
    is_in_use = sa.exists().where(r.id == s.parent_resource_id, r.replaced_by.is_(None))
    of_root = tables.stack.alias("of_root")
    one = [
        sa.select(of_root.c[name]).where(of_root.c.id == root)
        for name in ("tree_resources", "excess_resources")
    ]
    return sa.select(
        sa.func.coalesce(sa.func.sum(s.own_resources), 0), *(query.scalar_subquery() for query in one)
    ).where(s.root_id == root, s.deleted_at.is_(None), sa.or_(s.id == root, is_in_use))


_SIZE = _size()


def size_of(conn: Connection, root_id: StackId) -> TreeSize:
    """Return the size of a tree; a row is read for each of its stacks."""
    return TreeSize(*(int(number or 0) for number in conn.execute(_SIZE, {"root": root_id}).one()))


def store_growth(conn: Connection, root_id: StackId, project_id: str, size: TreeSize) -> None:
    """Store by how many resources a tree is larger than its request could count.

    :param size: the size of the tree, read while the caller has the project's lock.
    """
    s = tables.stack.c
    is_root = sa.and_(s.id == root_id, s.project_id == project_id, s.live_name.is_not(None))
    grown = Write(sa.update(tables.stack).where(is_root).values(excess_resources=size.grown), {})
    usage.write(conn, grown, [UsageChange(project_id, {"resources": size.grown - size.excess})])
