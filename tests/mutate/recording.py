"""A plugin of pytest that notes which lines of the kernel each test runs, and how long each test takes."""

import json
import os
import pathlib
from collections.abc import Iterator

import coverage
import pytest
from mutate.kernel import ROOT, sources
from mutate.trying import same_examples


class Recording:
    """Writes a file for each process of pytest into a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._seconds: dict[str, float] = {}
        self._coverage = coverage.Coverage(
            data_file=None,
            include=[str(ROOT / path) for path in sources()],
            config_file=False,
            messages=False,
        )

    def pytest_sessionstart(self) -> None:
        """Begin before the tests are collected; lines that this runs belong to none of them."""
        same_examples()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test runs, with its fixtures."""
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sum up what the test's parts take; a test that fails proves nothing."""
        if report.failed:
            self._seconds[report.nodeid] = float("inf")
        else:
            self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Store what this process has noted."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, list[str]]] = {}
        for name in data.measured_files():
            path = str(pathlib.Path(name).relative_to(ROOT))
            contexts = data.contexts_by_lineno(name)
            lines[path] = {str(line): [each for each in tests if each] for line, tests in contexts.items()}
        document = {"seconds": self._seconds, "lines": lines}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(document))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, for the suite clears the variables of its caller."""
    parser.addoption("--mutate-folder", type=pathlib.Path, help="where to note which tests run which lines")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the processes that run tests: with xdist not in the one that distributes them."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Recording(config.option.mutate_folder))
