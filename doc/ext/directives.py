"""Parts of the directives that make references from the code."""

import json
import typing
from collections.abc import Iterable, Iterator, Sequence

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

Json = typing.Any


class Generated(SphinxDirective):
    """A directive that parses the reStructuredText of `lines`."""

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.lines())
        content: list[nodes.Node] = self.parse_text_to_nodes(text, allow_section_headings=True)
        return content


def heading(text: str, line: str) -> list[str]:
    return ["", text, line * len(text), ""]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: str) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for row in (header, *rows):
        for index, cell in enumerate(row):
            first, *more = cell.split("\n") or [""]
            yield f"   {'* -' if index == 0 else '  -'} {first}"
            yield from (f"       {line}" for line in more)
    yield ""


def literal(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"``{text}``" if text.strip() == text and text and "`" not in text else f":literal:`{text!r}`"
