"""The import of Heat's stacks, from the configuration."""

import contextlib
from collections.abc import Iterator, Sequence

from oslo_config import cfg

from ...db.ids import MemberId, TaskId, TraversalId
from ...engine.compile import GoalCompiler
from ...engine.context import EngineContext, Hints
from ...features.moves.heat.report import ShowProgress
from ...features.moves.inward.run import HeatSource, Import
from ...features.moves.inward.tree_builder import TreeBuilder
from ...features.moves.inward.type_data import Neighbours
from ...features.moves.inward.verify import Verifier
from ...keystone.delegated_auth import NO_TRUSTS
from ...keystone.delegations import Delegations
from ...keystone.trusts import KeystoneTrusts
from ..config.sections import Settings
from .engine import engine_settings
from .moves import open_for_moves
from .parts import make_trusts
from .secrets import make_addresses, make_sealer, signal_root


class _NoHints(Hints):
    """An import starts no task, so nobody gets a hint."""

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Drop the hint."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """Drop the hint."""

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Drop the hint."""


@contextlib.contextmanager
def open_import(conf: cfg.ConfigOpts, heat: HeatSource, progress: ShowProgress) -> Iterator[Import]:
    """Connect to Stoker's database, and make an import into it.

    :raises WrongConfiguration: an option is missing or wrong.
    :raises KeystoneUnavailable: Keystone does not say which trusts Stoker's account may use.
    """
    with open_for_moves(conf) as opened:
        catalogue = opened.catalogue
        database = opened.database
        sealer = make_sealer(conf)
        settings = engine_settings(conf, opened.shard_count)
        context = EngineContext(
            database=database,
            registry=catalogue,
            sealer=sealer,
            hints=_NoHints(),
            clock=database.clock,
            settings=settings,
            compiler=GoalCompiler(catalogue, settings.limits, Settings(conf).region),
            delegations=Delegations(database=database, sealer=sealer, trusts=NO_TRUSTS, clock=database.clock),
        )
        neighbours = Neighbours(make_addresses(conf, database, sealer), signal_root(conf))
        trusts = make_trusts(conf, catalogue)
        builder = TreeBuilder(
            context, neighbours, trusts.held() if isinstance(trusts, KeystoneTrusts) else None
        )
        yield Import(context, heat, builder, verify=Verifier(context).differences, progress=progress)
