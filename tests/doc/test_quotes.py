"""Quotes of logs, health and errors in pages are the product's own texts, so that operators find them."""

import ast
import functools
import pathlib
import re
from collections.abc import Sequence

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ("handbook", "operation", "observation", "breakpoints")
PLACEHOLDER = "\0"
OF_OTHERS = {
    "Collection length exceeds 2000 elements": "YAQL",
    "Expression consumed too much memory": "YAQL",
    "systemd-analyze security": "a command",
}
"""Quotes that are not the product's own, and whose they are."""
NOT_MESSAGES = (
    r"(stoker|openstack|systemctl|stack|python|pytest|pip|SELECT|KILL|POST|PUT|GET|\w+\()|.* [=>]|.*: true"
)
"""Commands, requests, expressions, options."""


def _joined(node: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values)


@functools.cache
def product() -> Sequence[str]:
    """The texts of the product with three words or more, what is filled in as a placeholder."""
    found = set()
    for package in ROOT.glob("*/__init__.py"):
        if package.parent.name in ("tests", "benchmarks", "build"):
            continue
        for path in package.parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    found.add(_joined(node))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(re.sub(r"%(\(\w+\))?[\d.]*[sdrf]|\{[^}]*\}", PLACEHOLDER, node.value))
    return sorted(text for text in found if len(re.findall("[A-Za-z]{2,}", text)) >= 3)


def says(quote: str) -> bool:
    """Return whether one of the texts is in the quote, or all parts of the quote are in one text."""
    parts = [part.strip(" :,.") for part in re.split(r"…|\*{2,}|\(\w+\)|\b[A-Z]+\b|\d+", quote)]
    parts = [part for part in parts if len(part.split()) >= 2]
    return any(
        _in_order(text.split(PLACEHOLDER), quote) or (parts and all(part in text for part in parts))
        for text in product()
    )


def _in_order(pieces: Sequence[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def quotes() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        text = re.sub(r"^ {4}.*$", "", (ROOT / f"doc/{page}.md").read_text(), flags=re.MULTILINE)
        for quoted in re.findall(r"`([^`]+)`", text):
            words = " ".join(quoted.split())
            if len(re.findall(r"(?<!\S)[A-Za-z]{2,}", words)) >= 4 and not re.match(NOT_MESSAGES, words):
                found.append((page, words))
    return found


def test_there_are_quotes() -> None:
    assert len(quotes()) > 30


@pytest.mark.parametrize(("page", "quote"), quotes())
def test_a_page_quotes_what_the_product_says(page: str, quote: str) -> None:
    assert quote in OF_OTHERS or says(quote), (
        f"doc/{page}.md quotes {quote!r}, which no text of the product is"
    )


@pytest.mark.parametrize("quote", ["The stack is not what it was", "Hint run_tasks went by, nobody took it"])
def test_an_invented_quote_is_found(quote: str) -> None:
    assert not says(quote)
