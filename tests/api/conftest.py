"""One running Stoker for all tests of the API; each test has a project of its own."""

import itertools
import pathlib
from collections.abc import Iterator

import pytest
from client.serving import PATIENT, Answer, Json, Service, fault
from harness.templates import flat

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from _running(tmp_path_factory.mktemp("api"), conductors=2)


@pytest.fixture(scope="session")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A Stoker in which nothing happens but what a test asks for."""
    yield from _running(tmp_path_factory.mktemp("quiet"), conductors=1)


def _running(directory: pathlib.Path, *, conductors: int) -> Iterator[Service]:
    running = Service(directory, conductors=conductors, env=PATIENT)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def tenant() -> str:
    return f"tenant{next(_NUMBERS)}"


class Refusals:
    """Sends what must be refused, and sees to it that nothing was stored."""

    def __init__(self, quiet: Service, path: str) -> None:
        self.service = quiet
        self.path = path
        self.rows = quiet.rows()

    def check(self, answer: Answer, status: int, kind: str, *fragments: str) -> None:
        """The answer is this fault, its message says this, and the database is as it was."""
        assert (answer.status, fault(answer)[1]) == (status, kind), answer.body
        missing = [fragment for fragment in fragments if fragment not in answer.error["message"]]
        assert not missing, answer.error["message"]
        now = self.service.rows()
        # The traversal of the one stack that exists is purged with its tasks some time after it is done.
        purged = ("traversal", "task")
        assert all(now.pop(table) <= self.rows[table] for table in purged)
        assert now == {table: count for table, count in self.rows.items() if table not in purged}

    def create(self, kind: str, *fragments: str, **fields: Json) -> None:
        """A creation that is refused with 400, and a preview that is refused alike."""
        body = {"stack_name": f"refused{next(_NUMBERS)}", "template": flat(1), **fields}
        for path in ("stacks", "stacks/preview"):
            self.check(self.service.call("POST", f"/v1/quiet/{path}", body), 400, kind, *fragments)


@pytest.fixture(scope="session")
def existing(quiet: Service) -> str:
    return quiet.created("quiet", "existing", flat(1))


@pytest.fixture
def refusals(quiet: Service, existing: str) -> Refusals:
    return Refusals(quiet, existing)
