"""The budget of a request that follows stacks nested in stacks, counted over the whole tree.

Each nested stack repeats the files and the environment of the one around it, so the document of a tree can be
many times as large as all that was sent to make it.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..db.rows import Resource
from ..settings import Bytes, setting
from ..template.budget import json_size
from ..template.compile import MOST_LEVELS
from ..template.errors import LimitExceeded


@dataclass(frozen=True)
class TreeLimits:
    """Limits of what one request reads of a tree; resources that were replaced count, too."""

    rows: int = setting(
        "max_tree_rows",
        100_000,
        "Maximum number of resources of a stack and those nested in it that one request reads: for an "
        "export, to abandon or restore a stack, for a preview of an update. A request for more is refused "
        "with 400; 0: no limit.",
        least=0,
    )
    bytes: Bytes = setting(
        "max_tree_bytes",
        64 * 1024 * 1024,
        "Maximum size in bytes of the goals and values that such a request reads. In an export, each nested "
        "stack repeats the files of the stack. A request for more is refused with 400; 0: no limit.",
        least=0,
    )


class TreeBudget:
    """Counter of what one request reads of a tree; belongs to one thread."""

    def __init__(self, limits: TreeLimits) -> None:
        self._limits = limits
        self._levels = 0
        self._rows = 0
        self._bytes = 0

    @contextlib.contextmanager
    def level(self) -> Iterator[None]:
        """Count a level of the tree until the end of the block.

        :raises LimitExceeded: the tree is too deep.
        """
        if self._levels > MOST_LEVELS:
            raise LimitExceeded(f"the tree of stacks has more than {MOST_LEVELS} levels")
        self._levels += 1
        try:
            yield
        finally:
            self._levels -= 1

    def take_rows(self, rows: Sequence[Resource]) -> None:
        """Charge resources, with their values.

        :raises LimitExceeded: the tree is too large.
        """
        self._rows += len(rows)
        if self._rows > self._limits.rows > 0:
            raise LimitExceeded(
                f"the tree of stacks has more than {self._limits.rows} resources, the limit of what one "
                "request reads ([stacks] max_tree_rows)"
            )
        for row in rows:
            self.take_bytes(json_size([row.properties, row.metadata, row.data, row.attributes]))

    def take_bytes(self, size: int) -> None:
        """Charge so many bytes of values.

        :raises LimitExceeded: the tree is too large.
        """
        self._bytes += size
        if self._bytes > self._limits.bytes > 0:
            raise LimitExceeded(
                f"the tree of stacks has more than {self._limits.bytes} bytes of goals and values, the limit "
                "of what one request reads ([stacks] max_tree_bytes)"
            )
