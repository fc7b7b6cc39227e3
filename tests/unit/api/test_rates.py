"""The limit of a project's requests in a minute."""

import pytest
from stoker.api import rates
from stoker.api.errors import Fault
from stoker.api.rates import BURST, RequestRates


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def passed(limit: RequestRates, project: str, requests: int) -> int:
    """How many of the requests are not refused."""
    for count in range(requests):
        try:
            limit.check(project)
        except Fault:
            return count
    return requests


def test_a_project_has_so_many_requests_and_no_other_project_loses_any() -> None:
    clock = Clock()
    limit = RequestRates(120, monotonic=clock)
    burst = int(2 * BURST)
    assert passed(limit, "a", 100) == burst
    assert passed(limit, "b", 5) == 5
    with pytest.raises(Fault, match="120 requests in a minute") as refused:
        limit.check("a")
    assert (refused.value.status, refused.value.kind) == (429, "TooManyRequests")
    clock.now += 1
    assert passed(limit, "a", 100) == 2
    clock.now += 3600
    assert passed(limit, "a", 100) == burst


def test_without_a_limit_or_a_project_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert passed(RequestRates(), "a", 1000) == 1000
    assert passed(RequestRates(1), "", 1000) == 1000
    monkeypatch.setattr(rates, "MOST_PROJECTS", 2)
    limit = RequestRates(120, monotonic=Clock())
    for project in "abc":
        limit.check(project)
    assert len(limit._buckets) == 2  # noqa: SLF001
