"""Rotation of keys: sealing stored secrets again with the newest key."""

import collections
import functools
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ..db import content, sealed_rows
from ..db.engine import Database
from ..db.ids import ContentId
from ..db.sealed_rows import COLUMNS, Row, SealedTable, SealedTree
from ..shapes import Json, JsonMap
from .sealer import BoundSealer, Sealer, SealError, sealed_by
from .tokens import replaced

Change = Callable[[str], str]
BATCH = 100
PAUSE = 0.5
"""Seconds between two checks whether steps have ended."""


@dataclass
class RotationRound:
    """The result of one pass over all stored values.

    :ivar held: how many values are sealed by each key, by fingerprint and table.
    :ivar sealed_anew: number of rows that were sealed again, by table.
    :ivar moved: number of contents to which their stacks now refer by a new id.
    :ivar broken: places of values that their own key does not open.
    """

    held: dict[str, collections.Counter[str]] = field(default_factory=dict)
    sealed_anew: collections.Counter[str] = field(default_factory=collections.Counter)
    moved: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Return whether there was nothing to do."""
        return not self.sealed_anew and not self.moved


class Rotation:
    """Passes over all stored secrets, while the service runs.

    A round may be interrupted at any place: the next one continues with the remaining secrets.

    :param batch: number of rows in a transaction.
    :param clock: function that returns seconds since the epoch, UTC.
    :param sleep: function that waits a number of seconds.
    :param progress: called with a table, the number of its rows that are read, and that of all.
    """

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        batch: int = BATCH,
        progress: Callable[[str, int, int], None] = lambda table, done, total: None,
    ) -> None:
        self._progress = progress
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._sleep = sleep
        self._batch = batch

    def count(self) -> RotationRound:
        """Count the secrets that each key has sealed; change nothing."""
        result = RotationRound()
        for table, row in self._rows():
            self._count(result, table, row, self._places(table, row))
        return result

    def run(self, report: Callable[[RotationRound], None], *, patience: float) -> tuple[RotationRound, int]:
        """Run rounds until one finds nothing to do after all steps have ended that ran before it.

        Such steps may have read a value that was sealed by an older key, and store it again.

        :param report: called with each round.
        :param patience: seconds to wait for steps, or for a process that still seals with an older key.
        :returns: the last round, and how many of those steps still run.
        """
        until = self._clock() + patience
        report(self.round())
        while True:
            before = self._database.read(sealed_rows.running)
            while (running := before & self._database.read(sealed_rows.running)) and self._clock() < until:
                self._sleep(PAUSE)
            last = self.round()
            report(last)
            if last.quiet or self._clock() >= until:
                return last, len(running)

    def round(self) -> RotationRound:
        """Seal again every value that would be sealed differently today."""
        result = RotationRound()
        for table in COLUMNS:
            scanned = 0
            total = self._database.read(functools.partial(sealed_rows.count, table=table))
            for rows in sealed_rows.scan(self._database, table, batch=self._batch):
                scanned += len(rows)
                self._progress(table.name, scanned, total)
                places = {row.key: self._places(table, row) for row in rows}
                for row in rows:
                    self._count(result, table, row, places[row.key])
                self._renew(result, table, rows, places)
                for row in rows if table.name == "content" else ():
                    result.moved += self._move(row)
        return result

    # -- inside ------------------------------------------------------------------------------------

    def _rows(self) -> typing.Iterator[tuple[SealedTable, Row]]:
        for table in COLUMNS:
            for rows in sealed_rows.scan(self._database, table, batch=self._batch):
                yield from ((table, row) for row in rows)

    def _count(
        self, result: RotationRound, table: SealedTable, row: Row, places: Sequence[BoundSealer]
    ) -> None:
        """Count the values of a row; contents without a holder wait for the purge and are not counted."""
        if table.name == "content" and not places:
            return

        def count(token: str) -> str:
            result.held.setdefault(sealed_by(token), collections.Counter())[table.name] += 1
            has_key = sealed_by(token) in self._sealer.fingerprints
            if has_key and not any(_opens(sealer, token) for sealer in places):
                result.broken.append(f"{table.name} {row.key}")
            return token

        replaced(table.name, row.values, count)

    def _renew(
        self,
        result: RotationRound,
        table: SealedTable,
        rows: Sequence[Row],
        places: Mapping[Json, Sequence[BoundSealer]],
    ) -> None:
        def change(row: Row) -> JsonMap:
            row_places = places[row.key]
            if table.name == "content":
                return replaced(table.name, row.values, self._in_place(row_places))
            if not row_places:
                return row.values
            return replaced(table.name, row.values, self._renewed(row_places[0]))

        old = [row for row in rows if change(row) != row.values]
        if old:
            changed = self._database.write(lambda conn: sealed_rows.rewrite(conn, table, old, change))
            result.sealed_anew.update({table.name: changed} if changed else {})

    def _renewed(self, sealer: BoundSealer) -> Change:
        """Return a function that seals a token again in a place, if it can be opened there."""

        def renew(token: str) -> str:
            return sealer.seal(sealer.open(token)) if self._is_old(token) and _opens(sealer, token) else token

        return renew

    def _in_place(self, places: Sequence[BoundSealer]) -> Change:
        """Return a function that renews a content's tokens in its own row.

        The holders move to another row, but a reader that has just read the id still opens this one.
        """

        def renew(token: str) -> str:
            if sealed_by(token) == self._sealer.fingerprints[0]:
                return token
            return next(
                (sealer.seal(sealer.open(token)) for sealer in places if _opens(sealer, token)), token
            )

        return renew

    def _places(self, table: SealedTable, row: Row) -> list[BoundSealer]:
        """Return the places of the row's values; none: they are not known any more."""
        if table.name == "credential":
            return [self._sealer.of_credential(row.key)]
        if table.name == "setting":
            return [self._sealer.of_installation(row.key)]
        if table.name == "content":
            trees = self._database.read(lambda conn: sealed_rows.holders(conn, ContentId(row.key)))
            return [self._of(tree) for tree in dict.fromkeys(trees.values())]
        return [] if row.tree is None else [self._of(row.tree)]

    def _of(self, tree: SealedTree) -> BoundSealer:
        if not tree.root_id:
            return self._sealer.of_software(tree.project_id)
        return self._sealer.of_stack(tree.project_id, tree.root_id)

    def _move(self, row: Row) -> int:
        """Let the holders of a content refer to the row of its renewed form.

        A content's id follows from its text, so a renewed content has another id.  If its holders kept the
        old one, equal contents would be stored twice from now on.  A content with secrets is shared within
        one tree of stacks only.  The old row stays for readers that have just read its id, until the purge
        deletes it.

        :returns: 1 if a holder has moved.
        """
        old = ContentId(row.key)
        moved = 0
        for holder, tree in self._database.read(lambda conn: sealed_rows.holders(conn, old)).items():
            body = replaced("content", row.values, self._renewed(self._of(tree)))["body"]
            if content.content_id(body) != old:
                self._rename(holder, old, body)
                moved = 1
        return moved

    def _rename(self, holder: str, old: ContentId, body: Json) -> None:
        def change(conn: Connection) -> None:
            sealed_rows.rename_content(conn, holder, old, content.put(conn, body, self._clock()))

        self._database.write(change)

    def _is_old(self, token: str) -> bool:
        return sealed_by(token) in self._sealer.fingerprints[1:]


def _opens(sealer: BoundSealer, token: str) -> bool:
    try:
        sealer.open(token)
    except SealError:
        return False
    return True
