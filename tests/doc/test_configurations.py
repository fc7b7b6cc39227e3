"""The configurations in the pages are right: a daemon starts with what an operator copies from there."""

import pathlib
import re
from collections.abc import Iterator

from stoker.cli.commands.config import in_file, known_options

ROOT = pathlib.Path(__file__).parents[2]
INDENTED = re.compile(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", re.MULTILINE)
BEGIN = re.compile(r"(?:#.*\n)*\[([A-Za-z_]+)\]\n")
OF_OTHERS = {"uwsgi", "Service"}
"""Sections of files that other programs read."""


def configurations() -> Iterator[tuple[str, str]]:
    """Yield each configuration of Stoker, with its page."""
    for page in [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]:
        for block in INDENTED.findall(page.read_text()):
            text = "".join(f"{line.removeprefix('    ')}\n" for line in block.splitlines())
            begin = BEGIN.match(text)
            if begin and begin[1] not in OF_OTHERS:
                yield page.name, text


def test_an_operator_can_copy_each_configuration(tmp_path: pathlib.Path) -> None:
    listed = list(configurations())
    assert len(listed) > 9
    known = known_options(["password"])
    path = tmp_path / "stoker.conf"
    faults = []
    for page, text in listed:
        path.write_text(text)
        faults += [(page, problem.where, problem.what) for problem in in_file(path, known)]
    assert faults == []
