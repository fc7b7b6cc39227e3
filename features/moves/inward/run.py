"""Moves the selected stacks: reads Heat's by pages, and stores each tree in one transaction."""

import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from oslo_db import exception as oslo_errors
from sqlalchemy.engine import Connection

from ....db import software
from ....engine.context import EngineContext
from ..heat.border import within
from ..heat.reader import HeatDatabase
from ..heat.report import Disposition, MovedStack, MoveProgress, Report, ShowProgress
from ..heat.rows import HeatConfig, HeatDeployment, HeatTree, Refused
from ..heat.selection import Selection
from ..mapping.software import NOBODY, stored_config, stored_deployment
from . import writer
from .built import BuiltTree
from .project_software import ProjectSoftware
from .tree_builder import TreeBuilder

CLAIMED_BY = "moved-to-stoker"
"""The engine that holds the lock of a moved stack in Heat's database; no engine has this id."""
NAME_TAKEN = "Stoker has another stack of this name in the project: rename or delete one of the two"
Verify = Callable[[BuiltTree], Sequence[str]]


class HeatSource(typing.Protocol):
    """The stacks of a Heat, as a run reads them: by its database, or by its API."""

    def resolve(self, selection: Selection) -> Selection:
        """Return a selection in which stacks are named by their ids.

        :raises WrongSelection: what is named does not exist, or is not only one.
        """

    def count(self, selection: Selection) -> int:
        """Return the number of root stacks of a selection."""

    def pages(
        self, selection: Selection, skip: Callable[[Sequence[str]], set[str]]
    ) -> Iterator[list[HeatTree]]:
        """Yield the trees of a selection.

        :param skip: function that returns the ids among those of a page whose trees are not to be read.
        """

    def software(self, project_id: str, ids: Iterable[str]) -> tuple[list[HeatConfig], list[HeatDeployment]]:
        """Return a project's configs and deployments with these ids, and the configs of those deployments."""

    def software_pages(self, selection: Selection) -> Iterator[tuple[list[HeatConfig], list[HeatDeployment]]]:
        """Yield all configs and deployments of the selection's projects."""

    def notes(self) -> Sequence[str]:
        """Return what of all stacks stays behind; complete once they are read."""


@dataclass(frozen=True)
class Options:
    """The options of a run.

    :ivar dry_run: whether nothing is stored.
    :ivar verifies: whether the update with the same template is planned for each tree.
    :ivar claims: whether moved stacks are hidden in Heat; its database must be the source.
    """

    selection: Selection
    dry_run: bool = False
    verifies: bool = False
    claims: bool = False


class Import:
    """One run.  For one thread.

    :ivar report: the report, of what is done so far.
    :param verify: returns what an update with the same template would change in a tree.
    """

    def __init__(
        self,
        context: EngineContext,
        heat: HeatSource,
        builder: TreeBuilder,
        *,
        verify: Verify,
        progress: ShowProgress | None = None,
    ) -> None:
        self._context = context
        self._heat = heat
        self._builder = builder
        self._verify = verify
        self._progress = MoveProgress(progress)
        self.report = Report()

    def run(self, options: Options) -> Report:
        """Move the stacks, or in a dry run find out which can be moved.

        :raises WrongSelection: what is named does not exist, or is not only one.
        """
        report = self.report
        options = replace(options, selection=self._heat.resolve(options.selection))
        self._progress.begin(self._heat.count(options.selection))

        def skip(ids: Sequence[str]) -> set[str]:
            existing = self._context.database.read(lambda conn: writer.present(conn, ids))
            report.present += len(existing)
            self._progress.add(len(existing))
            return existing

        for trees in self._heat.pages(options.selection, skip):
            moved = []
            for tree in trees:
                entry = self._move(tree, options)
                report.stacks.append(entry)
                if entry.disposition == Disposition.MOVED and tree.root.deleted_at is None:
                    moved.append(entry.id)
                self._progress.add(1)
            # Hidden in Heat only after Stoker has stored them: between the two commits a stack is in both,
            # never in none.
            if options.claims and moved:
                assert isinstance(self._heat, HeatDatabase), "only a database takes claims"
                self._heat.claim(moved, CLAIMED_BY, float(int(self._context.clock())))
        # Software of a project moves with all of its stacks; a selection of stacks takes only what is theirs.
        if not options.selection.stacks:
            self._move_software(report, options)
        report.notes = list(self._heat.notes())
        return report

    def _move_software(self, report: Report, options: Options) -> None:
        """Move the configs and deployments that users have made by the API; those of stacks are there."""
        sealer = self._context.sealer
        for configs, deployments in self._heat.software_pages(options.selection):
            rows = [stored_config(item, sealer.of_software(item.project_id), NOBODY) for item in configs]
            of_servers = [
                stored_deployment(item, sealer.of_software(item.project_id), NOBODY) for item in deployments
            ]
            report.configs += self._store_missing(rows, options)
            report.deployments += self._store_missing(of_servers, options)

    def _store_missing(self, rows: software.Imported, options: Options) -> int:
        """Store the rows whose ids do not exist, unless it is a dry run; return their number."""
        database = self._context.database
        if options.dry_run:
            return database.read(lambda conn: len(software.missing(conn, rows)))
        return database.write(lambda conn: software.insert_missing(conn, rows))

    def _move(self, tree: HeatTree, options: Options) -> MovedStack:
        root = tree.root
        stays = MovedStack(root.id, root.name, root.project_id, Disposition.STAYS)
        return within(
            lambda: self._moved(tree, options), lambda reasons: replace(stays, reasons=list(reasons))
        )

    def _moved(self, tree: HeatTree, options: Options) -> MovedStack:
        """Move a tree.

        :raises Refused: it cannot be moved.
        """
        root = tree.root
        if tree.faults:
            raise Refused(*tree.faults)
        built = self._builder.build(tree, self._software_of(tree))
        differences = self._verify(built) if options.verifies else ()
        self._store(built, options)
        return MovedStack(
            id=root.id,
            name=root.name,
            project_id=root.project_id,
            disposition=Disposition.MOVES if options.dry_run else Disposition.MOVED,
            stacks=1 + len(tree.stacks),
            resources=len(built.resources()),
            notes=built.notes,
            differences=differences,
        )

    def _store(self, tree: BuiltTree, options: Options) -> None:
        """Store a tree, unless it is a dry run.

        :raises Refused: its name is taken.
        """
        database = self._context.database
        if options.dry_run:
            if database.read(lambda conn: writer.is_taken(conn, tree.root.stack)):
                raise Refused(NAME_TAKEN)
            return

        def store(conn: Connection) -> None:
            writer.store(conn, tree, self._context.clock())

        try:
            database.write(store)
        # The index decides, not a look before: a request may take the name at any moment.
        except oslo_errors.DBDuplicateEntry as error:
            if database.read(lambda conn: writer.is_taken(conn, tree.root.stack)):
                raise Refused(NAME_TAKEN) from error
            columns = ", ".join(error.columns) or "id"
            raise Refused(f"Stoker already has another row with the {columns} of one of its rows") from error

    def _software_of(self, tree: HeatTree) -> ProjectSoftware:
        """Return the configs and deployments that resources of a tree may have."""
        project_id = tree.root.project_id
        ids = [
            row.physical_id
            for stack in (tree.root, *tree.stacks)
            for row in stack.resources
            if row.physical_id is not None and len(row.physical_id) == _UUID
        ]
        configs, deployments = self._heat.software(project_id, ids) if ids else ([], [])
        present = [*(item.id for item in configs), *(item.id for item in deployments)]
        elsewhere = self._context.database.read(lambda conn: writer.owned(conn, present, project_id))
        return ProjectSoftware(project_id, configs, deployments, elsewhere)


_UUID = 36
