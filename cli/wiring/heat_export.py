"""The export of stacks to Heat, from the configuration."""

import contextlib
from collections.abc import Callable, Iterator

from oslo_config import cfg

from ...heat_database.crypt import HeatCipher
from ...heat_database.reader import HeatDatabase
from ...heat_export.run import Export, ExportParts
from ...heat_export.stoker_rows import StokerDatabase
from ...heat_import.run import CLAIMED_BY
from ...keystone.trusts import KeystoneTrusts
from ...sandbox.pool import install
from ..config.language_options import helper_limits
from .database import open_database
from .environment_files import installed_types, with_operator_files
from .parts import make_trusts
from .secrets import make_sealer


@contextlib.contextmanager
def open_export(
    conf: cfg.ConfigOpts, heat: HeatDatabase, cipher: HeatCipher, progress: Callable[[int, int], None]
) -> Iterator[Export]:
    """Connect to Stoker's database, and make an export of it.

    :raises WrongConfiguration: an option is missing or wrong.
    :raises KeystoneUnavailable: Keystone does not say whose trusts Stoker's account has.
    """
    catalogue = with_operator_files(installed_types(conf), conf)
    helpers = install(helper_limits(conf))
    try:
        database, _ = open_database(conf, long_work=True)
        trusts = make_trusts(conf, catalogue)
        parts = ExportParts(
            registry=catalogue,
            sealer=make_sealer(conf),
            cipher=cipher,
            claimed_by=CLAIMED_BY,
            clock=database.clock,
            trustors=trusts.trustors() if isinstance(trusts, KeystoneTrusts) else {},
        )
        yield Export(StokerDatabase(database), heat, parts, progress=progress)
        database.close()
    finally:
        helpers.close()
