"""The border around one stack: a fault of its rows keeps this stack where it is, and no other one."""

import pathlib
import traceback
import typing
from collections.abc import Callable

import sqlalchemy as sa
from oslo_db import exception as oslo_errors

from .cipher import WrongKey
from .fields import Damaged
from .rows import Refused

T = typing.TypeVar("T")
MOST_SHOWN = 200
"""Characters of a database's error that are shown."""
ROOT = pathlib.Path(__file__).parents[3]


def within(move: Callable[[], T], stays: Callable[[list[str]], T]) -> T:
    """Return what a function returns; if a fault of the rows ends it, what another one makes of the reasons.

    :raises Exception: a database cannot be reached any more, which is no fault of a stack.
    """
    try:
        return move()
    except Exception as error:  # noqa: BLE001
        return stays(reasons_of(error))


def reasons_of(error: Exception) -> list[str]:
    """Return why a stack stays, without values of its rows.

    :raises Exception: the error itself, where it is no stack's: a database cannot be reached any more.
    """
    if isinstance(error, Refused):
        return list(error.reasons)
    if isinstance(error, Damaged):
        return [f"{error}: repair it in Heat"]
    if isinstance(error, WrongKey):
        return [f"{error}: give Heat's auth_encryption_key"]
    if isinstance(error, oslo_errors.DBConnectionError):
        raise error
    if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
        raise error
    if isinstance(error, sa.exc.SQLAlchemyError | oslo_errors.DBError):
        return [f"a database refuses its rows: {text_of(error)}"]
    if isinstance(error, RecursionError):
        return ["its values are nested too deeply"]
    return [f"its rows cannot be moved: {type(error).__name__}{_place_of(error)}: one of them is damaged"]


def text_of(error: Exception) -> str:
    """Return the first line of the error of a database, behind which statements and values follow."""
    while (cause := getattr(error, "inner_exception", None) or getattr(error, "orig", None)) is not None:
        error = cause
    text = str(error).strip().partition("\n")[0]
    return text[:MOST_SHOWN] or type(error).__name__


def _place_of(error: Exception) -> str:
    """Return the last line of Stoker's own that the error has passed; "": there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = pathlib.Path(frame.filename)
        if path.is_relative_to(ROOT) and "site-packages" not in path.relative_to(ROOT).parts:
            return f" in {path.relative_to(ROOT)}, line {frame.lineno}"
    return ""
