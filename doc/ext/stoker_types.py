"""Directives that make the reference of resource types from their classes."""

import functools
import importlib.metadata
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from directives import Generated, heading, literal, table
from harness.heat_schemas import compared
from harness.tested_types import WITHOUT_EXAMPLE, evidence
from sphinx.application import Sphinx
from stoker.resources.contract.implied import ImpliedDependency
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import BASE_ATTRIBUTES, Attribute, Property
from stoker.resources.openstack.declared import DeclaredThing
from stoker.resources.openstack.statuses import StatusMeaning
from stoker.resources.registry import ResourceRegistry
from stoker.resources.type_folders import types_in
from stoker.template.constraints import (
    AllowedPattern,
    AllowedValues,
    Constraint,
    Custom,
    Length,
    Modulo,
    Range,
)
from type_examples import example_of

ACTIONS = ("suspend", "resume", "check", "snapshot", "signal")
"""Actions that a type may implement, besides create, update and delete."""


class ServiceTypes(Generated):
    """A table of the types of one of Stoker's entry points, whose name is the argument, and their pages."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        rows = [_summary(*item) for item in own_types(self.arguments[0])]
        yield from table(("Type", "What it is"), rows, "35 65")


class ResourceTypePage(Generated):
    """All that is to be said of a type, whose name is the argument: first an example."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        name = self.arguments[0]
        declared = dict(own_types())[name]
        yield from (declared.description, "")
        yield from _support(declared)
        yield from _example(name, declared)
        yield from _section("Properties", _properties(declared.properties_schema))
        yield from _section("Update policy", _properties(declared.update_policy_schema))
        yield from _section("Attributes", _attributes({**BASE_ATTRIBUTES, **declared.attributes_schema}))
        yield from _section("How it works", _facts(declared))


def write_pages(folder: pathlib.Path) -> None:
    """Write a page for each type of each service that has a page in the folder, and remove all others.

    Sphinx reads pages from files only.  Each one only has the directive that makes it.
    """
    for service in sorted(folder.glob("*.rst")):
        pages = folder / service.stem
        pages.mkdir(exist_ok=True)
        texts = {
            pages / f"{_page_name(name)}.rst": _page(name, service.stem)
            for name, _ in own_types(service.stem)
        }
        for path in pages.glob("*.rst"):
            if path not in texts:
                path.unlink()
        for path, text in texts.items():
            # A page that is as it was keeps its time, by which Sphinx knows whether to read it.
            if not path.is_file() or path.read_text() != text:
                path.write_text(text)


def _page(name: str, service: str) -> str:
    """Return the source of a page; it is in no table of contents, which each page of the site repeats."""
    line = "=" * len(name)
    return (
        f":orphan:\n\n.. _{_label(name)}:\n\n{line}\n{name}\n{line}\n\n"
        f":doc:`/reference/types/{service}` · :doc:`how to read this page </reference/types>`\n\n"
        f".. stoker-resource-type:: {name}\n"
    )


class ResourceTypeList(Generated):
    """A table of all types of Stoker's."""

    def lines(self) -> Iterator[str]:
        yield from table(("Type", "What it is"), [_summary(*item) for item in own_types()], "35 65")


class CloudTypeTable(Generated):
    """A table of Stoker's types of OpenStack services: what each has of Heat's type, and how it is tested."""

    def lines(self) -> Iterator[str]:
        header = ("Type", "Service", "Properties", "Attributes", "Tested")
        yield from table(header, cloud_type_rows(), "40 20 10 10 20")


def cloud_type_rows() -> Iterator[Sequence[str]]:
    """Yield the cells of each type, as far as they come from its schema and from the tests."""
    declared_types = dict(_cloud_types())
    tested = evidence(declared_types)
    for name, declared in declared_types.items():
        comparison = compared(name)
        counts = (_of_heat(comparison.properties), _of_heat(comparison.attributes))
        yield (_reference(name), f"``{declared.service}``", *counts, tested[name])


def _of_heat(parts: Mapping[str, bool]) -> str:
    """Return how many parts are as in Heat, and of how many, where some are not."""
    same = sum(parts.values())
    return str(same) if same == len(parts) else f"{same} of {len(parts)}"


def _cloud_types() -> list[tuple[str, type[ResourceType]]]:
    return [(name, declared) for name, declared in own_types() if declared.service]


@functools.cache
def own_types(plugin: str | None = None) -> list[tuple[str, type[ResourceType]]]:
    """Return the types of Stoker itself that are not hidden, and none of other installed packages.

    :param plugin: name of the one entry point whose types are returned.
    """
    points = importlib.metadata.entry_points(group="stoker.resource_types")
    types: dict[str, type[ResourceType]] = {}
    for point in points:
        if point.value.startswith("stoker.") and plugin in (None, point.name):
            types.update(types_in(point.load()))
    registry = ResourceRegistry(types)
    return [(name, type(registry.get(name))) for name in registry.names()]


def _page_name(name: str) -> str:
    return name.replace("::", "-").lower()


def _label(name: str) -> str:
    return f"type-{_page_name(name)}"


def _reference(name: str) -> str:
    return f":ref:`{name} <{_label(name)}>`"


def _summary(name: str, declared: type[ResourceType]) -> tuple[str, str]:
    return _reference(name), declared.description.splitlines()[0]


def _section(name: str, lines: Iterator[str]) -> Iterator[str]:
    content = list(lines)
    if content:
        yield from heading(name, "-")
        yield from content


# -- facts about the whole type -------------------------------------------------------------------------


def _support(declared: type[ResourceType]) -> Iterator[str]:
    support = declared.support_status
    since = f"Since OpenStack {support.version}. " if support.version else ""
    if support.status != "SUPPORTED":
        since += f"{support.status.capitalize()}: {support.message or 'to be used no more'}"
    yield from (since, "")


def _facts(declared: type[ResourceType]) -> Iterator[str]:
    """Yield a list of how it works, with the items that the type has something to say of."""
    facts = {
        "Service": f"``{declared.service}``" if declared.service else "",
        "Mark": _mark(declared),
        "Status": _status(declared),
        "Comes after": ";\n".join(_implied(item) for item in declared.implied_dependencies),
        "Replaced": _replaced(declared),
        "Old names": _old_names(declared),
        "Without effect": _without_effect(declared),
        "Drift": _drift(declared),
        "Actions": ", ".join(action for action in ACTIONS if _implements(declared, f"handle_{action}")),
    }
    for name, text in facts.items():
        if text:
            first, *more = text.splitlines()
            yield f"* **{name}:** {first}"
            yield from (f"  {line}" for line in more)


def _example(name: str, declared: type[ResourceType]) -> Iterator[str]:
    """Yield an example, and where it is from."""
    example = example_of(name, declared)
    yield from heading("Example", "-")
    if example.source:
        yield from (f"From ``{example.source}``, which the tests run:", "")
    else:
        yield from (f"Made from the schema, and not run: {WITHOUT_EXAMPLE[name]}.", "")
    yield from (".. code-block:: yaml", "", *(f"   {line}" for line in example.lines()), "")


def _drift(declared: type[ResourceType]) -> str:
    """Return which drift of the type's things is observed; empty: none."""
    collection = declared().collection()
    if collection is None:
        return ""
    observed = "its properties" if _implements(declared, "reported_properties") else "that it is there"
    return f"observed by the list ``{collection.path}``: {observed}"


def _implements(declared: type[ResourceType], method: str) -> bool:
    return getattr(declared, method) is not getattr(ResourceType, method)


def _mark(declared: type[ResourceType]) -> str:
    mark = getattr(declared, "mark", None)
    return mark.place if mark is not None else declared.identity


def _status(declared: type[ResourceType]) -> str:
    status: StatusMeaning | None = getattr(declared, "status", None)
    if status is None:
        complete = "complete when the service has answered"
        return complete if issubclass(declared, DeclaredThing) else ""
    parts = [f"waits while ``{status.field}`` is {_names(status.pending)}"] if status.pending else []
    parts.append(f"good is {_names(status.good) if status.good else 'every other one'}")
    bad = "every other one" if status.good else _names(status.bad)
    parts += [f"{bad} fails"] if bad else []
    return "; ".join(parts)


def _names(values: Iterable[str]) -> str:
    return ", ".join(f"``{value}``" for value in values)


def _implied(item: ImpliedDependency) -> str:
    return f"all {_reference(item.type)} whose {_path(item.their_path)} is its {_path(item.own_path)}"


def _path(hops: Sequence[Sequence[Sequence[str]]]) -> str:
    """Return a path in words, the last property first; of several names of one the present one."""
    return " of ".join(f"``{'.'.join(names[0] for names in hop)}``" for hop in reversed(hops))


def _replaced(declared: type[ResourceType]) -> str:
    if declared.always_replaced:
        return "by every update of the stack"
    if not _implements(declared, "needs_replace"):
        return ""
    promise = str(declared.needs_replace.__doc__).splitlines()[0].removesuffix(".")
    when = promise.removeprefix("Return whether ")
    return f"also if {when}" if when != promise else promise.removeprefix("Return True: ")


def _old_names(declared: type[ResourceType]) -> str:
    return ", ".join(
        f"``{path}`` of ``{prop.alias_of}``"
        for path, prop in _walked(declared.properties_schema)
        if prop.alias_of is not None
    )


def _without_effect(declared: type[ResourceType]) -> str:
    return ", ".join(
        f"``{path}``"
        for path, prop in _walked(declared.properties_schema)
        if prop.support_status.hidden and prop.alias_of is None
    )


# -- properties and attributes --------------------------------------------------------------------------


def _walked(schema: Mapping[str, Property], above: str = "") -> Iterator[tuple[str, Property]]:
    """Yield all properties by path, those within others, too."""
    for name, prop in schema.items():
        path = f"{above}{name}"
        yield path, prop
        if isinstance(prop.schema, Property):
            yield from _walked({"*": prop.schema}, f"{path}.")
        elif prop.schema is not None:
            yield from _walked(prop.schema, f"{path}.")


def _properties(schema: Mapping[str, Property]) -> Iterator[str]:
    rows = [
        (f"``{path}``", prop.type, _change(prop) if path in schema else "–", _meaning(prop))
        for path, prop in _walked(schema)
        if not prop.support_status.hidden
    ]
    if rows:
        yield from table(("Name", "Type", "A change", "Meaning"), rows, "25 10 15 50")


def _change(prop: Property) -> str:
    return "is refused" if prop.immutable else "in place" if prop.update_allowed else "replaces"


def _meaning(prop: Property) -> str:
    parts = [prop.description.strip()] if prop.description else []
    if prop.alias_of is not None:
        parts.append(f"Use ``{prop.alias_of}``.")
    if prop.required:
        parts.append("**Required.**")
    if prop.default is not None:
        parts.append(f"Default: {literal(prop.default)}.")
    parts += [f"{_constraint(constraint)}." for constraint in prop.constraints]
    if prop.sensitive:
        parts.append("Secret.")
    if prop.support_status.status != "SUPPORTED":
        parts.append(f"{prop.support_status.status.capitalize()}. {prop.support_status.message or ''}")
    return " ".join(parts) or "–"


def _constraint(constraint: Constraint) -> str:
    match constraint:
        case AllowedValues():
            return f"One of {', '.join(_runs(constraint.values))}"
        case Length():
            return f"Length: {_bounds(constraint.minimum, constraint.maximum)}"
        case Range():
            return f"Range: {_bounds(constraint.minimum, constraint.maximum)}"
        case Modulo():
            return f"A multiple of {constraint.step}, and {constraint.offset}"
        case AllowedPattern():
            return f"Pattern: {literal(constraint.pattern)}"
        case Custom():
            return f"Checked as ``{constraint.check_name}``"
    raise TypeError(f"no words for {constraint}")


def _bounds(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"at most {high}" if low is None else f"at least {low}"
    return f"{low} to {high}"


def _runs(values: Sequence[object]) -> Iterator[str]:
    """Yield the values; of three and more integers in a row the first and the last."""
    numbered = enumerate(values)

    def run(item: tuple[int, object]) -> object:
        at, value = item
        return value - at if isinstance(value, int) and not isinstance(value, bool) else f"alone {at}"

    for _, group in itertools.groupby(numbered, run):
        row = [value for _, value in group]
        if len(row) > 2:
            yield f"{literal(row[0])} to {literal(row[-1])}"
        else:
            yield from map(literal, row)


def _attributes(schema: Mapping[str, Attribute]) -> Iterator[str]:
    rows = [
        (f"``{name}``", item.type or "any", _attribute(item))
        for name, item in schema.items()
        if not item.support_status.hidden
    ]
    yield from table(("Name", "Type", "Meaning"), rows, "25 15 60")


def _attribute(item: Attribute) -> str:
    parts = [item.description.strip()] if item.description else []
    if item.volatile:
        parts.append("Read again when an action of the stack ends, if an output refers to it.")
    if item.sensitive:
        parts.append("Secret.")
    if item.support_status.status != "SUPPORTED":
        parts.append(f"{item.support_status.status.capitalize()}. {item.support_status.message or ''}")
    return " ".join(parts) or "–"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives at Sphinx."""
    app.add_directive("stoker-resource-types", ServiceTypes)
    app.add_directive("stoker-resource-type", ResourceTypePage)
    app.add_directive("stoker-resource-type-list", ResourceTypeList)
    app.add_directive("stoker-cloud-type-table", CloudTypeTable)
    return {"parallel_read_safe": True}
