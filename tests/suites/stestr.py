"""Suites of unittest that others have written, run by stestr in the environment of tools/install-suites."""

import collections
import csv
import dataclasses
import io
import os
import pathlib
import re
import subprocess
import sys
import typing
from collections.abc import Iterable, Mapping

HOME = pathlib.Path(sys.prefix) / "suites"
"""The virtual environment of the suites (``make heat-suites``)."""
BIN = HOME / "bin"
WORKERS = 3
WITHIN = 3 * 3600.0
"""Seconds for a run; the suites have limits of their own for each test."""
GROUPS = r"heat_tempest_plugin\.tests\.api\.test_heat_api(?:\.|_)([^_]+)"
"""Tests of the plugin's that depend on each other: they are steps of a file, in order."""
ATTRIBUTES = re.compile(r"\[[\w,.-]+\]$")
"""Ids and kinds that tempest appends to the name of a test."""


@dataclasses.dataclass(frozen=True)
class Suite:
    """A suite.

    :ivar package: the folder of its tests, below that of all packages.
    :ivar chosen: regular expression of the tests that are its own.
    """

    package: str
    chosen: str = "."


SUITES: Mapping[str, Suite] = {
    # It finds the tests of heat-tempest-plugin, too.
    "heat": Suite("heat_integrationtests"),
    "heatclient": Suite("heatclient/tests/functional"),
    # Its tests of orchestration in the folder of that name need a cloud; some folders need a checkout.
    "openstacksdk": Suite("openstack/tests/functional/cloud", r"test_orchestration"),
}


class Outcomes(typing.NamedTuple):
    """The names of tests by their outcome, as subunit calls it: success, failure, skip …"""

    by_outcome: Mapping[str, frozenset[str]]

    def having(self, *outcomes: str) -> frozenset[str]:
        """Return the tests with one of these outcomes."""
        return frozenset().union(*(self.by_outcome.get(outcome, frozenset()) for outcome in outcomes))

    @property
    def bad(self) -> frozenset[str]:
        """Return the tests that have not succeeded."""
        return frozenset().union(*self.by_outcome.values()) - self.having("success")


class Runner:
    """Runs tests of one suite.

    :param folder: everything that is written is below.
    :param environment: variables for the suite, besides those of this process.
    """

    def __init__(self, suite: Suite, folder: pathlib.Path, environment: Mapping[str, str]) -> None:
        self._suite = suite
        self._folder = folder
        self._environment = {name: text for name, text in os.environ.items() if not name.startswith("OS_")}
        self._environment |= {
            **environment,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONWARNINGS": "ignore",
        }
        [site] = HOME.glob("lib/python*/site-packages")
        folder.mkdir()
        (folder / ".stestr.conf").write_text(
            f"[DEFAULT]\ntest_path={site / suite.package}\ntop_dir={site}\ngroup_regex={GROUPS}\n"
        )
        self._stestr("init")

    def names(self) -> frozenset[str]:
        """Return the names of the suite's own tests."""
        listed = self._stestr("list", self._suite.chosen).splitlines()
        return frozenset(bare(line) for line in listed if re.match(r"\w+(\.\w+)+", line))

    def run(self, names: Iterable[str], workers: int = WORKERS) -> Outcomes:
        """Run these tests; return what became of each."""
        chosen = self._folder / "chosen"
        chosen.write_text("".join(f"^{re.escape(name)}(\\[|$)\n" for name in sorted(names)))
        self._stestr("run", "--concurrency", str(workers), "--include-list", str(chosen), check=False)
        stream = subprocess.run(
            [BIN / "stestr", "last", "--subunit"],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            check=False,
        ).stdout
        table = subprocess.run(
            [BIN / "subunit2csv", "--no-passthrough"], input=stream, capture_output=True, check=False
        ).stdout
        by_outcome: dict[str, set[str]] = collections.defaultdict(set)
        for row in csv.DictReader(io.StringIO(table.decode())):
            by_outcome[row["status"]].add(bare(row["test"]))
        return Outcomes({outcome: frozenset(tests) for outcome, tests in by_outcome.items()})

    def output(self) -> str:
        """Return what the last run has printed."""
        return (self._folder / "output").read_text()

    def _stestr(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            [BIN / "stestr", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        (self._folder / "output").write_text(done.stdout)
        assert not check or done.returncode == 0, done.stdout
        return done.stdout


def bare(name: str) -> str:
    """Return a test's name without what tempest appends to it."""
    return ATTRIBUTES.sub("", name)


def together(names: Iterable[str], every: Iterable[str]) -> frozenset[str]:
    """Return the tests of a suite that run with some of them: those of the same group."""
    groups = {_group(name) for name in names}
    return frozenset(name for name in every if _group(name) in groups)


def _group(name: str) -> str:
    match = re.match(GROUPS, name)
    return match[0] if match else name
