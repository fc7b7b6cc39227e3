"""Records of tooz's file driver that cannot be read: a disk that is full leaves empty or partial ones."""

import errno
import logging
import time
import typing
from collections.abc import Callable

import voluptuous
from tooz import utils

LOG = logging.getLogger(__name__)
WARN_EVERY = 60.0
"""Seconds between two warnings."""
Load = Callable[[bytes, str], typing.Any]


class Unreadable(OSError):
    """A member's record cannot be read.

    The driver passes over an OSError that says there is no such file where it reads all members; where it
    reads one, this is the cause of a ToozError.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(errno.ENOENT, f"the record is unreadable: {cause}")


def pass_over_unreadable(driver: typing.Any, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Let a file driver take a member's record that cannot be read for none.

    A single one would break every call of every conductor otherwise, until it is removed by hand.
    """
    load: Load = driver._load_and_validate
    warned: float | None = None

    def checked(blob: bytes, schema: str) -> typing.Any:
        nonlocal warned
        try:
            return load(blob, schema)
        except (utils.SerializationError, voluptuous.Invalid, ValueError, TypeError, AttributeError) as error:
            if schema != "member":
                raise
            now = monotonic()
            if warned is None or now - warned >= WARN_EVERY:
                warned = now
                LOG.warning(
                    "A record in the group (%d bytes) is unreadable, it is ignored: %s", len(blob), error
                )
            raise Unreadable(error) from error

    driver._load_and_validate = checked
