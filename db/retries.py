"""Decisions, by a driver's error, whether a transaction is retried."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from oslo_db import exception as oslo_errors

from .errors import TooSlow, Unavailable

_SERIALIZATION_FAILURE = "40001"
_INSUFFICIENT_RESOURCES = "53"
"""Class of PostgreSQL's codes: disk full, out of memory, too many connections."""
_MARIADB_FULL = (1021, 1114)
"""ER_DISK_FULL, ER_RECORD_FILE_FULL."""
_LOCK_TIMEOUT = "55P03"
_CANCELED = "57014"
_IDLE_IN_TRANSACTION = "25P03"
"""PostgreSQL's codes: lock_not_available, query_canceled, idle_in_transaction_session_timeout."""
_MARIADB_LOCK_TIMEOUT = 1205
_MARIADB_STATEMENT_TIMEOUT = 1969


class RetryTransaction(Exception):
    """A transaction that certainly did not take place, and may succeed at the next try.

    :ivar locked: another transaction has held a row for too long.
    """

    def __init__(self, *, locked: bool = False) -> None:
        super().__init__()
        self.locked = locked


@contextmanager
def repeatable() -> Iterator[None]:
    """Raise RetryTransaction for errors that a retry may cure, and other errors of this package for the rest.

    The holder of a lock may be gone at the next try.  A statement that timed out would do so again.
    """
    try:
        yield
    except oslo_errors.DBDeadlock as error:
        raise RetryTransaction(locked=_code(error.inner_exception) == _MARIADB_LOCK_TIMEOUT) from error
    except oslo_errors.DBConnectionError as error:
        raise RetryTransaction from error
    except sa.exc.DBAPIError as error:
        if _is_idle(error.orig):
            raise RetryTransaction from error
        if not isinstance(error, sa.exc.OperationalError):
            raise
        if _is_lock_timeout(error.orig) or _is_conflict(error.orig):
            raise RetryTransaction(locked=not _is_serialization(error.orig)) from error
        if _is_too_long(error.orig):
            raise TooSlow(f"A statement timed out: {error.orig}") from error
        if _is_full(error.orig):
            raise Unavailable(f"The database cannot store anything: {error.orig}") from error
        raise


def _sqlstate(error: BaseException | None) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def _code(error: BaseException | None) -> int | None:
    """Return the number of an error of MariaDB's, however it is wrapped."""
    error = getattr(error, "orig", error)
    code = error.args[0] if error is not None and error.args else None
    return code if isinstance(code, int) else None


def _is_conflict(error: BaseException | None) -> bool:
    """Return whether transactions collided in a way that oslo.db does not name.

    SQLite's writer was busy for too long, or PostgreSQL could not serialize.
    """
    if _is_serialization(error):
        return True
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _is_serialization(error: BaseException | None) -> bool:
    return _sqlstate(error) == _SERIALIZATION_FAILURE


def _is_lock_timeout(error: BaseException | None) -> bool:
    return _sqlstate(error) == _LOCK_TIMEOUT or _code(error) == _MARIADB_LOCK_TIMEOUT


def _is_too_long(error: BaseException | None) -> bool:
    return _sqlstate(error) == _CANCELED or _code(error) == _MARIADB_STATEMENT_TIMEOUT


def _is_idle(error: BaseException | None) -> bool:
    """Return whether PostgreSQL has ended the transaction because our process did nothing for too long."""
    return _sqlstate(error) == _IDLE_IN_TRANSACTION


def _is_full(error: BaseException | None) -> bool:
    """Return whether the server's disk is full, or another of its resources is used up for now."""
    if _sqlstate(error).startswith(_INSUFFICIENT_RESOURCES):
        return True
    if str(getattr(error, "sqlite_errorname", "")) == "SQLITE_FULL":
        return True
    return _code(error) in _MARIADB_FULL
