"""Rows of the keys and accounts that another service has made for guests and clients of imported resources.

A key has a secret, with which its holder signs.  An account is Keystone's, and its holder sends tokens of it.
"""

from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json
from .ids import ResourceId, StackId
from .schema import tables


@dataclass(frozen=True)
class ImportedKey:
    """A key or an account that may act for one resource.

    :ivar id: the access key, or the id of the user at Keystone.
    :ivar secret: the secret of the key, sealed by the stack; None: an account.
    """

    id: str
    stack_id: StackId
    resource_id: ResourceId
    secret: Json = field(default=None, repr=False)


_FIND = sa.select(tables.imported_key).where(tables.imported_key.c.id == sa.bindparam("key"))


def find(conn: Connection, key: str) -> ImportedKey | None:
    """Return a key or an account by its id; None: there is none."""
    row = conn.execute(_FIND, {"key": key}).mappings().first()
    return None if row is None else ImportedKey(**row)
