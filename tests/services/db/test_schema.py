"""The migrations bring a database to exactly what the code's tables say."""

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from services.db.rows import on
from stoker.db.engine import Database
from stoker.db.errors import Unavailable
from stoker.db.schema import revisions, tables, upgrade

FACTS = {"compare_type": True, "compare_server_default": True}


def differences(database: Database) -> list[object]:
    with database.engine.connect() as conn:
        return list(compare_metadata(MigrationContext.configure(conn, opts=FACTS), tables.metadata))


def test_migrations_and_tables_agree(database: Database) -> None:
    assert differences(database) == []


def test_a_difference_would_be_seen(database: Database) -> None:
    extra = sa.Column("extra", sa.Integer)
    metadata = sa.MetaData()
    for table in tables.metadata.tables.values():
        table.to_metadata(metadata)
    metadata.tables["stack"].append_column(extra)
    with database.engine.connect() as conn:
        differences = compare_metadata(MigrationContext.configure(conn, opts=FACTS), metadata)
    assert [difference[0] for difference in differences] == ["add_column"]


def test_an_upgraded_database_is_at_the_newest_revision_and_stays_there(database: Database) -> None:
    assert database.read(revisions.current) == revisions.NEWEST
    upgrade.upgrade(database)
    assert database.read(revisions.current) == revisions.NEWEST


def test_a_database_that_was_never_migrated_is_at_no_revision(tmp_path: object) -> None:
    fresh = Database(f"sqlite:///{tmp_path}/fresh.sqlite")
    assert fresh.read(revisions.current) is None
    upgrade.upgrade(fresh)
    assert fresh.read(revisions.current) == revisions.NEWEST
    fresh.close()


def test_the_revision_of_a_database_that_is_unavailable_is_an_error_of_its_own() -> None:
    away = Database("postgresql+psycopg://nobody@127.0.0.1:1/nothing", tries=2, sleep=lambda seconds: None)
    with pytest.raises(Unavailable, match="unavailable in 2 tries"):
        away.read(revisions.current)


@on("mariadb")
def test_mariadb_stores_every_character_and_compares_bytes(database: Database) -> None:
    query = "SELECT DISTINCT table_collation FROM information_schema.tables WHERE table_schema = DATABASE()"
    collations = database.read(
        lambda conn: conn.execute(sa.text(query + " AND table_name <> 'alembic_version'"))
    )
    assert list(collations.scalars()) == ["utf8mb4_nopad_bin"]
