"""One running Stoker for all tests of the API; each test has a tenant of its own."""

import itertools
import pathlib
from collections.abc import Iterator

import pytest
from client.serving import Service

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from _running(tmp_path_factory.mktemp("api"), conductors=2)


@pytest.fixture(scope="session")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A Stoker in which nothing happens but what a test asks for."""
    yield from _running(tmp_path_factory.mktemp("quiet"), conductors=1)


def _running(directory: pathlib.Path, *, conductors: int) -> Iterator[Service]:
    running = Service(directory, conductors=conductors)
    try:
        yield running
    finally:
        code = running.stop()
    assert code == 0


@pytest.fixture
def tenant() -> str:
    return f"tenant{next(_NUMBERS)}"
