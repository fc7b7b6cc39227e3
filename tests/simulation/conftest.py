"""Options of the simulation."""

from collections.abc import Iterator

import pytest
from harness.owned_statements import EXCEPTIONS, StatementWatch
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
def statements() -> Iterator[StatementWatch]:
    """All statements of this process are watched."""
    with StatementWatch(EXCEPTIONS) as watch:
        yield watch


WATCHED = frozenset(
    f"test_{name}"
    for name in (
        *(
            "actions",
            "adopt",
            "adoption",
            "callers_cloud",
            "cancel",
            "console_routes",
            "damaged_rows",
            "drift",
        ),
        *(
            "duties",
            "duties_purge",
            "event_sinks",
            "foreign_software",
            "groups",
            "guests",
            "id_collisions",
            "launched_groups",
        ),
        *(
            "losses",
            "nested",
            "nested_owner",
            "nested_snapshots",
            "policy_matrix",
            "preview_inside",
            "refresh",
        ),
        *("rescue", "rollback", "scaling", "snapshots", "unknown_things", "update"),
    )
)
"""Modules whose statements must all compare an owner."""


@pytest.fixture(autouse=True)
def reaches_things_through_their_owners(
    request: pytest.FixtureRequest, statements: StatementWatch
) -> Iterator[None]:
    """Fail a test in which something was read or written by an id alone."""
    statements.offences.clear()
    yield
    if request.module.__name__.rpartition(".")[2] in WATCHED:
        assert sorted(statements.offences) == []


@pytest.fixture(autouse=True)
def same_ids() -> Iterator[None]:
    """The same ids at each run, so the same owners."""
    with repeatable(0):
        yield
