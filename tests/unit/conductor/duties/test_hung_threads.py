"""The end of a conductor in which too many threads hang."""

import pytest
from stoker.conductor.duties.hung_threads import TooManyHungThreads


@pytest.mark.parametrize(("most", "ends_at"), [(3, 3), (1, 1), (0, None)])
def test_a_conductor_ends_once_at_its_limit(most: int, ends_at: int | None) -> None:
    hung: list[None] = []
    ends: list[int] = []
    duty = TooManyHungThreads(hung=lambda: len(hung), most=most, act=lambda: ends.append(len(hung)))
    for _ in range(5):
        duty.run()
        hung.append(None)
    assert ends == ([] if ends_at is None else [ends_at])
