"""Sealing anew, with the newest key, what older ones have sealed."""

import collections
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..db import content, rotation
from ..db.engine import Database
from ..db.ids import ContentId
from ..db.sealing import Sealer, SealError, sealed_by
from ..template.residual import ARGS, FN, is_node, sealed

Json = typing.Any
BATCH = 100
PAUSE = 0.5
"""Seconds between two looks whether steps have ended."""
TOKEN = re.compile("[0-9a-f]{8}[.][A-Za-z0-9_=-]+")


@dataclass
class Round:
    """What one look at everything has found, and done.

    :ivar held: how many values each key has sealed that are still so, by fingerprint and table.
    :ivar sealed_anew: rows in which there was something to do, by table.
    :ivar moved: contents whose stacks now refer to them by their new id.
    :ivar broken: where a value stands that its own key does not open.
    """

    held: dict[str, collections.Counter[str]] = field(default_factory=dict)
    sealed_anew: collections.Counter[str] = field(default_factory=collections.Counter)
    moved: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """There was nothing to do."""
        return not self.sealed_anew and not self.moved


class Rotation:
    """Looks at every value that is stored, while others work with them.

    A round may be broken off at any place: the next one goes on with what is left.

    :param batch: rows of a transaction.
    :param clock: seconds since the epoch, UTC.
    :param sleep: waits so many seconds.
    """

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._sleep = sleep
        self._batch = batch

    def look(self) -> Round:
        """Count what each key has sealed; changes nothing."""
        found = Round()
        for table in rotation.TABLES.values():
            for rows in rotation.scan(self._database, table, batch=self._batch):
                self._count(found, table.name, rows)
        return found

    def run(self, told: Callable[[Round], None], *, patience: float) -> tuple[Round, int]:
        """Rounds until one finds nothing to do although all steps have ended that ran before it: they may
        have read what was sealed by an older key, and store it again.

        :param told: of each round.
        :param patience: seconds to wait for steps, or for somebody who goes on sealing with an older key.
        :returns: the last round, and how many of those steps run on.
        """
        until = self._clock() + patience
        told(self.round())
        while True:
            before = self._database.read(rotation.running)
            while (left := before & self._database.read(rotation.running)) and self._clock() < until:
                self._sleep(PAUSE)
            last = self.round()
            told(last)
            if last.quiet or self._clock() >= until:
                return last, len(left)

    def round(self) -> Round:
        """Seal anew what an older one of the keys has sealed."""
        found = Round()
        for table in rotation.TABLES.values():
            for rows in rotation.scan(self._database, table, batch=self._batch):
                self._count(found, table.name, rows)
                renewed = self._renew(found, table, rows)
                if table is rotation.TABLES["content"]:
                    found.moved += sum(self._move(row) for row in renewed)
        return found

    def _count(self, found: Round, table: str, rows: Sequence[rotation.Row]) -> None:
        for row in rows:
            for token in _tokens(list(row.values.values())):
                found.held.setdefault(sealed_by(token), collections.Counter())[table] += 1
                if self._is_old(token) and not self._opens(token):
                    found.broken.append(f"{table} {row.key}")

    def _renew(self, found: Round, table: sa.Table, rows: Sequence[rotation.Row]) -> Sequence[rotation.Row]:
        """The rows as they are afterwards."""
        old = [row.key for row in rows if self._renewed(row.values) != row.values]
        if not old:
            return rows
        changed = self._database.write(lambda conn: rotation.rewrite(conn, table, old, self._renewed))
        found.sealed_anew.update({table.name: len(changed)} if changed else {})
        return list({row.key: row for row in [*rows, *changed]}.values())

    def _renewed(self, tree: Json) -> Json:
        """The tree with all of its values sealed by the newest key that an older one can open."""
        if isinstance(tree, list):
            return [self._renewed(item) for item in tree]
        if not isinstance(tree, Mapping):
            return tree
        if (token := _token(tree)) is not None and self._is_old(token) and self._opens(token):
            return sealed(self._sealer.seal(self._sealer.open(token)))
        if is_node(tree) and tree[FN] == "literal":
            [inner] = tree[ARGS]
            return {**tree, ARGS: [{key: self._renewed(item) for key, item in inner.items()}]}
        return {key: self._renewed(item) for key, item in tree.items()}

    def _move(self, row: rotation.Row) -> bool:
        """A content's id follows from its text, so one that is sealed anew has another: all that refers to it
        has to refer to that one, or what is equal would be stored twice from now on.

        The old row stays for those who have just read its id, and is swept away like any that nobody uses.
        """
        body, old = row.values["body"], ContentId(row.key)
        if content.content_id(body) == old:
            return False
        holders = self._database.read(lambda conn: rotation.holders(conn, old))
        for holder in holders:
            self._rename(holder, old, body)
        return bool(holders)

    def _rename(self, holder: str, old: ContentId, body: Json) -> None:
        def change(conn: Connection) -> None:
            rotation.rename_content(conn, holder, old, content.put(conn, body, self._clock()))

        self._database.write(change)

    def _is_old(self, token: str) -> bool:
        return sealed_by(token) in self._sealer.fingerprints[1:]

    def _opens(self, token: str) -> bool:
        try:
            self._sealer.open(token)
        except SealError:
            return False
        return True


def _token(item: Mapping[str, Json]) -> str | None:
    """The token of a sealed node; None for all else."""
    if item.get(FN) != "sealed" or not isinstance(args := item.get(ARGS), list) or len(args) != 1:
        return None
    return args[0] if isinstance(args[0], str) and TOKEN.fullmatch(args[0]) else None


def _tokens(tree: Json) -> Iterator[str]:
    """All tokens in a stored value."""
    if isinstance(tree, list):
        for item in tree:
            yield from _tokens(item)
    elif isinstance(tree, Mapping):
        token = _token(tree)
        if token is not None:
            yield token
        elif is_node(tree) and tree[FN] == "literal":
            yield from _tokens(list(tree[ARGS][0].values()))
        else:
            yield from _tokens(list(tree.values()))
