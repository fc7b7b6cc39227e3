"""Unreadable records of tooz's file driver: a full disk leaves empty or partial ones."""

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

    Where the driver reads all members it skips an OSError that says "no such file"; where it reads one, this
    error is the cause of a ToozError.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(errno.ENOENT, f"the record is unreadable: {cause}")


def pass_over_unreadable(driver: typing.Any, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Make a file driver ignore the records that it cannot read.

    Otherwise a single one would break every call of every conductor until an operator removes it.
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
