"""Errors of the database layer: a class for each different reaction of a caller."""


class DatabaseError(Exception):
    """Base of this package's errors."""


class NotFound(DatabaseError):
    """An id or a name that no row of its kind has.

    :ivar kind: ``Stack``, ``Resource``, ``Event``, ``Template`` …
    """

    def __init__(self, kind: str, key: object) -> None:
        super().__init__(f"The {kind} ({key}) could not be found.")
        self.kind = kind
        self.key = str(key)


class IdTaken(DatabaseError):
    """An id under which a thing of another owner is stored.

    :ivar kind: as of NotFound: for who may not know of that thing it does not exist.
    """

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"The id {key} is taken.")
        self.kind = kind
        self.key = key


class NameTaken(DatabaseError):
    """A name that a living stack of the project has already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The Stack ({name}) already exists.")
        self.name = name


class Unavailable(DatabaseError):
    """No answer from the database, also after several tries; the transaction may have taken place."""


class RowLocked(Unavailable):
    """A row that another transaction holds for too long; this one did not take place, and may be retried."""


class TooSlow(Unavailable):
    """A statement that timed out; the transaction did not take place."""


class TooMuchToRead(DatabaseError):
    """Stored values that are more than the reader may read at once.

    :ivar most: characters that the reader may read at once.
    """

    def __init__(self, most: int) -> None:
        super().__init__(f"More than {most} bytes of stored values would have to be read")
        self.most = most


class DamagedRow(DatabaseError):
    """A stored value that this release cannot read: it is damaged, or another release has written it."""


class WrongRevision(DatabaseError):
    """A schema at a revision from which it cannot be migrated as requested."""


class ShardCountMismatch(DatabaseError):
    """A configured shard count that differs from the one the database was made with."""

    def __init__(self, stored: int, configured: int) -> None:
        super().__init__(
            f"The database was made with {stored} shards, but {configured} are configured; the number can "
            f"never change. Set shard_count to {stored}, or leave it out."
        )
        self.stored = stored
        self.configured = configured


class RetryTransaction(Exception):
    """A transaction that certainly did not take place, and may succeed at the next try.

    :ivar locked: another transaction has held a row for too long.
    """

    def __init__(self, *, locked: bool = False) -> None:
        super().__init__()
        self.locked = locked
