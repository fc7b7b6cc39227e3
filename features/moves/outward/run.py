"""Moves the selected stacks: reads Stoker's database tree by tree, and writes each in one transaction."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.engine import Connection

from ....db.ids import StackId
from ....db.software import StoredConfig, StoredDeployment
from ....resources.registry import ResourceRegistry
from ....sealing.sealer import Sealer, SealError
from ..heat.border import within
from ..heat.cipher import HeatCipher
from ..heat.reader import HeatDatabase
from ..heat.report import Disposition, MovedStack, MoveProgress, Report, ShowProgress
from ..heat.rows import HeatTree, Refused
from ..heat.selection import Selection
from ..mapping.software import heat_config, heat_deployment
from .outgoing import OutgoingTree
from .software_writer import SoftwareWriter, own_software
from .statements import HeatRows
from .stoker_rows import StokerDatabase, StokerTree
from .tree_builder import HeatTreeBuilder
from .writer import TreeWriter, check_untouched, delete_tree

SCHEMAS = {"97b2a986f922": "Heat 27 (2026.2)"}
"""Releases of Heat into whose schema stacks are written, by the revisions of these."""
DELETED = "Stoker has deleted it since the import, so Heat counts it as deleted, too"


@dataclass(frozen=True)
class ExportParts:
    """The collaborators of a run.

    :ivar cipher: encrypts values for Heat.
    :ivar clock: seconds since the epoch.
    :ivar trustors: users by the ids of the trusts that they have made for Stoker's account.
    :ivar claimed_by: the engine that holds the locks of stacks which an import has moved.
    """

    registry: ResourceRegistry
    sealer: Sealer
    cipher: HeatCipher
    claimed_by: str
    clock: Callable[[], float]
    trustors: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ExportOptions:
    """The options of a run.

    :ivar dry_run: whether nothing is stored.
    """

    selection: Selection
    dry_run: bool = False


class Export:
    """One run.  For one thread.

    :ivar report: the report, of what is done so far.
    """

    def __init__(
        self,
        stoker: StokerDatabase,
        heat: HeatDatabase,
        parts: ExportParts,
        *,
        progress: ShowProgress | None = None,
    ) -> None:
        self._stoker = stoker
        self._heat = heat
        self._parts = parts
        self._builder = HeatTreeBuilder(parts.registry, parts.sealer, parts.trustors, parts.claimed_by)
        self._progress = MoveProgress(progress)
        self.report = Report()

    def run(self, options: ExportOptions) -> Report:
        """Move the stacks, or in a dry run find out which can be moved.

        :raises WrongSelection: what is named does not exist, or is not only one.
        """
        report = self.report
        options = replace(options, selection=self._stoker.resolve(options.selection))
        self._progress.begin(self._stoker.count(options.selection))
        for ids in self._stoker.pages(options.selection):
            earlier = {tree.root.id: self._living(tree) for tree in self._heat.trees(ids)}
            for root_id in ids:
                entry = self._within(root_id, earlier.get(root_id), options)
                if entry is not None:
                    report.stacks.append(entry)
                self._progress.add(1)
        if not options.selection.stacks:
            self._move_software(report, options)
        return report

    def _within(
        self, root_id: StackId, earlier: HeatTree | None, options: ExportOptions
    ) -> MovedStack | None:
        """Move a tree; whatever is wrong with its rows, this one stays only."""
        tree: StokerTree | None = None

        def move() -> MovedStack | None:
            nonlocal tree
            tree = self._stoker.tree(root_id)
            return self._move(tree, earlier, options)

        def stays(reasons: list[str]) -> MovedStack:
            name, project_id = (root_id, "") if tree is None else (tree.root.name, tree.root.project_id)
            return MovedStack(root_id, name, project_id, Disposition.STAYS, reasons=reasons)

        return within(move, stays)

    def _rows(self, conn: Connection) -> HeatRows:
        return HeatRows(conn, self._parts.clock())

    def _living(self, tree: HeatTree) -> HeatTree:
        """Return a tree without the nested stacks that Heat has deleted; a claim only hides them."""
        hidden_at = tree.root.deleted_at if tree.root.locked_by == self._parts.claimed_by else None
        stacks = [stack for stack in tree.stacks if stack.deleted_at in (None, hidden_at)]
        return replace(tree, stacks=stacks)

    def _move(self, tree: StokerTree, earlier: HeatTree | None, options: ExportOptions) -> MovedStack | None:
        """Move a tree; None: it is deleted, and Heat has none of it.

        :raises Refused: it cannot be moved.
        """
        root = tree.root
        if root.deleted_at is not None and (earlier is None or self._is_deleted(earlier)):
            return None
        entry = MovedStack(root.id, root.name, root.project_id, Disposition.MOVES)
        if root.deleted_at is not None:
            assert earlier is not None, "Heat has the tree"
            return self._delete(entry, earlier, root.deleted_at, options)
        built = self._builder.build(tree, earlier)
        return self._store(entry, built, earlier, options)

    def _is_deleted(self, tree: HeatTree) -> bool:
        return tree.root.deleted_at is not None and tree.root.locked_by != self._parts.claimed_by

    def _store(
        self, entry: MovedStack, built: OutgoingTree, earlier: HeatTree | None, options: ExportOptions
    ) -> MovedStack:
        """Store a tree, unless it is a dry run.

        :raises Refused: its name is taken, or Heat works on it.
        """
        stacks = (built.tree.root, *built.tree.stacks)
        entry = replace(
            entry,
            stacks=len(stacks),
            resources=sum(len(stack.resources) for stack in stacks),
            notes=built.notes,
        )

        obsolete = self._obsolete(earlier)

        def store(conn: Connection) -> int:
            # In a dry run, too: its report names each stack that a run would refuse.
            check_untouched(conn, built.tree.root, earlier)
            writer = TreeWriter(self._rows(conn), self._parts.cipher, built, earlier, obsolete)
            return 0 if options.dry_run else writer.write()

        changes = self._heat.write(store)
        if options.dry_run:
            return entry
        return replace(entry, disposition=Disposition.MOVED if changes else Disposition.PRESENT)

    def _delete(
        self, entry: MovedStack, earlier: HeatTree, deleted_at: float, options: ExportOptions
    ) -> MovedStack:
        """Let Heat count a tree as deleted, unless it is a dry run.

        :raises Refused: Heat works on it.
        """
        entry = replace(entry, stacks=1 + len(earlier.stacks), notes=[DELETED])
        if earlier.root.locked_by not in (None, self._parts.claimed_by):
            raise Refused(
                f"an engine of Heat has locked stack {entry.name}: stop heat-engine, and run this again"
            )
        if options.dry_run:
            return entry
        obsolete = self._obsolete(earlier)
        self._heat.write(lambda conn: delete_tree(self._rows(conn), earlier, deleted_at, obsolete))
        return replace(entry, disposition=Disposition.MOVED)

    def _obsolete(self, earlier: HeatTree | None) -> set[str]:
        """Return the ids of configs and deployments that Heat has of a tree's resources, and Stoker not."""
        if earlier is None:
            return set()
        return self._stoker.missing_software(own_software(earlier, self._parts.registry))

    def _move_software(self, report: Report, options: ExportOptions) -> None:
        """Move the configs and deployments that users have made by the API."""
        for configs, deployments in self._stoker.software_pages(options.selection):
            projects = {item.project_id for item in configs} | {item.project_id for item in deployments}
            for project_id in sorted(projects):
                of_project = (
                    [item for item in configs if item.project_id == project_id],
                    [item for item in deployments if item.project_id == project_id],
                )
                move = functools.partial(self._store_software, project_id, *of_project, options)
                reasons: list[str] = within(move, list)
                report.notes = [*report.notes, *(f"software of {project_id}: {text}" for text in reasons)]
                if not reasons:
                    report.configs += len(of_project[0])
                    report.deployments += len(of_project[1])

    def _store_software(
        self,
        project_id: str,
        configs: Sequence[StoredConfig],
        deployments: Sequence[StoredDeployment],
        options: ExportOptions,
    ) -> list[str]:
        """Store configs and deployments of a project, unless it is a dry run.

        :raises Refused: they cannot be stored.
        """
        sealer = self._parts.sealer.of_software(project_id)
        try:
            of_heat = [heat_config(item, sealer) for item in configs]
            on_servers = [heat_deployment(item, sealer) for item in deployments]
        except SealError as error:
            raise Refused(f"one cannot be opened: name its key in [secrets]: {error}") from error
        if not options.dry_run:
            self._heat.write(
                lambda conn: SoftwareWriter(self._rows(conn), project_id).put(of_heat, on_servers)
            )
        return []
