"""Records of tooz's file driver: their change in place, and unreadable ones, which a full disk leaves."""

import datetime
import errno
import logging
import os
import pathlib
import tempfile
import time
import typing
from collections.abc import Callable, Mapping

import voluptuous
from tooz import coordination, utils

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


def change(driver: typing.Any, group: bytes, record: Mapping[str, typing.Any]) -> None:
    """Change the record of a file driver's member, which the driver itself (tooz 9.1) cannot.

    Whoever reads finds the old record or the new one, and a full disk leaves the old one.

    :raises MemberNotJoined: it has no record, or that of another incarnation, which has replaced us.
    :raises OSError: the file cannot be written.
    """
    folder = pathlib.Path(driver._group_dir, driver._make_filesystem_safe(group))
    path = folder / f"{driver._safe_member_id}.raw"
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    stored = {"member_id": driver._member_id, "encoded": False, "joined_on": now}
    content = utils.dumps({**stored, "capabilities": dict(record)})
    handle, name = tempfile.mkstemp(dir=driver._tmpdir)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # The lock of all members: who replaces us waits for it, and we do not overwrite who has replaced us.
        # It is held as briefly as possible, for who is paused meanwhile stops all others.
        with driver._driver_lock:
            if _incarnation_in(path) != record["incarnation"]:
                raise coordination.MemberNotJoined(group, driver._member_id)
            os.chmod(name, path.stat().st_mode)  # Members of other accounts read it, too.
            os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _incarnation_in(path: pathlib.Path) -> object:
    """Return the incarnation of the record in a file; None: there is none that can be read."""
    try:
        return utils.loads(path.read_bytes())["capabilities"]["incarnation"]
    except (FileNotFoundError, utils.SerializationError, ValueError, TypeError, KeyError):
        return None
