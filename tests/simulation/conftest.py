"""Options of the simulation."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each seed."""
    if "simulation_seed" in metafunc.fixturenames:
        only = metafunc.config.getoption("--seed")
        count = metafunc.config.getoption("--seeds")
        seeds = range(count) if only is None else [only]
        metafunc.parametrize("simulation_seed", seeds)
