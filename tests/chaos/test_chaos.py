"""Two minutes of chaos on processes; ``make chaos`` runs it for longer, and on other sets of back ends."""

import pathlib

import pytest
from chaos.regressions import REGRESSIONS, Regression
from chaos.run import run

SECONDS = 60.0


@pytest.mark.full
@pytest.mark.timeout(0)  # Each of its waits has a limit of its own.
@pytest.mark.parametrize(
    "regression",
    [
        pytest.param(case, marks=[] if number == 0 else [pytest.mark.long], id=f"{case.name}-{case.seed}")
        for number, case in enumerate(REGRESSIONS)
    ],
)
def test_nothing_is_lost_doubled_or_stuck(tmp_path: pathlib.Path, regression: Regression) -> None:
    result = run(regression.name, seconds=SECONDS, seed=regression.seed, folder=tmp_path)
    assert not result.violations, result.text
