"""Signals have limits, and one that is refused leaves nothing behind."""

import json
import pathlib
import time
import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from simulation.helpers import rows
from simulation.nested import hot, settled
from simulation.world import World
from stoker.api.errors import fault_of
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.engine.signal_limits import SignalLimits
from stoker.engine.signals import send_signal, set_health
from stoker.template.errors import LimitExceeded

Json = typing.Any
LIMITS = SignalLimits(size=2000, count=5, total=4000, reason=100)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    simulated = World(tmp_path, hosts=1, threads=4)
    simulated.context = replace(
        simulated.context, settings=replace(simulated.context.settings, signals=LIMITS)
    )
    return simulated


@pytest.fixture
def stack(world: World) -> Stack:
    handles = {
        "handle": {"type": "OS::Heat::WaitConditionHandle", "metadata": {"own": 1}},
        "aws": {"type": "AWS::CloudFormation::WaitConditionHandle"},
    }
    return settled(world, world.create("s", hot(handles)))


def signal(world: World, stack: Stack, details: Json, name: str = "handle") -> None:
    send_signal(world.context, world.stack(stack.id), name, details)


def refused(world: World, stack: Stack, details: Json, name: str = "handle") -> str:
    """The message; nothing is stored, and nobody is woken."""
    before = everything(world)
    sent = world.bus.sent
    with pytest.raises(LimitExceeded) as caught:
        signal(world, stack, details, name)
    assert (everything(world), world.bus.sent) == (before, sent)
    fault = fault_of(caught.value)
    assert fault is not None
    assert (fault.status, fault.kind) == (400, "RequestLimitExceeded")
    return fault.message


def everything(world: World) -> str:
    def read(conn: sa.Connection) -> str:
        all_tables = tables.metadata.tables.values()
        return "\n".join(
            str(tuple(row)) for table in all_tables for row in conn.execute(sa.select(table)).all()
        )

    return world.database.read(read)


def test_the_size_of_one_signal_is_limited(world: World, stack: Stack) -> None:
    around = len(json.dumps({"data": ""}, separators=(",", ":")))
    fits = "ü" * ((LIMITS.size - around) // 2)
    signal(world, stack, {"data": fits})
    message = refused(world, stack, {"data": f"{fits}ü"})
    assert message == "Request limit exceeded: The signal has 2001 bytes; [stacks] max_signal_size is 2000"


def test_the_number_of_signals_that_are_kept_is_limited(world: World, stack: Stack) -> None:
    for number in range(LIMITS.count - 1):
        signal(world, stack, {"id": number})
    assert "The resource keeps 5 signals already; [stacks] max_signals is 5" in refused(
        world, stack, {"id": 9}
    )
    signal(world, stack, {"id": 1, "data": "in the place of another one"})
    signal(world, stack, None, "aws")
    assert len(rows(world, stack)["handle"].metadata) == LIMITS.count


def test_the_total_of_what_is_kept_is_limited(world: World, stack: Stack) -> None:
    signal(world, stack, {"id": "a", "data": "x" * 1500})
    signal(world, stack, {"id": "b", "data": "x" * 1500})
    message = refused(world, stack, {"id": "c", "data": "x" * 1500})
    assert message.startswith("Request limit exceeded: The resource's metadata would have 4")
    assert message.endswith(" bytes with this signal; [stacks] max_signal_total is 4000")
    signal(world, stack, {"id": "b", "data": "smaller"})
    signal(world, stack, {"id": "c", "data": "x" * 1500})


@pytest.mark.parametrize("reason", ["x" * 200, {"a": "x" * 200}])
def test_the_length_of_a_reason_is_limited(world: World, stack: Stack, reason: Json) -> None:
    whole = {"UniqueId": "1", "Status": "SUCCESS", "Data": "", "Reason": reason}
    for details, name in (({"reason": reason}, "handle"), (whole, "aws")):
        message = refused(world, stack, details, name)
        assert message.endswith("; [stacks] max_signal_reason is 100")
    with pytest.raises(LimitExceeded, match="max_signal_reason is 100"):
        set_health(world.context, stack, "aws", unhealthy=True, reason="x" * 101)
    assert rows(world, stack)["aws"].action == "CREATE"


def test_no_limit_is_zero(world: World, stack: Stack) -> None:
    settings = replace(world.context.settings, signals=SignalLimits(0, 0, 0, 0))
    world.context = replace(world.context, settings=settings)
    for number in range(12):
        signal(world, stack, {"id": number, "data": "x" * 3000, "reason": "x" * 3000})


@pytest.mark.full
def test_a_thousand_signals_cost_little_more_each_than_the_first(world: World, stack: Stack) -> None:
    """The first ones are measured beside the last ones: the host may be slower by then."""
    world.context = replace(world.context, settings=replace(world.context.settings, signals=SignalLimits()))
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    fresh = settled(world, world.create("t", hot({f"handle{n}": handle for n in range(20)})))

    def seconds(of: Stack, number: int, name: str = "handle") -> float:
        begun = time.thread_time()
        signal(world, of, {"data": {"address": f"10.0.0.{number}", "names": ["a", "b"]}}, name)
        return time.thread_time() - begun

    for number in range(970):
        seconds(stack, number)
    first = []
    fourteenth = []
    last = []
    for number in range(20):
        first.append(seconds(fresh, 0, f"handle{number}"))
        for more in range(1, 13):
            seconds(fresh, more, f"handle{number}")
        fourteenth.append(seconds(fresh, 13, f"handle{number}"))
        last.append(seconds(stack, 970 + number))
    print(f"{min(fourteenth) / min(first):.1f} and {min(last) / min(first):.1f} times the first")
    assert min(fourteenth) <= 3 * min(first)
    assert min(last) <= 10 * min(first)  # All are read and written each time: 120 KB.
