"""The parts that an import from Heat and an export to it share, from the configuration."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from oslo_config import cfg

from ...db.engine import Database
from ...resources.registry import ResourceRegistry
from ...template.sandbox.pool import install
from ..config.language_options import helper_limits
from .database import open_database
from .environment_files import installed_types, with_operator_files


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
    with contextlib.closing(install(helper_limits(conf))):
        database, shard_count = open_database(conf, long_work=True)
        with contextlib.closing(database):
            yield MoveParts(catalogue, database, shard_count)
