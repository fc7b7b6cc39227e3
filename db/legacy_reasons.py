"""The values that the previous release stores only as the text of a reason, or as an order of ids.

Code of this release stores them in columns, as soon as the schema is contracted.  Until then code of the
previous release may change a row without knowing the columns.  So until then the columns are NULL, and a row
whose column is NULL is read as here.  Only this module and 0005_contract know the older form.

0005_contract fills the rows that are left, but not those that fail while it ends.  So the next number of the
schema has to fill once more before this module goes.
"""

import typing
from collections.abc import Mapping

from .states import Status, cancelled_reason

Json = typing.Any
_ABORTED = " aborted due to breakpoint on resource "


def with_typed(row: Mapping[str, Json]) -> dict[str, Json]:
    """Return the row of a resource with the values of all columns."""
    found = dict(row)
    if row["cancelled"] is None:
        stopped = row["reason"].startswith(cancelled_reason(row["action"]))
        found["cancelled"] = row["status"] == Status.FAILED and stopped
    if row["reinstated"] is None:
        # What replaces a resource was stored later, and so has a larger id.
        found["reinstated"] = row["replaces"] is not None and row["replaces"] > row["id"]
    return found


def with_cause(row: Mapping[str, Json], reason: str) -> dict[str, Json]:
    """Return the row of a stack or a traversal that failed, with the cause.

    :param reason: why it failed.
    """
    return {**row, "failure_cause": cause_of(reason)}


def cause_of(reason: str) -> dict[str, str]:
    """Return the fields of the first cause that the reason of a stack or a traversal names.

    It reads ``Resource ACTION failed: KIND: resources.NAME…: MESSAGE``, or names the resource at whose
    breakpoint the action ended.
    """
    _, found, rest = reason.partition(" failed: ")
    kind, _, rest = rest.partition(": ")
    path, separator, message = rest.partition(": ")
    if found and separator and reason.startswith("Resource ") and path.startswith("resources."):
        return {"kind": kind, "path": path, "message": message}
    return {"message": reason, "breakpoint": reason.partition(_ABORTED)[2]}
