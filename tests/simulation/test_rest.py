"""An idle conductor rests: it needs little of the database, and is on time all the same."""

import pathlib
import typing
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from simulation.helpers import ended, template
from simulation.world import SimConductor, World
from stoker.conductor.duties.report import ConductorReport
from stoker.conductor.duties.stack_timeouts import StackTimeouts
from stoker.conductor.lookout import ACTIVE_FOR, FORECAST_EVERY, HORIZON
from stoker.conductor.timetable import Cadence, Timetable
from stoker.db.rows import Stack
from stoker.db.states import REDELIVER_AFTER, Status
from stoker.ring.local_member import LocalMember
from stoker.ring.membership import Membership

SLOW = {"after": 100_000}
STEP = StackTimeouts.interval
MOST_TRANSACTIONS = 30
MOST_STATEMENTS = 60
"""Most of an idle conductor in a minute: it reports, and makes a forecast, every five seconds."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2)


def pass_time(world: World, seconds: float, step: float = STEP) -> Iterator[float]:
    """Let time pass in steps, and return after each of them."""
    for _ in range(round(seconds / step)):
        world.pass_time(step)
        for conductor in world.awake():
            conductor.run_due_duties(world.clock.now)
        yield world.clock.now


def rest(world: World, seconds: float = 2 * ACTIVE_FOR) -> None:
    """Let time pass, after all messages are delivered."""
    world.calm()
    for _ in pass_time(world, seconds):
        world.calm()


def are_resting(world: World) -> list[bool]:
    return [conductor.lookout.is_resting(world.clock.now) for conductor in world.awake()]


def timed_out_after(world: World, stack: Stack, step: float = STEP) -> float:
    """Let time pass until the stack has timed out; return the seconds since its deadline."""
    deadline = world.stack(stack.id).deadline_at or 0.0
    for now in pass_time(world, deadline - world.clock.now + 30.0, step):
        if ended(world, stack):
            return now - deadline
    raise AssertionError("it does not time out")


class Alone:
    """The membership of a conductor that reports."""

    me = LocalMember("host0")


def with_report(conductor: SimConductor, world: World) -> None:
    """Let the conductor report its state, too."""
    conductor.duties["ConductorReport"] = ConductorReport(
        database=world.database,
        ring=conductor.ring,
        membership=typing.cast(Membership, Alone()),
        host=conductor.host,
        threads=lambda: (0, 0),
        size=1,
    )
    conductor.policies["ConductorReport"] = conductor.policies["StackPurge"]
    conductor.timetable = Timetable(
        {name: duty.interval for name, duty in conductor.duties.items()},
        {name: conductor.policies[name].cadence for name in conductor.duties},
        conductor.lookout,
    )


def counted(world: World, event: str, job: Callable[[], object]) -> int:
    """Run a job, and return how often the database's event took place."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sa.event.listen(world.database.engine, event, note)
    job()
    sa.event.remove(world.database.engine, event, note)
    return count


@pytest.mark.parametrize(
    ("event", "most"), [("begin", MOST_TRANSACTIONS), ("before_cursor_execute", MOST_STATEMENTS)]
)
def test_an_idle_conductor_needs_little_of_the_database(
    tmp_path: pathlib.Path, event: str, most: int
) -> None:
    world = World(tmp_path, hosts=1)
    world.create("s", template(a={}))
    rest(world, 100.0)
    [conductor] = world.awake()
    with_report(conductor, world)

    def minute() -> None:
        for _ in pass_time(world, 60.0):
            assert are_resting(world) == [True]

    assert 0 < counted(world, event, minute) <= most


def test_a_timeout_far_ahead_strikes_at_its_moment_after_a_rest(world: World) -> None:
    stack = world.create("s", template(a=SLOW))
    rest(world)
    assert are_resting(world) == [True, True]
    assert timed_out_after(world, stack) <= STEP


def test_a_lost_announcement_delays_a_near_deadline_by_a_forecast(world: World) -> None:
    stack = world.create("s", template(a=SLOW))
    rest(world)
    world.unannounced = 1.0
    deadline = world.clock.now + 1.0

    def hurry(conn: sa.Connection) -> None:
        conn.execute(sa.text("UPDATE stack SET deadline_at = :at"), {"at": deadline})

    world.database.write(hurry)
    assert are_resting(world) == [True, True]
    assert 0 < timed_out_after(world, stack) <= FORECAST_EVERY + STEP


def test_an_announced_commit_ends_the_rest_of_all_conductors(world: World) -> None:
    rest(world)
    world.create("s", template(a={}))
    assert are_resting(world) == [True, True], "it is on its way"
    world.calm()
    assert are_resting(world) == [False, False]


@pytest.mark.parametrize(("unannounced", "most"), [(0.0, STEP), (1.0, FORECAST_EVERY)])
def test_a_lost_hint_is_repeated(world: World, unannounced: float, most: float) -> None:
    rest(world)
    world.unannounced = unannounced
    stack = world.create("s", template(a={}))
    world.bus.hints.clear()
    began = world.clock.now
    for _ in pass_time(world, 60.0):
        world.calm()
        if ended(world, stack):
            break
    assert world.stack(stack.id).status == Status.COMPLETE
    assert REDELIVER_AFTER <= world.clock.now - began <= REDELIVER_AFTER + most


def test_a_new_owner_does_not_rest_before_it_has_a_forecast_of_its_own(world: World) -> None:
    stack = world.create("s", template(a=SLOW))
    rest(world)
    [owner] = [c.host for c in world.awake() if c.ring.owns(stack.shard)]
    deadline = world.stack(stack.id).deadline_at or 0.0
    for _ in pass_time(world, deadline - world.clock.now - 6.0):
        world.look_all()
    world.kill(owner)
    for _ in pass_time(world, 3.0):
        world.look_all()
    assert are_resting(world) == [False], "the ring has changed"
    assert timed_out_after(world, stack) <= STEP


def test_a_conductor_without_forecasts_is_active(world: World) -> None:
    rest(world)
    for conductor in world.awake():
        del conductor.duties["Forecast"]
        conductor.timetable = Timetable(
            {name: duty.interval for name, duty in conductor.duties.items()},
            dict.fromkeys(conductor.duties, Cadence.ACTIVE),
            conductor.lookout,
        )
    for _ in pass_time(world, HORIZON):
        pass
    assert are_resting(world) == [False, False]
