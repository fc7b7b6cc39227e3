"""The moves of stacks from Heat and to it, from the configuration."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from oslo_config import cfg

from ...db.engine import Database
from ...features.moves.heat.cipher import HeatCipher
from ...features.moves.heat.reader import HeatDatabase
from ...features.moves.heat.report import ShowProgress
from ...features.moves.inward.run import CLAIMED_BY
from ...features.moves.outward.run import Export, ExportParts
from ...features.moves.outward.stoker_rows import StokerDatabase
from ...keystone.trusts import KeystoneTrusts
from ...resources.registry import ResourceRegistry
from ...template.sandbox.pool import install
from ..config.sections import Settings
from .database import open_database
from .environment_files import installed_types, with_operator_files
from .parts import make_trusts
from .secrets import make_sealer


@dataclass(frozen=True)
class MoveParts:
    """Stoker's database and types, and the helpers of expressions, as long as stacks are moved."""

    catalogue: ResourceRegistry
    database: Database
    shard_count: int


@contextlib.contextmanager
def open_for_moves(conf: cfg.ConfigOpts) -> Iterator[MoveParts]:
    """Connect to Stoker's database, and start the helpers of expressions.

    :raises WrongConfiguration: an option is missing or wrong.
    """
    catalogue = with_operator_files(installed_types(conf), conf)
    with contextlib.closing(install(Settings(conf).expressions)):
        database, shard_count = open_database(conf, long_work=True)
        with contextlib.closing(database):
            yield MoveParts(catalogue, database, shard_count)


@contextlib.contextmanager
def open_export(
    conf: cfg.ConfigOpts, heat: HeatDatabase, cipher: HeatCipher, progress: ShowProgress
) -> Iterator[Export]:
    """Connect to Stoker's database, and make an export of it.

    :raises WrongConfiguration: an option is missing or wrong.
    :raises KeystoneUnavailable: Keystone does not say whose trusts Stoker's account has.
    """
    with open_for_moves(conf) as opened:
        trusts = make_trusts(conf, opened.catalogue)
        parts = ExportParts(
            registry=opened.catalogue,
            sealer=make_sealer(conf),
            cipher=cipher,
            claimed_by=CLAIMED_BY,
            clock=opened.database.clock,
            trustors=trusts.trustors() if isinstance(trusts, KeystoneTrusts) else {},
        )
        yield Export(StokerDatabase(opened.database), heat, parts, progress=progress)
