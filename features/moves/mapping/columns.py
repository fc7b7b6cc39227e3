"""The columns that mean the same in Heat's rows and in Stoker's; what differs is at the maker.

Ids are not among them: the maker of a row says where they come from.
"""

import typing


class CommonColumns:
    """The common columns of one kind of rows.

    :param same: names that both have.
    :param renamed: Heat's names with Stoker's.
    """

    def __init__(self, *same: str, **renamed: str) -> None:
        self.pairs = {**{name: name for name in same}, **renamed}

    def to_stoker(self, row: object) -> dict[str, typing.Any]:
        """Return the values of a row of Heat's by the names of Stoker's columns."""
        return {stoker: getattr(row, heat) for heat, stoker in self.pairs.items()}

    def to_heat(self, row: object) -> dict[str, typing.Any]:
        """Return the values of a row of Stoker's by the names of Heat's columns."""
        return {heat: getattr(row, stoker) for heat, stoker in self.pairs.items()}


# Not the name: that of a nested stack may differ.
STACK = CommonColumns(
    *("project_id", "action", "status", "reason", "created_at", "updated_at", "deleted_at"),
    "disable_rollback",
    username="owner",
    timeout="timeout_mins",
)
RESOURCE = CommonColumns("name", "action", "status", "reason", "created_at", "updated_at")
EVENT = CommonColumns(
    *("uuid", "resource_name", "resource_type", "physical_id", "action", "status", "reason", "at"),
    "properties",
)
# Not the action: an import takes over what a snapshot is, and not what was done with it.
SNAPSHOT = CommonColumns("name", "status", "reason", "created_at")
CONFIG = CommonColumns("project_id", "name", "created_at", group="tool")
DEPLOYMENT = CommonColumns(
    *("project_id", "server_id", "action", "status", "reason", "created_at", "updated_at"),
)
