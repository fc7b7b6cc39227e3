"""Directives that make references from the code, so that documents and code cannot differ.

Options and policy rules have extensions of oslo's.  Commands do not use cliff's: it finds the commands of one
namespace of entry points, and `stoker-manage` has none (it starts faster without), nor have the daemons.
"""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from stoker.cli.programs import manage
from stoker.observe.metrics import METRICS
from stoker.resources.plugin import ResourceType
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema
from stoker.resources.schema import Property
from stoker.rpc.notifier import event_types

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


class _Generated(SphinxDirective):
    """A directive that parses the reStructuredText of `lines`."""

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.lines())
        found: list[nodes.Node] = self.parse_text_to_nodes(text, allow_section_headings=True)
        return found


def _title(text: str, line: str) -> list[str]:
    return ["", text, line * len(text), ""]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: str) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for row in (header, *rows):
        for index, cell in enumerate(row):
            first, *more = cell.split("\n") or [""]
            yield f"   {'* -' if index == 0 else '  -'} {first}"
            yield from (f"       {line}" for line in more)
    yield ""


def _literal(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"``{text}``" if text.strip() == text and text and "`" not in text else f":literal:`{text!r}`"


class Metrics(_Generated):
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
            for metric in METRICS
        ]
        yield from _table(("Name", "Kind", "Labels", "Of", "Meaning"), rows, "30 10 15 15 40")


class Notifications(_Generated):
    """A table of all types of events."""

    def lines(self) -> Iterator[str]:
        rows = [(f"``{name}``", meaning) for name, meaning in event_types().items()]
        yield from _table(("Event type", "Sent when"), rows, "50 50")


class ResourceTypes(_Generated):
    """A section for each resource type that comes with Stoker."""

    def lines(self) -> Iterator[str]:
        catalogue = ResourceRegistry(_own_types())
        for name in catalogue.names():
            yield from self._type(name, type(catalogue.get(name)))

    def _type(self, name: str, declared: type[ResourceType]) -> Iterator[str]:
        schema = resource_type_schema(name, declared)
        yield from _title(name, "-")
        yield from (declared.description, "")
        yield from self._support(declared)
        own = {
            key: prop for key, prop in declared.properties_schema.items() if not prop.support_status.hidden
        }
        if own:
            yield from _title("Properties", "~")
            yield from self._properties(own)
        if declared.update_policy_schema:
            yield from _title("Update policy", "~")
            yield from self._properties(declared.update_policy_schema)
        attributes = [
            (f"``{key}``", shown.get("type") or "any", shown.get("description") or "–")
            for key, shown in schema["attributes"].items()
        ]
        yield from _title("Attributes", "~")
        yield from _table(("Name", "Type", "Meaning"), attributes, "25 15 60")

    def _support(self, declared: type[ResourceType]) -> Iterator[str]:
        support = declared.support_status
        since = f"Since OpenStack {support.version}. " if support.version else ""
        if support.status != "SUPPORTED":
            since += f"{support.status.capitalize()}: {support.message or 'to be used no more'}"
        yield from (since, "")

    def _properties(self, declared: Mapping[str, Property]) -> Iterator[str]:
        rows = list(_rows(declared, ""))
        yield from _table(("Name", "Type", "Changed by", "Meaning"), rows, "25 10 15 50")


def _rows(declared: Mapping[str, Property], above: str) -> Iterator[tuple[str, str, str, str]]:
    for name, prop in declared.items():
        if prop.support_status.hidden:
            continue
        path = f"{above}{name}"
        changed = "nothing" if prop.immutable else "update" if prop.update_allowed else "replacement"
        yield f"``{path}``", prop.type, changed if not above else "–", _meaning(prop)
        if isinstance(prop.schema, Property):
            yield from _rows({"*": prop.schema}, f"{path}.")
        elif prop.schema is not None:
            yield from _rows(prop.schema, f"{path}.")


def _meaning(prop: Property) -> str:
    parts = [prop.description.strip()] if prop.description else []
    if prop.required:
        parts.append("**Required.**")
    if prop.default is not None:
        parts.append(f"Default: {_literal(prop.default)}.")
    parts += [f"{_constraint(constraint)}." for constraint in prop.constraints]
    if prop.support_status.status != "SUPPORTED":
        parts.append(f"{prop.support_status.status.capitalize()}. {prop.support_status.message or ''}")
    return " ".join(parts) or "–"


def _constraint(constraint: Json) -> str:
    told = {
        name: value for name, value in vars(constraint).items() if value is not None and name != "description"
    }
    values = ", ".join(f"{name} {_literal(value)}" for name, value in told.items())
    return f"{constraint.name.replace('_', ' ')}: {values}"


def _own_types() -> dict[str, type[ResourceType]]:
    """Return the types of Stoker itself, and none of other installed packages."""
    points = importlib.metadata.entry_points(group="stoker.resource_types")
    found: dict[str, type[ResourceType]] = {}
    for point in points:
        if point.value.startswith("stoker."):
            found.update(point.load())
    return found


class Commands(_Generated):
    """The help of every program and command."""

    def lines(self) -> Iterator[str]:
        os.environ["COLUMNS"] = WIDTH
        for title, commands in _programs():
            yield from _title(title, "-")
            for name, told in commands:
                yield from _title(name, "~")
                yield from (".. code-block:: text", "")
                yield from (f"   {line}" for line in told.splitlines())
                yield ""


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
    ours = {f"openstack {p.name.replace('_', ' ')}": p for p in points if p.value.startswith("stoker.")}
    commands = [(name, ours[name].load()(None, None).get_parser(name).format_help()) for name in sorted(ours)]
    yield "openstack", commands


def _help_of_program(program: str, *words: str) -> str:
    command = [pathlib.Path(sys.executable).parent / program, *words, "--help"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


class ReleaseNotes(_Generated):
    """All notes of the next release, from reno's files.

    The directive of reno reads the history of a git repository, which a source archive does not have.
    """

    def lines(self) -> Iterator[str]:
        notes = [yaml.safe_load(path.read_text()) for path in sorted(NOTES.glob("*.yaml"))]
        for name, title in SECTIONS.items():
            found = [text for note in notes for text in _texts(note.get(name))]
            if found:
                yield from _title(title, "-")
            for text in found:
                first, *more = text.rstrip().splitlines()
                yield f"- {first}"
                yield from (f"  {line}" for line in more)
                yield ""


def _texts(section: Json) -> list[str]:
    return [] if section is None else [section] if isinstance(section, str) else list(section)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives at Sphinx."""
    app.add_directive("stoker-metrics", Metrics)
    app.add_directive("stoker-notifications", Notifications)
    app.add_directive("stoker-resource-types", ResourceTypes)
    app.add_directive("stoker-commands", Commands)
    app.add_directive("stoker-release-notes", ReleaseNotes)
    return {"parallel_read_safe": True}
