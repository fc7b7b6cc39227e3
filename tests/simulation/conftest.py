"""Options of the simulation."""

from collections.abc import Iterator

import pytest
from harness.counted_rows import CountWatch
from harness.lock_order import LockWatch
from harness.owned_statements import EXCEPTIONS, Offence, StatementWatch
from harness.state_writers import StateWatch
from simulation.coverage import Pair
from simulation.repeatable import repeatable


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each seed."""
    if "simulation_seed" in metafunc.fixturenames:
        only = metafunc.config.getoption("--seed")
        count = metafunc.config.getoption("--seeds")
        seeds = range(count) if only is None else [only]
        metafunc.parametrize("simulation_seed", seeds)


@pytest.fixture
def focus(request: pytest.FixtureRequest) -> Pair | None:
    """The focus of the schedules, of the option --focus."""
    text = request.config.getoption("--focus")
    return None if text is None else Pair.parse(text)


@pytest.fixture(scope="session")
def offences() -> Iterator[set[Offence]]:
    """All statements of this process are watched."""
    reported: set[Offence] = set()
    with StatementWatch(EXCEPTIONS, reported.add):
        yield reported


@pytest.fixture(autouse=True)
def reaches_things_through_their_owners(offences: set[Offence]) -> Iterator[None]:
    """Fail a test in which something was read or written by an id alone."""
    offences.clear()
    yield
    assert sorted(offences) == []


@pytest.fixture(scope="session")
def written_states() -> Iterator[StateWatch]:
    """All updates of states in this process are watched."""
    with StateWatch() as watch:
        yield watch


@pytest.fixture(autouse=True)
def states_are_written_by_the_tables(written_states: StateWatch) -> Iterator[None]:
    """Fail a test in which another module than that of the transitions has written a state."""
    written_states.offences.clear()
    yield
    assert sorted(written_states.offences) == []


@pytest.fixture(scope="session")
def uncounted() -> Iterator[CountWatch]:
    """All writes of what quotas count are watched in this process."""
    with CountWatch() as watch:
        yield watch


@pytest.fixture(autouse=True)
def what_is_written_is_counted(uncounted: CountWatch) -> Iterator[None]:
    """Fail a test in which rows that quotas count were written, and no counter with them."""
    uncounted.offences.clear()
    yield
    assert sorted(uncounted.offences) == []


@pytest.fixture(scope="session")
def locks() -> Iterator[LockWatch]:
    """All locks of this process are watched."""
    with LockWatch() as watch:
        yield watch


@pytest.fixture(autouse=True)
def rows_are_locked_in_the_order_of_their_ids(locks: LockWatch) -> Iterator[None]:
    """Fail a test in which two transactions could wait for each other."""
    locks.offences.clear()
    yield
    assert sorted(locks.offences) == []


@pytest.fixture(autouse=True)
def same_ids() -> Iterator[None]:
    """The same ids at each run, so the same owners."""
    with repeatable(0):
        yield
