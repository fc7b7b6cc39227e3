"""The export of stacks to Heat, from the configuration."""

import contextlib
from collections.abc import Callable, Iterator

from oslo_config import cfg

from ...features.moves.heat.cipher import HeatCipher
from ...features.moves.heat.reader import HeatDatabase
from ...features.moves.inward.run import CLAIMED_BY
from ...features.moves.outward.run import Export, ExportParts
from ...features.moves.outward.stoker_rows import StokerDatabase
from ...keystone.trusts import KeystoneTrusts
from .parts import make_trusts
from .secrets import make_sealer
from .stack_moves import open_for_moves


@contextlib.contextmanager
def open_export(
    conf: cfg.ConfigOpts, heat: HeatDatabase, cipher: HeatCipher, progress: Callable[[int, int], None]
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
