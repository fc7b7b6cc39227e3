"""The tutorial's commands do what it shows."""

import os
import pathlib
import re
import subprocess
from collections.abc import Sequence

from client.serving import Service
from harness.processes import Process
from harness.programs import BIN
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXPORT = re.compile(r"export .*OS_ENDPOINT=\S+:8004(\S+)")
LEFT_OUT = "…"


def steps() -> Sequence[tuple[str, Sequence[str]]]:
    """Each command with the lines that it is to print."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall((ROOT / "doc" / "tutorial.md").read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def prints(expected: Sequence[str], printed: str) -> bool:
    """Whether a command has printed what the page shows; `…` is a part of a line, or some lines."""
    pattern = ""
    for line in expected:
        parts = (re.sub(r"(?:\\\s)+", r"\\s+", re.escape(part)) for part in line.split(LEFT_OUT))
        pattern += r"(?:.*\n)*?" if line == LEFT_OUT else ".*".join(parts) + r"\s*\n"
    return re.fullmatch(pattern, printed) is not None


def test_the_comparison_finds_what_differs() -> None:
    assert prints(["a … c", "…", "d"], "a b c\nx\ny\nd\n")
    assert not prints(["a … c", "d"], "a b c\nx\nd\n")
    assert not prints([], "a\n")


def test_the_steps_show_what_the_page_says(tmp_path: pathlib.Path) -> None:
    env = {**os.environ, "OS_AUTH_TYPE": "none", "COLUMNS": "200", "NO_COLOR": "1"}
    env["PATH"] = f"{BIN}:{env['PATH']}"
    running: Service | None = None
    try:
        for command, expected in steps():
            if command == "make serve":
                if running is not None:
                    running.process.kill()
                    (tmp_path / "stoker.log").rename(tmp_path / "killed.log")
                running = Service(tmp_path, conductors=3, kind=Process)
            elif (endpoint := EXPORT.match(command)) is not None:
                assert running is not None
                tenant = endpoint[1]
            else:
                assert running is not None
                env["OS_ENDPOINT"] = running.url + tenant
                _run(command, expected, env)
    finally:
        if running is not None:
            running.stop()


def _run(command: str, expected: Sequence[str], env: dict[str, str]) -> None:
    """Run a command; one that only reads is repeated until it prints what it is to print."""
    printed: list[str] = []

    def matches() -> bool:
        done = subprocess.run(
            ["bash", "-c", command],
            env=env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == (2 if " plan " in command else 0), (command, done.stdout, done.stderr)
        printed.append(done.stdout)
        return prints(expected, done.stdout)

    if re.search(r" stack (?:resource list|show) ", command):
        wait_for(matches, 30, lambda: f"{command}: {printed[-1]}")
    else:
        assert matches(), f"{command}:\n{printed[-1]}"
