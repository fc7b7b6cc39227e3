"""The tiers of the suite, each a command of its own.

``make test`` runs what a commit can break, ``make test-full`` all but what takes minutes (``long``).  A test
is for the full tier only if it has the mark ``full`` or ``alone``, or if it costs much (see COSTLY) and lacks
the mark ``commit``.

A test that needs more than ``make test`` installs is left to ``make test-full``, which installs it, whatever
the machine has; the run names what it leaves.  `harness.permitted` refuses such things to all others.
"""

import collections
import enum
import itertools
import pathlib
import typing

import pytest

ROOT = pathlib.Path(__file__).parents[2]
COSTLY = ("tests/cloud/", "tests/deploy/", "tests/process/")
"""Folders of which `make test` runs what has the mark `commit`."""
COSTLY_FIXTURES = {"pages", "wheel"}
"""Fixtures of tests to which the same applies: all documents, built as a site, and a built wheel."""


class Tier(enum.StrEnum):
    """The values of the option ``--tier``."""

    TEST = "test"  #: what a commit can break, with what `make test` installs
    FULL = "full"  #: all but what takes minutes
    REST = "rest"  #: of `full` what `test` leaves out


COMMANDS = {Tier.TEST: "make test", Tier.FULL: "make test-full", Tier.REST: "make test-rest"}


NEEDS = {
    "ansible": "Ansible",
    "chromium": "Chromium",
    "cloud": "the databases of the cloud",
    "guests": "the agents of servers",
    "heat": "Heat",
    "horizon": "Horizon",
    "keystone": "OpenStack's services",
}
"""Names of fixtures, and of the mark `needs` -> the installation that a test with such a name needs."""


def fixtures_of(item: pytest.Item) -> set[str]:
    """Return the names of the fixtures that a test uses, directly or not."""
    return set(getattr(item, "fixturenames", ()))


def needs_of(item: pytest.Item) -> list[str]:
    """Return what a test needs beyond what `make test` installs."""
    names = fixtures_of(item).union(*(mark.args for mark in item.iter_markers("needs")))
    return [need for name, need in NEEDS.items() if name in names]


def is_full(item: pytest.Item) -> bool:
    """Return whether `make test` leaves a test out, whatever it needs."""
    if item.get_closest_marker("full") is not None or item.get_closest_marker("alone") is not None:
        return True
    costly = item.nodeid.startswith(COSTLY) or not COSTLY_FIXTURES.isdisjoint(fixtures_of(item))
    return costly and item.get_closest_marker("commit") is None


class TierSelection:
    """Chooses the tests of a tier, and says what it leaves out.

    The processes of pytest-xdist choose; the one that distributes the tests speaks.

    :param tier: None: all that pytest's other arguments choose.
    """

    def __init__(self, tier: Tier | None) -> None:
        self._tier = tier
        self._left: collections.Counter[str] = collections.Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the tier, once the folders have added their marks."""
        if self._tier is None:
            return
        are_chosen = [self._is_chosen(item) for item in items]
        config.hook.pytest_deselected(
            items=[item for item, is_chosen in zip(items, are_chosen, strict=True) if not is_chosen]
        )
        items[:] = itertools.compress(items, are_chosen)

    def _is_chosen(self, item: pytest.Item) -> bool:
        if item.get_closest_marker("long") is not None:
            return False
        needs = needs_of(item)
        if self._tier != Tier.TEST:
            return self._tier == Tier.FULL or bool(needs) or is_full(item)
        if is_full(item):
            return False
        self._left.update(needs[:1])
        return not needs

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Report the tests that this process has left out."""
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["left"] = dict(self._left)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: typing.Any) -> None:
        """Take over what a process has left out: all leave the same."""
        if not self._left:
            self._left.update(getattr(node, "workeroutput", {}).get("left", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the failures with their tier, and what it leaves out."""
        if self._tier is None:
            return
        for report in terminalreporter.getreports("failed") + terminalreporter.getreports("error"):
            terminalreporter.write_line(f"{COMMANDS[self._tier]}: {report.nodeid} failed", red=True)
        for name, count in sorted(self._left.items()):
            terminalreporter.write_line(f"Tests left to `make test-full`, which installs {name}: {count}")
