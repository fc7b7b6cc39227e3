"""A plugin of pytest that notes which lines of the kernel each test runs, and how long each test takes.

How long it takes on an idle machine: what else runs beside it must not decide which tests are tried.
"""

import json
import os
import pathlib
import resource
import typing
from collections.abc import Iterator, Mapping, Sequence

import coverage
import pytest
from mutate.databases import is_repeated
from mutate.examples import same_examples
from mutate.kernel import ROOT, sources
from mutate.planting import caches


class Recording:
    """Writes a file for each process of pytest into a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._seconds: dict[str, float] = {}
        self._processor = 0.0
        self._caches: Sequence[typing.Any] = ()
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

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the tests that run on a cheaper database, too."""
        names = {item.nodeid for item in items}
        repeated = [item for item in items if is_repeated(item.nodeid, names)]
        config.hook.pytest_deselected(items=repeated)
        items[:] = [item for item in items if not is_repeated(item.nodeid, names)]

    def pytest_collection_finish(self) -> None:
        """Find the functions that keep results: each test runs their lines, not only the first one."""
        self._caches = caches()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test runs, with its fixtures."""
        for cache in self._caches:
            cache.cache_clear()
        self._coverage.switch_context(item.nodeid)
        began = _processor_time()
        try:
            return (yield)
        finally:
            self._processor += _processor_time() - began
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
        document = {"seconds": scaled(self._seconds, self._processor), "lines": lines}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(document))


def _processor_time() -> float:
    """Return the seconds that this process has computed, with those that it has started and awaited."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def scaled(seconds: Mapping[str, float], processor: float) -> dict[str, float]:
    """Return the time of each test without that in which the processor did something else.

    :param seconds: test -> its time on the clock; infinite: it has failed.
    :param processor: seconds that all of them together have computed.
    """
    total = sum(duration for duration in seconds.values() if duration < float("inf"))
    factor = min(1.0, processor / total) if total and processor else 1.0
    return {test: duration * factor for test, duration in seconds.items()}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, for the suite clears the variables of its caller."""
    parser.addoption("--mutate-folder", type=pathlib.Path, help="where to note which tests run which lines")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the processes that run tests: with xdist not in the one that distributes them."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Recording(config.option.mutate_folder))
