"""Bringing a database to the version this code needs."""

import pathlib
import typing

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection

from .engine import Database

HEAD = "head"


def upgrade(database: Database, revision: str = HEAD) -> None:
    """Run the migrations up to a revision, each in the transaction of one connection."""
    with database.engine.connect() as conn, conn.begin():
        command.upgrade(_config(conn), revision)


def _config(conn: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(pathlib.Path(__file__).parent / "migrations"))
    attributes: dict[str, typing.Any] = config.attributes
    attributes["connection"] = conn
    return config
