"""Directives that make references from the code, so that documents and code cannot differ.

Options and policy rules have extensions of oslo's.  Commands do not use cliff's: it finds the commands of one
namespace of entry points, and `stoker-manage` has none (it starts faster without), nor have the daemons.
"""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import typing
from collections.abc import Iterator

import yaml
from directives import Generated, heading, table
from sphinx.application import Sphinx
from stoker.api.openapi import describe
from stoker.cli.config.heat_options import OF_LIBRARIES, OPTIONS
from stoker.cli.features import FEATURES
from stoker.cli.programs import manage
from stoker.cli.wiring.metrics import metrics_of
from stoker.cli.wiring.policy import RULES
from stoker.cli.wiring.routes import ROUTES

Json = typing.Any
NOTES = pathlib.Path(__file__).parents[2] / "releasenotes" / "notes"
SECTIONS = {
    "prelude": "Prelude",
    "features": "New features",
    "issues": "Known issues",
    "upgrade": "Upgrading",
    "deprecations": "Deprecations",
    "critical": "Critical issues",
    "security": "Security",
    "fixes": "Fixed faults",
    "other": "Other",
}
"""Sections of reno, with the titles that the page shows."""
WIDTH = "100"
"""Columns of the commands' help, the same on every terminal."""


class Metrics(Generated):
    """A table of all metrics."""

    def lines(self) -> Iterator[str]:
        rows = [
            (
                f"``{metric.name}``",
                metric.kind,
                ", ".join(f"``{label}``" for label in metric.labels) or "–",
                ", ".join(metric.programs),
                metric.help,
            )
            for metric in metrics_of(FEATURES)
        ]
        yield from table(("Name", "Kind", "Labels", "Of", "Meaning"), rows, "30 10 15 15 40")


class Api(Generated):
    """A table of the API's operations for each of their tags."""

    def lines(self) -> Iterator[str]:
        by_tag: dict[str, list[tuple[str, ...]]] = {}
        for path, operations in describe(ROUTES, RULES)["paths"].items():
            for method, operation in operations.items():
                by_tag.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
        for tag in sorted(by_tag):
            yield from heading(tag, "-")
            header = ("Request", "Id", "Meaning", "Parameters of the query", "Success")
            yield from table(header, by_tag[tag], "35 15 20 20 10")


def _operation(method: str, path: str, operation: Json) -> tuple[str, ...]:
    """Return the row of an operation."""
    queries = [item["name"] for item in operation["parameters"] if item["in"] == "query"]
    return (
        f"``{method.upper()} {path}``",
        f"``{operation['operationId']}``",
        operation["summary"],
        ", ".join(f"``{name}``" for name in queries) or "–",
        ", ".join(status for status in operation["responses"] if status < "400"),
    )


class Commands(Generated):
    """The help of every program and command."""

    def lines(self) -> Iterator[str]:
        os.environ["COLUMNS"] = WIDTH
        for title, commands in _programs():
            yield from heading(title, "-")
            for name, text in commands:
                yield from heading(name, "~")
                yield from (".. code-block:: text", "")
                yield from (f"   {line}" for line in text.splitlines())
                yield ""


class HeatOptions(Generated):
    """A table of all options of Heat's, with the options of Stoker that have the same effect."""

    def lines(self) -> Iterator[str]:
        rows = [
            (
                f"``[{option.section}] {option.name}``",
                f"``[{option.target.replace('.', '] ', 1)}``" if option.target else "–",
                "copied" if option.target and option.convert else "left out",
                re.sub("`+", "``", option.note),
            )
            for option in (*OPTIONS, *OF_LIBRARIES)
        ]
        yield from table(("heat.conf", "stoker.conf", "``from-heat``", "Remark"), rows, "30 30 10 30")


def _programs() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the title of a section, and its commands with their help."""
    for words in (("stoker", "serve"), ("stoker-api",), ("stoker-conductor",), ("stoker-status",)):
        yield words[0], [(" ".join(words), _help_of_program(*words))]
    app = manage.ManageApp()
    yield (
        "stoker-manage",
        [
            (name, point.load()(app, None, name).get_parser(name).format_help())
            for name, point in sorted((f"stoker-manage {name}", p) for name, p in manage.COMMANDS.items())
        ],
    )
    points = importlib.metadata.entry_points(group="openstack.orchestration.v1")
    by_name = {f"openstack {p.name.replace('_', ' ')}": p for p in points if p.value.startswith("stoker.")}
    commands = [
        (name, by_name[name].load()(None, None).get_parser(name).format_help()) for name in sorted(by_name)
    ]
    yield "openstack", commands


def _help_of_program(program: str, *words: str) -> str:
    command = [pathlib.Path(sys.executable).parent / program, *words, "--help"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


class ReleaseNotes(Generated):
    """All notes of the next release, from reno's files.

    The directive of reno reads the history of a git repository, which a source archive does not have.
    """

    def lines(self) -> Iterator[str]:
        notes = [yaml.safe_load(path.read_text()) for path in sorted(NOTES.glob("*.yaml"))]
        for name, title in SECTIONS.items():
            entries = [text for note in notes for text in _texts(note.get(name))]
            if entries:
                yield from heading(title, "-")
            for text in entries:
                first, *more = text.rstrip().splitlines()
                yield f"- {first}"
                yield from (f"  {line}" for line in more)
                yield ""


def _texts(section: Json) -> list[str]:
    return [] if section is None else [section] if isinstance(section, str) else list(section)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives at Sphinx."""
    app.add_directive("stoker-api", Api)
    app.add_directive("stoker-metrics", Metrics)
    app.add_directive("stoker-commands", Commands)
    app.add_directive("stoker-heat-options", HeatOptions)
    app.add_directive("stoker-release-notes", ReleaseNotes)
    return {"parallel_read_safe": True}
