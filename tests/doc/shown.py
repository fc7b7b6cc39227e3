"""The commands that pages show in boxes, run to see whether they print what the pages say."""

import pathlib
import re
import subprocess
import textwrap
from collections.abc import Mapping, Sequence

from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```console\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = "…"
READS = re.compile(
    r" stack (?:resource list|show) |^stoker-manage (?:ring show|service list|ring plan)|^stoker-status"
)
"""Commands that change nothing: what they print may take its time to come."""


def steps(page: str) -> Sequence[tuple[str, Sequence[str]]]:
    """Each command of a page with the lines that it is to print."""
    pairs: list[tuple[str, list[str]]] = []
    for _, block in BLOCK.findall((ROOT / "doc" / page).read_text()):
        for line in textwrap.dedent(block).splitlines():
            if line.startswith("$ "):
                pairs.append((line[2:], []))
            else:
                pairs[-1][1].append(line)
    return pairs


def prints(expected: Sequence[str], printed: str) -> bool:
    """Return whether a command has printed what the page shows; `…` is a part of a line, or some lines."""
    pattern = ""
    for line in expected:
        parts = (re.sub(r"(?:\\\s)+", r"\\s+", re.escape(part)) for part in line.split(LEFT_OUT))
        pattern += r"(?:.*\n)*?" if line == LEFT_OUT else ".*".join(parts) + r"\s*\n"
    return re.fullmatch(pattern, printed) is not None


def run(
    command: str,
    expected: Sequence[str],
    env: Mapping[str, str],
    *,
    within: float = 180.0,
    folder: pathlib.Path = ROOT,
) -> None:
    """Run a command in a folder; one that only reads is repeated until it prints what it is to print.

    :param within: seconds for the latter.
    """
    printed: list[str] = []

    def matches() -> bool:
        done = subprocess.run(
            ["bash", "-c", command],
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        expected_code = 2 if " stack plan " in command else 0
        assert done.returncode == expected_code, (command, done.stdout, done.stderr)
        printed.append(done.stdout)
        return prints(expected, done.stdout)

    if READS.search(command):
        wait_for(matches, within, lambda: f"{command}: {printed[-1]}")
    else:
        assert matches(), f"{command}:\n{printed[-1]}"
