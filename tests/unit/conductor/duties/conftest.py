"""The database of duties that read their own rows."""

import pathlib
from collections.abc import Iterator

import pytest
from stoker.db.engine import Database
from stoker.db.schema import upgrade


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: pathlib.Path = tmp_path_factory.mktemp("duties")
    upgraded = Database(f"sqlite:///{folder}/stoker.sqlite")
    upgrade.upgrade(upgraded)
    yield upgraded
    upgraded.close()
