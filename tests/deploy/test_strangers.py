"""The pages' commands, as somebody enters them who has only the wheel and an empty home."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence

import pytest
from doc.shown import run
from harness import environment
from harness.ports import free_port
from harness.processes import Process
from harness.wheel import build_wheel

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<indent> *)```console\n(?P<console>.*?)^(?P=indent)```$|(?<=\n\n)(?P<typed>(?: {4}[^\n]*\n)+)",
    re.DOTALL | re.MULTILINE,
)
SERVES = re.compile(r"(\S*/)?stoker serve ")
PORT = "8004"
"""The port of the pages; the test has another one."""


def commands(page: str) -> Iterator[tuple[str, Sequence[str] | None]]:
    """Yield the commands of a page, each with the lines that it is to print.

    These are None where the page shows only what is typed.
    """
    text = (ROOT / "doc" / page).read_text()
    for block in BLOCK.finditer(text):
        if block["typed"]:
            yield from ((line.strip(), None) for line in block["typed"].splitlines())
            continue
        pairs: list[tuple[str, list[str]]] = []
        for line in textwrap.dedent(block["console"]).splitlines():
            if line.startswith("$ "):
                pairs.append((line[2:], []))
            else:
                pairs[-1][1].append(line)
        yield from pairs


class Stranger:
    """Somebody with an empty home, and a folder that has only the wheel and the versions of the libraries.

    :ivar service: what they have started in the first terminal.
    """

    def __init__(self, folder: pathlib.Path, wheel: pathlib.Path) -> None:
        self._home = folder / "home"
        self._folder = folder / "work"
        programs = folder / "bin"
        for path in (self._home, self._folder, programs):
            path.mkdir()
        (programs / "python3").symlink_to(sys.executable)
        (self._folder / "dist").mkdir()
        shutil.copy(wheel, self._folder / "dist")
        shutil.copy(ROOT / "constraints.txt", self._folder)
        self._log = folder / "log"
        self._port = str(free_port())
        self._new = {
            "HOME": str(self._home),
            "PATH": f"{programs}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "COLUMNS": "200",
            **environment.registries(os.environ),
        }
        self._terminal = dict(self._new)
        self.service: Process | None = None

    def enter(self, command: str, expected: Sequence[str] | None) -> None:
        """Enter a command; one that serves keeps its terminal, so another one is opened then."""
        command = command.replace(PORT, self._port)
        if SERVES.match(command):
            words = ["env", "-i", *(f"{name}={text}" for name, text in self._terminal.items())]
            self.service = Process(
                [*words, "bash", "-c", f"exec {command}"], log=self._log, directory=self._folder
            )
            self.service.wait_for_text("Stoker serves at", 120)
            self._terminal = dict(self._new)
        elif expected is None:
            # The variables stay for the next command of this terminal.
            printed = self._run(f"{command}\nenv -0").split("\0")
            self._terminal = dict(line.split("=", 1) for line in printed[:-1])
        else:
            shown = [line.replace(PORT, self._port) for line in expected]
            run(command, shown, self._terminal, folder=self._folder)

    def _run(self, script: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-ec", script],
            env=self._terminal,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture
def stranger(tmp_path: pathlib.Path) -> Iterator[Stranger]:
    somebody = Stranger(tmp_path, build_wheel(tmp_path))
    yield somebody
    if somebody.service is not None:
        assert somebody.service.stop() == 0


@pytest.mark.long
@pytest.mark.timeout(2700)  # It installs a hundred packages.
def test_the_days_work_from_the_wheel_in_an_empty_home(stranger: Stranger) -> None:
    """Day 2 continues where day 1 ends; its other commands are for hosts with daemons of their own."""
    for command, expected in commands("day1.md"):
        stranger.enter(command, expected)
    boxes = [(command, expected) for command, expected in commands("day2.md") if expected is not None]
    assert len(boxes) >= 6
    for command, expected in boxes:
        stranger.enter(command, expected)
