"""A plugin of pytest that plants faults instead of running its tests: one after the other, each in a fork.

The faults come as lines on standard input, ``{"mutant": {...}, "tests": [...], "seconds": ...}``, the answers
go to the descriptor of ``--mutate-answers``.
"""

import gc
import os
import sys
import typing
from collections.abc import Iterator

import pytest
from mutate import planting
from mutate.examples import same_examples
from mutate.forks import CANNOT, FAILS, SURVIVES, Tell
from mutate.operators import Mutant
from mutate.verdicts import Job, Verdicts
from stoker.db.engine import Database


class Trying:
    """Takes the place of pytest's loop over its tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer each line of standard input."""
        items = {item.nodeid: item for item in session.items}
        warm_up(session)
        planting.CACHES[:] = planting.caches()

        def run(mutant: Mutant | None, tests: list[str], tell: Tell) -> int:
            return _run(session, mutant, [items[name] for name in tests], tell)

        verdicts = Verdicts(run)
        answers = os.fdopen(session.config.option.mutate_answers, "w", buffering=1)
        folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for line in sys.stdin:
            # Without it each test of a database fails, and each fault would count as noticed.
            assert folder.is_dir(), f"something has removed {folder}"
            job = Job.parse(line)
            answers.write(verdicts.of(job.only(items)).line())
        return True


def _run(session: pytest.Session, mutant: Mutant | None, items: list[pytest.Item], tell: Tell) -> int:
    if mutant is not None:
        try:
            planting.plant(mutant)
        except planting.NotPlanted:
            return CANNOT
    for item, following in zip(items, [*items[1:], None], strict=True):
        tell(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return FAILS
    return SURVIVES


def warm_up(session: pytest.Session) -> None:
    """Run a few tests before any fork, so that forks find servers, schemas and modules ready.

    What the tests of a session share lives on, without a connection that two forks would share.
    """
    items = list(_cheap(session.items))
    others = [item for item in session.items if not item.nodeid.startswith("tests/services/")]
    if not items or not others:
        return
    for item, following in zip(items, [*items[1:], others[0]], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    session.testsfailed = 0
    for database in [each for each in gc.get_objects() if isinstance(each, Database)]:
        database.close()


def _cheap(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield a test of the simulation, and one on each of the servers."""
    yield from [item for item in items if item.nodeid.startswith("tests/simulation/test_work.py")][:1]
    of_states = [item for item in items if item.nodeid.startswith("tests/services/db/test_states.py")]
    for server in ("sqlite", "postgresql", "mariadb"):
        yield from [item for item in of_states if server in _parameters(item).values()][:1]


def _parameters(item: pytest.Item) -> dict[str, typing.Any]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, for the suite clears the variables of its caller."""
    parser.addoption("--mutate-answers", type=int, help="where to write what became of the faults")


def pytest_configure(config: pytest.Config) -> None:
    """Register the loop."""
    config.pluginmanager.register(Trying(), "trying")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Come after the suite, which has examples of its own."""
    same_examples()
