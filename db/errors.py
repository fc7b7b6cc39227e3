"""What a caller of the database may have to react to."""


class DatabaseError(Exception):
    """Base of this package's errors."""


class NotFound(DatabaseError):
    """No row of this kind has this id or name.

    :ivar kind: ``Stack``, ``Resource``, ``Event``, ``Template`` …
    """

    def __init__(self, kind: str, key: object) -> None:
        super().__init__(f"The {kind} ({key}) could not be found.")
        self.kind = kind
        self.key = str(key)


class NameTaken(DatabaseError):
    """A living stack of the tenant has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The Stack ({name}) already exists.")
        self.name = name


class Unavailable(DatabaseError):
    """The database did not answer, also after several tries; whether the transaction took place is open."""


class RowLocked(Unavailable):
    """Another transaction has held a row for too long; this one did not take place, and may be repeated."""


class TooSlow(Unavailable):
    """A statement has taken longer than it may; the transaction did not take place."""


class WrongRevision(DatabaseError):
    """The schema is not at a revision from which it can be brought to where it shall be."""


class ShardCountMismatch(DatabaseError):
    """The configured shard count is not the one the database was made with."""

    def __init__(self, stored: int, configured: int) -> None:
        super().__init__(
            f"The database was made with {stored} shards, but {configured} are configured; the number can "
            f"never change. Set shard_count to {stored}, or leave it out."
        )
        self.stored = stored
        self.configured = configured
