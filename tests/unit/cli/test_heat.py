"""The commands that move stacks show how far they are, and print what became of the stacks."""

import contextlib
import io
import types
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.heat import ExportHeat
from stoker.features.moves.heat.report import Disposition, MovedStack, MoveProgress, Report, ShowProgress
from stoker.keystone.delegated_auth import KeystoneUnavailable
from stoker.observe.terminal import CLEAR


class Screen(io.StringIO):
    """A terminal, to which both streams of a command write."""

    def isatty(self) -> bool:
        return True


class Run:
    """A run that moves one stack, and ends with an error if there is one."""

    def __init__(self, progress: ShowProgress, error: Exception | None) -> None:
        self._progress = MoveProgress(progress)
        self._error = error
        self.report = Report()

    def run(self, options: str) -> Report:
        self._progress.begin(2)
        self.report.stacks.append(MovedStack("id", "one", "project", Disposition.MOVED))
        self._progress.add(1)
        if self._error is not None:
            raise self._error
        return self.report


def screen_of(error: Exception | None = None) -> tuple[str, AdminError | None]:
    """Return all that a move prints, and the error of the command."""
    screen = Screen()
    app = types.SimpleNamespace(stdout=screen, stderr=screen)

    @contextlib.contextmanager
    def opened(progress: ShowProgress) -> Iterator[Run]:
        yield Run(progress, error)

    try:
        command: typing.Any = ExportHeat(app, None)
        command.move("export", opened, "options", "text")
    except AdminError as refusal:
        return screen.getvalue(), refusal
    return screen.getvalue(), None


@pytest.mark.parametrize("error", [None, sa.exc.OperationalError("SELECT 1", {}, Exception("gone"))])
def test_the_report_begins_on_a_line_without_progress(error: Exception | None) -> None:
    text, refusal = screen_of(error)
    line, _, report = text.rpartition(CLEAR)
    assert "0 of 2 root stacks" in line
    assert report.splitlines()[0] == "root stacks: 1 moved"
    assert (refusal is None) == (error is None)


def test_an_unavailable_keystone_is_an_error_of_the_command() -> None:
    _, refusal = screen_of(KeystoneUnavailable("no answer"))
    assert str(refusal) == "Keystone does not say which trusts Stoker has: no answer"


def test_every_root_stack_that_is_done_is_counted() -> None:
    counts: list[tuple[int, int]] = []
    progress = MoveProgress(lambda done, total: counts.append((done, total)))
    progress.begin(5)
    progress.add(3)
    progress.add(1)
    assert counts == [(0, 5), (3, 5), (4, 5)]
