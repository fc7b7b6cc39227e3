"""A conductor rests by a fresh forecast only, and is active when something is due, or was committed."""

import itertools
import pathlib
import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from stoker.conductor.lookout import ACTIVE_FOR, FORECAST_EVERY, HORIZON, LEAST_PAUSE, PAGE, Lookout
from stoker.conductor.timetable import Cadence, Timetable
from stoker.db.engine import Database
from stoker.db.errors import Unavailable
from stoker.db.ids import MemberId
from stoker.db.schema import tables, upgrade

OURS = 1
DEPUTYS = 2
OTHERS = 3
BEGAN = 1_000_000.0
"""The database's time; the monotonic clock starts at 0."""


class FakeRing:
    """The ring of a conductor that owns one shard, and is the deputy of another."""

    def owns(self, shard: int) -> bool:
        return shard == OURS

    def is_deputy(self, shard: int) -> bool:
        return shard == DEPUTYS

    def present(self) -> frozenset[MemberId]:
        return frozenset({MemberId("a/1")})


class Scene:
    """A lookout on a clock that the test sets.

    :ivar now: the monotonic clock.
    :ivar wakes: calls of the lookout's `wake`.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.now = 0.0
        self.wakes = 0
        self.is_sure = True
        self.database = Database(f"sqlite:///{folder / 'lookout.sqlite'}")
        upgrade.upgrade(self.database)
        self.lookout = Lookout(
            database=self.database,
            ring=typing.cast(typing.Any, FakeRing()),
            clock=lambda: BEGAN + self.now,
            is_time_sure=lambda: self.is_sure,
            monotonic=lambda: self.now,
        )
        self.lookout.on_wake(self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def insert(self, table: sa.Table, **values: object) -> None:
        """Insert a row with values for the columns that a row must have."""
        for column in table.columns:
            if not column.nullable and column.default is None and column.key not in values:
                values[column.key] = 7 if column.type.python_type in (int, float) else "7"
        self.database.write(lambda conn: conn.execute(sa.insert(table).values(**values)))

    def forecast(self) -> float:
        """Let the first activity end, make a forecast, and return in how many seconds the rest ends."""
        self.now = max(self.now, ACTIVE_FOR)
        self.lookout.run()
        if not self.lookout.is_resting(self.now):
            return 0.0
        return self.lookout.changes_at(self.now) - self.now


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    return Scene(tmp_path)


def test_a_conductor_is_active_at_first_and_rests_after_a_forecast(scene: Scene) -> None:
    assert not scene.lookout.is_resting(scene.now)
    scene.lookout.run()
    assert not scene.lookout.is_resting(scene.now), "a forecast that comes while it is active is not made"
    assert scene.lookout.forecast_at(scene.now) == ACTIVE_FOR
    assert scene.forecast() == HORIZON
    assert scene.lookout.forecast_at(scene.now) == scene.now + FORECAST_EVERY


def test_a_report_comes_within_its_interval_and_that_of_the_forecasts(scene: Scene) -> None:
    """The longest gap is between the last report before a rest and the first one of the rest."""
    cadences = {"report": Cadence.STEADY, "forecast": Cadence.FORECAST}
    timetable = Timetable({"report": 2.0, "forecast": LEAST_PAUSE}, cadences, scene.lookout)
    timetable.start(scene.now)
    moments = []
    for number in range(1, 3000):
        scene.now = number * 0.05
        if number % 610 == 0:
            scene.lookout.stir()
        due = timetable.take_due(scene.now)
        if "report" in due:
            moments.append(scene.now)
        if "forecast" in due:
            scene.lookout.run()
    gaps = [after - moment for moment, after in itertools.pairwise(moments)]
    assert FORECAST_EVERY < max(gaps) < 2.0 + FORECAST_EVERY


def test_a_rest_ends_where_no_fresh_forecast_follows(scene: Scene) -> None:
    scene.forecast()
    scene.now += HORIZON - 0.1
    assert scene.lookout.is_resting(scene.now)
    scene.now += 0.1
    assert not scene.lookout.is_resting(scene.now)
    assert scene.lookout.forecast_at(scene.now) <= scene.now


def test_a_forecast_that_fails_lets_the_duties_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> typing.NoReturn:
        raise Unavailable("the test says so")

    monkeypatch.setattr(scene.database, "read", fail)
    with pytest.raises(Unavailable):
        scene.forecast()
    assert not scene.lookout.is_resting(scene.now)


def insert_task(scene: Scene, at: float, shard: int) -> None:
    scene.insert(tables.task, due_at=at, shard=shard)


def insert_deadline(scene: Scene, at: float, shard: int) -> None:
    scene.insert(tables.stack, deadline_at=at, shard=shard)


def insert_rollback(scene: Scene, at: float, shard: int) -> None:
    scene.insert(tables.stack, rollback_at=at, shard=shard)


def insert_traversal(scene: Scene, at: float, shard: int) -> None:
    scene.insert(tables.traversal, due_at=at, shard=shard)


def insert_closed_sink(scene: Scene, at: float, shard: int) -> None:
    scene.insert(tables.event_sink, closed_at=at - 60.0, shard=shard)


SLICED = [insert_task, insert_deadline, insert_rollback, insert_traversal, insert_closed_sink]
Insert = Callable[[Scene, float, int], None]


@pytest.mark.parametrize("insert", SLICED)
def test_the_rest_ends_at_the_moment_of_the_first_row_of_the_slice(scene: Scene, insert: Insert) -> None:
    begin = BEGAN + ACTIVE_FOR
    insert(scene, begin + 3.0, OURS)
    scene.insert(tables.task, id=8, due_at=begin + 4.0, shard=OURS)
    assert scene.forecast() == pytest.approx(3.0)
    scene.now += 3.0
    assert not scene.lookout.is_resting(scene.now)
    assert scene.lookout.forecast_at(scene.now) == scene.now + ACTIVE_FOR


@pytest.mark.parametrize("insert", SLICED)
def test_what_is_overdue_keeps_the_conductor_active(scene: Scene, insert: Insert) -> None:
    insert(scene, BEGAN - 100.0, OURS)
    assert scene.forecast() == 0.0


@pytest.mark.parametrize("insert", SLICED)
def test_what_is_due_after_the_horizon_or_to_others_ends_no_rest(scene: Scene, insert: Insert) -> None:
    insert(scene, BEGAN + ACTIVE_FOR + HORIZON + 1.0, OURS)
    assert scene.forecast() == HORIZON


@pytest.mark.parametrize("insert", SLICED)
def test_rows_of_other_slices_end_no_rest(scene: Scene, insert: Insert) -> None:
    insert(scene, BEGAN, OTHERS)
    assert scene.forecast() == HORIZON


def test_the_deputy_of_a_shard_ends_its_rest_a_moment_after_the_deadline(scene: Scene) -> None:
    insert_deadline(scene, BEGAN + ACTIVE_FOR + 3.0, DEPUTYS)
    assert scene.forecast() == pytest.approx(3.5)


def test_a_claim_ends_the_rest_where_its_member_is_gone(scene: Scene) -> None:
    scene.insert(tables.task, member="a/1", shard=OTHERS)
    assert scene.forecast() == HORIZON
    scene.insert(tables.task, id=8, member="b/1", shard=OTHERS)
    scene.now += FORECAST_EVERY
    assert scene.forecast() == 0.0


def test_an_event_that_is_not_sent_yet_keeps_all_conductors_active(scene: Scene) -> None:
    scene.insert(tables.event_delivery, body={})
    assert scene.forecast() == 0.0


@pytest.mark.parametrize(("owned", "rest"), [(0, 2.0), (OURS, HORIZON)])
def test_the_owner_of_the_first_shard_revokes_credentials(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, owned: int, rest: float
) -> None:
    monkeypatch.setattr(FakeRing, "owns", lambda self, shard: shard == owned)
    scene.insert(tables.credential, unused_at=BEGAN + ACTIVE_FOR + 2.0, body={})
    assert scene.forecast() == pytest.approx(rest)


def test_a_full_page_is_no_news_of_what_comes_after_it(scene: Scene) -> None:
    begin = BEGAN + ACTIVE_FOR
    rows = range(1, PAGE + 1)
    for number in rows:
        scene.insert(tables.task, id=number, due_at=begin + 2.0, shard=OTHERS)
    scene.insert(tables.task, id=PAGE + 1, due_at=begin + 3.0, shard=OURS)
    assert scene.forecast() == pytest.approx(2.0)


def test_a_stir_ends_the_rest_at_once_and_wakes_once(scene: Scene) -> None:
    scene.forecast()
    scene.now += 1.0
    for _ in range(3):
        scene.lookout.stir()
    assert (scene.lookout.is_resting(scene.now), scene.wakes) == (False, 1)
    scene.now += ACTIVE_FOR - 0.1
    scene.lookout.stir()
    scene.now += ACTIVE_FOR - 0.1
    assert not scene.lookout.is_resting(scene.now), "each stir counts for its own seconds"
    assert scene.wakes == 1


def test_a_stir_during_a_forecast_counts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    read = scene.database.read

    def held_up(transaction: Callable[..., object]) -> object:
        rows = read(transaction)
        scene.now += 0.5
        scene.lookout.stir()
        return rows

    monkeypatch.setattr(scene.database, "read", held_up)
    assert scene.forecast() == 0.0
    assert scene.lookout.forecast_at(scene.now) == scene.now + ACTIVE_FOR


def test_a_forecast_replaces_the_moment_of_the_one_before(scene: Scene) -> None:
    insert_task(scene, BEGAN + ACTIVE_FOR + 8.0, OURS)
    scene.forecast()
    scene.now += FORECAST_EVERY
    insert_deadline(scene, BEGAN + scene.now + 1.0, OURS)
    assert scene.forecast() == pytest.approx(1.0)


def test_a_conductor_does_not_rest_while_the_time_is_in_doubt(scene: Scene) -> None:
    scene.is_sure = False
    assert scene.forecast() == 0.0
