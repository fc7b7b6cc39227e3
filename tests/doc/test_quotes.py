"""Quotes of logs, health and errors in pages are the product's own texts, so that operators find them."""

import ast
import functools
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ("handbook", "operation", "day1", "day2", "observation", "breakpoints")
PLACEHOLDER = "\0"
OF_OTHERS = (
    "Collection length exceeds 2000 elements",  # YAQL
    "Expression consumed too much memory",  # YAQL
    "systemd-analyze security",  # A command.
    "can't start new thread",  # Python
    "No space left on device",  # The kernel
)
"""Texts in quotes that are not the product's own."""
NOT_MESSAGES = (
    r"(stoker|openstack|systemctl|stack|python|pytest|pip|SELECT|KILL|POST|PUT|GET|\w+\()|.* [=>]|.*: true"
)
"""Commands, requests, expressions, options."""


FILLED_IN = re.compile(
    r"…|\*{2,}|\([^)]*\)"  # Left out, or examples in parentheses.
    r"|\b[A-Z]+\b|\b[\w.-]*\d[\w.-]*\b"  # ADDRESS, 5, 0003_expand
    r"|\b\w+(?:\.\s?\w+)+\b|\b[A-Z]\w+[A-Z]\w+\b"  # resources.r.properties, StackTimeouts
)
"""Words that a page may write in the place of a placeholder."""
BLOCK = re.compile(r"^ {4}[^\n]*$|^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
"""Text that is typed and printed, and no quote."""
ENDS = " :;,."
"""A quote may end before them."""


def _texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a module; what is filled in is a placeholder."""
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    for node in joined:
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield re.sub(r"%(\(\w+\))?[\d.]*[sdrf]|\{[^}]*\}", PLACEHOLDER, node.value)


@functools.cache
def product() -> Mapping[str, Sequence[str]]:
    """The texts of the product with two words or more, and their parts between placeholders.

    Neither has the marks of code.
    """
    strings: set[str] = set()
    for package in ROOT.glob("*/__init__.py"):
        if package.parent.name in ("tests", "benchmarks", "build"):
            continue
        for path in package.parent.rglob("*.py"):
            strings.update(text.replace("`", "") for text in _texts(ast.parse(path.read_text())))
    texts = [text for text in strings if len(re.findall("[A-Za-z]{2,}", text)) >= 2]
    return {text: _parts(text.split(PLACEHOLDER)) for text in (*texts, *OF_OTHERS)}


def _parts(pieces: Sequence[str]) -> Sequence[str]:
    return [part for piece in pieces if (part := piece.strip(ENDS))]


def unexplained(quote: str) -> list[str]:
    """Return the words of a quote that are neither of a text that it holds nor filled in.

    A quote may be a part of one text, too, with some of it left out.
    """
    parts = _parts(FILLED_IN.split(quote))
    if any(_in_order(parts, text) for text in product()):
        return []
    spans = [match.span() for match in FILLED_IN.finditer(quote)]
    for first, *further in product().values():
        for start in re.finditer(re.escape(first), quote) if first in quote else ():
            spans += _in_order([first, *further], quote, start.start())
    words = re.finditer(r"[A-Za-z][a-z']+", quote)
    return [word[0] for word in words if not any(since <= word.start() < until for since, until in spans)]


def _in_order(parts: Sequence[str], text: str, at: int = 0) -> list[tuple[int, int]]:
    """Return where the parts are in the text, one behind the other; none where one is missing."""
    spans = []
    for part in parts:
        since = text.find(part, at)
        if since < 0:
            return []
        at = since + len(part)
        spans.append((since, at))
    return spans


def quotes() -> list[tuple[str, str]]:
    pairs = []
    for page in PAGES:
        text = BLOCK.sub("", (ROOT / f"doc/{page}.md").read_text())
        for quoted in re.findall(r"`([^`]+)`", text):
            words = " ".join(quoted.split())
            if len(re.findall(r"(?<!\S)[A-Za-z]{2,}", words)) >= 4 and not re.match(NOT_MESSAGES, words):
                pairs.append((page, words))
    return pairs


def test_there_are_quotes() -> None:
    assert len(quotes()) > 30


def test_a_page_quotes_what_the_product_says() -> None:
    """Each offender has the words that no text of the product has."""
    offenders = [(f"doc/{page}.md", quote, unexplained(quote)) for page, quote in quotes()]
    assert [offender for offender in offenders if offender[-1]] == []


@pytest.mark.parametrize("quote", ["The stack is not what it was", "Hint run_tasks went by, nobody took it"])
def test_an_invented_quote_is_reported(quote: str) -> None:
    assert unexplained(quote)


def test_a_changed_word_of_a_quote_is_reported() -> None:
    changed = [
        f"{quote[: word.start()]}zebra{quote[word.end() :]}"
        for _, quote in quotes()
        for word in re.finditer(r"\b[a-z]{4,}\b", FILLED_IN.sub(lambda match: " " * len(match[0]), quote))
    ]
    words = {quote: unexplained(quote) for quote in changed}
    assert [quote for quote in changed if "zebra" not in words[quote] and len(words[quote]) < 2] == []
