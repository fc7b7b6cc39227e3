"""Duties run at their intervals while there is activity, and rest otherwise."""

import math

from stoker.conductor.timetable import Cadence, Timetable

INTERVALS = {"steady": 2.0, "active": 0.25, "forecast": 1.0}
CADENCES = {"steady": Cadence.STEADY, "active": Cadence.ACTIVE, "forecast": Cadence.FORECAST}


class FakeOutlook:
    """An outlook as a test sets it."""

    def __init__(self) -> None:
        self.resting = False
        self.forecast = math.inf
        self.change = math.inf

    def is_resting(self, now: float) -> bool:
        return self.resting

    def forecast_at(self, now: float) -> float:
        return self.forecast

    def changes_at(self, now: float) -> float:
        return self.change


def started(outlook: FakeOutlook) -> Timetable:
    timetable = Timetable(INTERVALS, CADENCES, outlook)
    timetable.start(100.0)
    return timetable


def test_each_duty_begins_after_its_interval_and_again_after_the_next() -> None:
    timetable = started(FakeOutlook())
    assert timetable.take_due(100.0) == []
    assert timetable.next_at(100.0) == 100.25
    assert timetable.take_due(100.25) == ["active"]
    assert timetable.take_due(100.25) == []
    assert timetable.take_due(102.0) == ["steady", "active"]
    assert timetable.next_at(102.0) == 102.25


def test_a_rest_stops_the_duties_that_may_rest_and_no_other() -> None:
    outlook = FakeOutlook()
    timetable = started(outlook)
    outlook.resting = True
    outlook.forecast = 100.0
    outlook.change = 107.5
    assert timetable.resting(101.0) == ["active"]
    assert timetable.take_due(101.9) == ["forecast"]
    assert timetable.take_due(102.0) == ["steady"]
    outlook.forecast = math.inf
    assert timetable.next_at(102.0) == 107.5, "the end of the rest comes before the next round"


def test_a_conductor_at_rest_wakes_for_its_forecasts_only() -> None:
    outlook = FakeOutlook()
    timetable = started(outlook)
    outlook.resting = True
    outlook.forecast = 105.0
    assert timetable.take_due(104.9) == []
    assert timetable.next_at(104.9) == 105.0
    assert timetable.take_due(105.0) == ["steady", "forecast"]
    outlook.forecast = 105.5
    assert timetable.take_due(106.9) == ["forecast"], "none comes sooner than after its interval"


def test_all_resting_duties_run_at_once_when_the_rest_ends() -> None:
    outlook = FakeOutlook()
    timetable = started(outlook)
    outlook.resting = True
    outlook.forecast = 100.0
    timetable.take_due(102.0)
    outlook.resting = False
    outlook.forecast = math.inf
    assert timetable.next_at(103.0) <= 103.0
    assert timetable.take_due(103.0) == ["active"]
    assert timetable.resting(103.0) == []


def test_a_forecast_is_made_when_it_is_due_but_not_without_a_pause() -> None:
    outlook = FakeOutlook()
    timetable = started(outlook)
    outlook.forecast = 100.0
    assert "forecast" in timetable.take_due(101.0)
    assert "forecast" not in timetable.take_due(101.5), "it failed: the next one comes after its interval"
    outlook.forecast = 106.0
    assert "forecast" not in timetable.take_due(105.9)
    assert "forecast" in timetable.take_due(106.0)
