"""Rows of the keys and accounts that another service has made for guests and clients of imported resources.

A key has a secret, with which its holder signs.  An account is Keystone's, and its holder sends tokens of it.
A user of that service may have written the key of somebody else's resource into the row of one of their own.
So a key may be that of several resources: the one whose secret has signed, or that the request names, counts.
"""

import typing
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json
from . import bulk
from .ids import ResourceId, StackId
from .schema import tables

MOST_RESOURCES = 20
"""Resources that are read for one key: only an attacker makes more of them have it."""


@dataclass(frozen=True)
class ImportedKey:
    """A key or an account that may act for one resource.

    :ivar id: id of the row, by which the key is that of this resource.
    :ivar key: the access key, or the id of the user at Keystone.
    :ivar secret: the secret of the key, sealed by the stack; None: an account.
    """

    id: str
    key: str
    stack_id: StackId
    resource_id: ResourceId
    secret: Json = field(default=None, repr=False)

    @classmethod
    def of_resource(
        cls, key: str, stack_id: StackId, resource_id: ResourceId, secret: Json = None
    ) -> typing.Self:
        """Return the row of a key of a resource."""
        row_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{resource_id}/{key}"))
        return cls(row_id, key, stack_id, resource_id, secret)


_FIND = (
    sa.select(tables.imported_key)
    .where(tables.imported_key.c.key == sa.bindparam("key"))
    .order_by(tables.imported_key.c.resource_id)
    .limit(MOST_RESOURCES)
)


def insert_many(conn: Connection, keys: Sequence[ImportedKey]) -> None:
    """Store keys of imported resources."""
    bulk.insert(conn, tables.imported_key, [vars(key) for key in keys])


def find(conn: Connection, key: str) -> list[ImportedKey]:
    """Return the resources of a key or an account, as rows of the key."""
    return [ImportedKey(**row) for row in conn.execute(_FIND, {"key": key}).mappings()]
