"""Which tests each tier runs, and what a run says of those that it leaves out."""

import dataclasses
import types
import typing

import pytest
from harness import tiers
from harness.scheduling import Budget, Lane, Lanes, PooledScheduling
from harness.tiers import Tier, TierSelection

LANES = Lanes([Lane("tests/process/", "daemons"), Lane("tests/cloud/")])


@dataclasses.dataclass
class Item:
    """The part of a collected test that the tiers use."""

    nodeid: str
    marks: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    fixturenames: tuple[str, ...] = ()

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [getattr(pytest.mark, name)(*self.marks[name]).mark] if name in self.marks else []

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)


class Hooks:
    def pytest_deselected(self, items: list[typing.Any]) -> None:
        """Nobody listens."""


class Config:
    hook = Hooks()


class Terminal:
    """Keeps the lines that a run says at its end."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, line: str, **_: bool) -> None:
        self.lines.append(line)

    def getreports(self, _: str) -> list[typing.Any]:
        return []


@dataclasses.dataclass
class Node:
    """A process of pytest-xdist.

    :ivar sent: the numbers of tests of each lane that it was given.
    """

    name: str
    sent: list[list[int]] = dataclasses.field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(id=self.name)

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.sent.append(numbers)

    def shutdown(self) -> None:
        self.shutting_down = True

    __hash__ = object.__hash__


ITEMS = [
    Item("tests/unit/test_a.py::plain"),
    Item("tests/unit/test_a.py::slow", {"full": ()}),
    Item("tests/unit/test_a.py::timed", {"alone": ()}),
    Item("tests/unit/test_a.py::minutes", {"long": ()}),
    Item("tests/process/test_b.py::plain"),
    Item("tests/process/test_b.py::chosen", {"commit": ()}),
    Item("tests/doc/test_c.py::site", fixturenames=("pages",)),
    Item("tests/console/test_d.py::browser", fixturenames=("chromium", "page")),
    Item("tests/client/test_e.py::guest", {"needs": ("guests",)}),
]


def chosen(tier: Tier | None) -> tuple[list[str], TierSelection]:
    selection = TierSelection(tier)
    items: typing.Any = list(ITEMS)
    selection.pytest_collection_modifyitems(typing.cast(typing.Any, Config()), items)
    return [item.nodeid.rpartition("::")[2] for item in items], selection


def test_a_commit_is_tried_on_what_costs_little_and_needs_no_more_than_is_installed() -> None:
    assert chosen(Tier.TEST)[0] == ["plain", "chosen"]


def test_the_full_tier_leaves_out_what_takes_minutes() -> None:
    assert chosen(Tier.FULL)[0] == [
        *("plain", "slow", "timed", "plain", "chosen", "site", "browser", "guest"),
    ]


def test_the_rest_is_all_that_the_first_tier_leaves_out() -> None:
    assert chosen(Tier.REST)[0] == ["slow", "timed", "plain", "site", "browser", "guest"]


def test_without_a_tier_all_is_run() -> None:
    assert len(chosen(None)[0]) == len(ITEMS)


def test_what_needs_more_is_named_with_the_command_that_installs_it() -> None:
    terminal: typing.Any = Terminal()
    chosen(Tier.TEST)[1].pytest_terminal_summary(terminal)
    assert terminal.lines == [
        "Tests left to `make test-full`, which installs Chromium: 1",
        "Tests left to `make test-full`, which installs the agents of servers: 1",
    ]


def test_a_lane_keeps_the_tests_of_a_folder_or_of_a_file_together() -> None:
    names = ("tests/process/a.py::x", "tests/process/b.py::x", "tests/cloud/c.py::x", "tests/unit/d.py::x")
    assert [LANES.lane(name) for name in names] == [
        *("daemons", "daemons", "tests/cloud/c.py", "tests/unit/d.py::x"),
    ]
    assert [LANES.waits(LANES.lane(name)) for name in names] == [True, True, True, False]
    assert sorted(names, key=LANES.place) == list(names)


def test_no_test_begins_once_the_budget_is_spent_and_each_is_named() -> None:
    clock = [0.0]
    budget = Budget(60.0, now=lambda: clock[0])
    item: typing.Any = ITEMS[0]
    assert budget.pytest_runtest_protocol(item) is None
    clock[0] = 60.0
    assert budget.pytest_runtest_protocol(item) is True
    terminal: typing.Any = Terminal()
    budget.pytest_terminal_summary(terminal)
    assert terminal.lines[1:] == ["    tests/unit/test_a.py::plain"]


def test_without_a_budget_all_tests_begin() -> None:
    assert not Budget(None, now=lambda: 1e9).is_spent


def test_a_process_that_dies_leaves_only_its_unfinished_lanes_to_others() -> None:
    config: typing.Any = types.SimpleNamespace(
        option=types.SimpleNamespace(), getvalue=lambda _: ["popen", "popen"]
    )
    scheduling = PooledScheduling(config, None, lanes=LANES, budget=Budget(None))
    collected = [f"tests/unit/test_a.py::test_{number}" for number in range(10)]
    dying, other = nodes = [Node("gw0"), Node("gw1")]
    for node in nodes:
        scheduling.add_node(typing.cast(typing.Any, node))
        scheduling.add_node_collection(typing.cast(typing.Any, node), collected)
    scheduling.schedule()
    finished = [numbers[0] for numbers in dying.sent[:2]]
    for number in finished:
        scheduling.mark_test_complete(typing.cast(typing.Any, dying), number)
    assert scheduling.remove_node(typing.cast(typing.Any, dying)) == collected[dying.sent[2][0]]
    for number in (number for numbers in other.sent for number in numbers):
        scheduling.mark_test_complete(typing.cast(typing.Any, other), number)
    assert sorted([*finished, *sum(other.sent, [])]) == list(range(10))
    assert all(other.sent)


COMPUTING = {"unit", "simulation", "property"}
"""Folders whose tests have lanes of their own, because no server is started for them."""


def test_a_folder_whose_tests_share_servers_has_lanes(pytestconfig: pytest.Config) -> None:
    """Each process would start the servers again, for each test that it gets."""
    tests = tiers.ROOT / "tests"
    lanes: Lanes = pytestconfig.pluginmanager.get_plugin(str(tests / "conftest.py")).LANES  # type: ignore[union-attr]
    files = [path.relative_to(tiers.ROOT) for path in tests.rglob("test_*.py")]
    names = {f"{path.as_posix()}::test" for path in files if path.parts[1] not in COMPUTING}
    assert [name for name in sorted(names) if lanes.lane(name) == name] == []
