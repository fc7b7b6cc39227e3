"""``openstack stack graph``: resources of a stack and their dependencies; for Graphviz and Mermaid, too."""

import argparse
import typing
from collections.abc import Callable, Iterator, Mapping

from osc_lib.command import command

from ..observe.screen import BAD, HELD, IDLE, OK, RUNNING, make_console
from ..observe.terminal import harmless, write_lines
from ..shapes import Json, JsonMap
from .access import add_stack, client_of, find_stack, graph_of

COLOURS = {OK: "#2e7d4f", RUNNING: "#1f6fb2", BAD: "#b3261e", HELD: "#b7791f", IDLE: "#9aa4af"}


def style_of(item: JsonMap) -> str:
    """Return the style of a resource, by its state."""
    if item["breakpoint"]:
        return HELD
    state: str = item["state"]
    if state.endswith("FAILED"):
        return BAD
    if state.startswith("INIT"):
        return IDLE
    return OK if state.endswith("COMPLETE") else RUNNING


class ShowGraph(command.Command):
    """Show the resources of a stack and their dependencies, as a tree, or as input of Graphviz or Mermaid."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add_stack(parser)
        parser.add_argument(
            "-f", "--format", choices=sorted(FORMATS), default="tree", help="Form (default: %(default)s)"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        client = client_of(self)
        graph = graph_of(client, find_stack(client, parsed_args.stack), parsed_args.nested_depth)
        if parsed_args.format == "tree":
            console = make_console(typing.cast(typing.Any, self.app).stdout)
            for depth, item, again in tree(graph):
                mark = " (above)" if again else ""
                console.print("  " * depth + harmless(item["name"]), style=style_of(item), end="")
                console.print(f"  {harmless(item['type'])}  {item['state']}{mark}", style=IDLE)
            return
        write_lines(typing.cast(typing.Any, self.app).stdout, *FORMATS[parsed_args.format](graph))


def tree(graph: Json) -> Iterator[tuple[int, Json, bool]]:
    """Return depth and resource of each line: a resource's dependents and its nested resources are below it.

    A resource that needs several others is below each of them; the third value says that it was shown above.
    """
    by_name = {(item["stack"], item["name"]): item for item in graph["resources"]}
    inside: dict[str, list[Json]] = {}
    needed = {(item["stack"], name) for item in graph["resources"] for name in item["required_by"]}
    for item in graph["resources"]:
        if (item["stack"], item["name"]) not in needed:
            inside.setdefault(item["stack"], []).append(item)
    printed: set[int] = set()
    waiting = [(0, item) for item in reversed(inside.get(graph["stack"]["id"], []))]
    while waiting:
        depth, item = waiting.pop()
        yield depth, item, item["id"] in printed
        if item["id"] not in printed:
            printed.add(item["id"])
            below = [by_name[item["stack"], name] for name in item["required_by"]]
            below = [*inside.get(item["nested"] or "", []), *below]
            waiting += [(depth + 1, one) for one in reversed(below)]


def edges(graph: Json) -> Iterator[tuple[int, int]]:
    """Return the edges of a graph: a resource, and one that needs it."""
    by_name = {(item["stack"], item["name"]): item["id"] for item in graph["resources"]}
    for item in graph["resources"]:
        for name in item["required_by"]:
            yield item["id"], by_name[item["stack"], name]


def as_dot(graph: Json) -> Iterator[str]:
    """Return the lines of a graph for Graphviz; each nested stack is a cluster."""
    yield "digraph stack {"
    yield "  rankdir=LR; node [shape=box, style=rounded];"
    for number, stack in enumerate([graph["stack"], *graph["nested_stacks"]]):
        yield f"  subgraph {'cluster_' if number else 'stack_'}{number} {{ label={_quoted(stack['name'])};"
        for item in graph["resources"]:
            if item["stack"] == stack["id"]:
                colour = COLOURS[style_of(item)]
                yield f'    r{item["id"]} [label={_quoted(item["name"])}, color="{colour}"];'
        yield "  }"
    for predecessor, after in edges(graph):
        yield f"  r{predecessor} -> r{after};"
    yield "}"


def _quoted(text: str) -> str:
    return '"' + harmless(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_mermaid(graph: Json) -> Iterator[str]:
    """Return the lines of a graph for Mermaid; each nested stack is a subgraph."""
    yield "flowchart LR"
    for number, stack in enumerate([graph["stack"], *graph["nested_stacks"]]):
        if number:
            yield f'  subgraph s{number}["{_entities(stack["name"])}"]'
        for item in graph["resources"]:
            if item["stack"] == stack["id"]:
                yield f'  r{item["id"]}["{_entities(item["name"])}"]'
                yield f"  style r{item['id']} stroke:{COLOURS[style_of(item)]}"
        if number:
            yield "  end"
    for predecessor, after in edges(graph):
        yield f"  r{predecessor} --> r{after}"


def _entities(text: str) -> str:
    """Return a text for a label: Mermaid reads characters by their numbers."""
    return "".join(char if char.isalnum() or char in " _.-" else f"#{ord(char)};" for char in harmless(text))


FORMATS: Mapping[str, Callable[[Json], Iterator[str]]] = {
    "dot": as_dot,
    "mermaid": as_mermaid,
    "tree": lambda graph: iter(()),
}
