#!/usr/bin/env python3
"""Check the English of documents, release notes, docstrings, comments and messages: `make prose`.

The vocabulary comes from tools/words.md, from its table "Words that are not used".  No kept library does
this offline.  The `vale` package of PyPI downloads a Go program from GitHub at its first run, proselint takes
no words of one's own, and codespell knows neither phrases nor Python.  So libraries parse (markdown-it, ast),
and the rules are here.

    tools/prose.py [-v] [PATH...]

Without a path everything is checked.  With `-v` warnings are printed, too.  In tests and benchmarks only
docstrings, comments and the names of tests are checked.
"""

import argparse
import ast
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = pathlib.Path(__file__).resolve().parents[1]
VOCABULARY = "tools/words.md"
TABLE = "Words that are not used"
DOCUMENTS = (
    "README.md",
    "devstack/README.md",
    "examples/README.md",
    "tools/*.md",
    "doc/*.md",
    "releasenotes/notes/*.yaml",
)
FOLDERS = ("doc/ext", "examples", "tools")
"""Folders that are checked beside the packages of the root."""
NOTES = "releasenotes"
TESTS = ("tests", "benchmarks")
"""Folders of which only docstrings, comments and names of tests are checked."""
MOST_WORDS = 40
MANY_WORDS = 30
"""A longer sentence is refused; a longer one is warned of."""
NOT_FIRST = frozenset({"What", "Whether", "Those", "See", "Of", "As", "With", "From"})
"""Words with which no docstring begins."""
NOT_A_NOUN = frozenset(
    (
        *("How", "What", "Who", "Whom", "Whose", "Where", "When", "Which", "Whether", "Why"),
        *("It", "Its", "They", "Their", "This", "That", "By", "If"),
        *("Always", "Never", "Without", "Accepted", "Ignored", "Field"),
    )
)
"""Words with which no description of a property or attribute begins: its users read it without a context."""
PERSONS = re.compile(r"\b(?:told|asked)\b")
"""Words in names of tests that make persons of programs."""
CODE = "CODE"
"""Replaces code in a text."""
ESCAPE = "prose: "
"""A comment `# prose: REASON` lets the words of its line's string be."""
_PART = re.compile(r"[\w-]+")
"""A word, or a part of one that an apostrophe divides, as the words of the glossary are searched."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_PLAIN = re.compile(r"[A-Za-z]+[.,:;]?")
_DESCRIPTION = re.compile(r"""\b(?:Property\(\s*"[a-z]+",|Attribute\()\s*f?"([^"]+)""")
"""A property or attribute as Python code declares it, with the first line of its description."""
_END = re.compile(r"(?<![ .(]\w)(?<!\be\.g)(?<!\bi\.e)[.?!][)\"”*_]*(?=\s|$)")
_LEXEME = re.compile(
    r"""(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(#[^\n]*)""",
    re.DOTALL,
)
"""A string, or a comment as its group: ``tokenize`` takes ten times as long for the comments of a module."""
_TABLE_BLOCK = re.compile(r"^(=+ +=[= ]*)$(.*?^\1$){1,2}", re.MULTILINE | re.DOTALL)
_NOISE = re.compile(r"noqa|type: ignore|pragma|-\*-|!/|" + ESCAPE)


@dataclass(frozen=True)
class Text:
    """A passage of prose.

    :ivar kind: "prose" is checked for words and sentences, "message" for words only, "docstring" for its
        beginning, too, "description" for its beginning only, "name" for the words of a test's name.
    """

    path: str
    line: int
    kind: str
    text: str


@dataclass(frozen=True)
class Finding:
    """A fault of a passage."""

    text: Text
    message: str
    serious: bool = True

    def __str__(self) -> str:
        return f"{self.text.path}:{self.text.line}: {self.message}"


@dataclass(frozen=True)
class Avoided:
    """A word that is not used.

    :ivar pattern: matches one of its forms, but not where it is allowed.
    :ivar beginnings: the first parts of its forms, one of which a text has that the pattern matches.
    """

    pattern: re.Pattern[str]
    instead: str
    beginnings: frozenset[str]


# -- the glossary ----------------------------------------------------------------------------------


def vocabulary(glossary: str) -> list[Avoided]:
    """Return the words of the glossary's table."""
    _, heading, rest = glossary.partition(f"## {TABLE}\n")
    if not heading:
        raise SystemExit(f"{VOCABULARY} has no section {TABLE!r}")
    rows = [line.strip().strip("|").split("|") for line in rest.splitlines() if line.startswith("|")]
    return [_avoided(*(cell.strip() for cell in row)) for row in rows[2:]]


def _avoided(words: str, instead: str, allowed: str) -> Avoided:
    phrases = [form.lower() for form in words.split(",") if form.strip()]
    forms = "|".join(map(_phrase, phrases))
    except_for = "|".join(_phrase(form) for form in allowed.split(",") if form.strip())
    # A hyphen is a part of a word: `stand-in` is not `stand`.
    guard = rf"(?!(?:{except_for})(?![\w-]))" if except_for else ""
    pattern = re.compile(rf"(?<![\w-]){guard}(?:{forms})(?![\w-])", re.IGNORECASE)
    return Avoided(pattern, instead, frozenset(_PART.findall(phrase)[0] for phrase in phrases))


def _phrase(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())


# -- rules -----------------------------------------------------------------------------------------


def check(text: Text, words: Sequence[Avoided]) -> Iterator[Finding]:
    """Yield the faults of the passage."""
    if text.kind == "description":
        yield from _not_a_noun(text)
        return
    parts = set(_PART.findall(text.text.lower()))
    for avoided in words:
        for match in () if parts.isdisjoint(avoided.beginnings) else avoided.pattern.finditer(text.text):
            yield Finding(text, f"{' '.join(match[0].split())!r}: write {avoided.instead}")
    if text.kind == "name":
        for match in PERSONS.finditer(text.text):
            yield Finding(text, f"{match[0]!r}: write what happens: reported, shown, called, requested")
    if text.kind == "docstring":
        first = _WORD.match(text.text)
        if first and first[0] in NOT_FIRST:
            yield Finding(text, f"begins with {first[0]!r}: begin with a verb, or with what the thing is")
    if text.kind not in ("message", "name"):
        yield from _long_sentences(text)


def _not_a_noun(text: Text) -> Iterator[Finding]:
    first = _WORD.match(text.text)
    if first and first[0] in NOT_A_NOUN:
        yield Finding(
            text, f"{text.text!r} begins with {first[0]!r}: begin with a noun, the service's own term"
        )


def _long_sentences(text: Text) -> Iterator[Finding]:
    if len(_WORD.findall(text.text)) <= MANY_WORDS:
        return
    for sentence in sentences(text.text):
        count = len(_WORD.findall(sentence))
        if count > MANY_WORDS:
            start = " ".join(sentence.split()[:6])
            yield Finding(text, f"a sentence of {count} words: {start} …", serious=count > MOST_WORDS)


def sentences(text: str) -> list[str]:
    """Divide a passage where a sentence, a line of a field list or a paragraph ends."""
    parts = []
    for part in re.split(r"\n\s*\n|\n\s*(?=:\w+[ \w*]*:|[-*] )", text):
        start = 0
        for end in _END.finditer(part):
            parts.append(part[start : end.end()])
            start = end.end()
        parts.append(part[start:])
    return [sentence for sentence in parts if sentence.strip()]


# -- passages --------------------------------------------------------------------------------------


def markdown_texts(path: str, source: str) -> Iterator[Text]:
    """Yield paragraphs, items, headings and cells of tables, with code left out."""
    if path == VOCABULARY:
        source = source.partition(f"## {TABLE}\n")[0]
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        line = (token.map or [0])[0] + 1
        if token.type == "inline":
            yield Text(path, line, "prose", "".join(_plain(token.children or [])))
        elif token.type == "fence":
            yield from _descriptions(path, token.content.replace("\n+", "\n "), line + 1)


def _plain(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "text":
            yield token.content
        elif token.type == "code_inline":
            yield CODE
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"


def note_texts(path: str, source: str) -> Iterator[Text]:
    """Yield the entries of a release note of reno's."""
    for entries in (yaml.safe_load(source) or {}).values():
        for entry in [entries] if isinstance(entries, str) else entries:
            yield Text(path, 1, "prose", _without_code(entry))


def python_texts(path: str, source: str) -> Iterator[Text]:
    """Yield docstrings, comments and other texts of a module."""
    tree = ast.parse(source)
    documented = _docstrings(tree)
    for value in documented:
        yield Text(path, value.lineno, "docstring", _without_code(_first_dedented(value)))
    yield from _descriptions(path, source)
    comments, escaped = _comments(source)
    yield from (Text(path, line, "prose", _without_code(text)) for line, text in comments)
    for node in _strings(tree, without=documented):
        text = _message(node)
        if text and not escaped.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            yield Text(path, node.lineno, "message", _without_code(text))


def test_texts(path: str, source: str) -> Iterator[Text]:
    """Yield docstrings, comments and names of tests: its other texts are input, or what it plants."""
    tree = ast.parse(source)
    for value in _docstrings(tree):
        yield Text(path, value.lineno, "docstring", _without_code(_first_dedented(value)))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Text(path, node.lineno, "name", node.name.replace("_", " "))
    comments, _ = _comments(source)
    yield from (Text(path, line, "prose", _without_code(text)) for line, text in comments)


def _descriptions(path: str, code: str, first_line: int = 1) -> Iterator[Text]:
    """Yield the descriptions of properties and attributes in the code, each up to its first line's end."""
    for match in _DESCRIPTION.finditer(code):
        yield Text(path, first_line + code.count("\n", 0, match.start(1)), "description", match[1])


def _docstrings(tree: ast.Module) -> list[ast.Constant]:
    """Return those of modules, classes and functions, and the strings below assignments."""
    values = []
    statements: list[ast.AST] = [tree]
    for statement in statements:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements += getattr(statement, name, ())
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            values.append(value)
    return values


def _strings(tree: ast.AST, *, without: Sequence[ast.Constant]) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Yield the other strings; those that a formatted string consists of are one."""
    skipped = set(map(id, without))
    nodes = [tree]
    for node in nodes:  # ``ast.walk`` takes twice as long.
        if isinstance(node, ast.JoinedStr):
            nodes += [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            yield node
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in skipped:
                yield node
        else:
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    nodes += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    nodes.append(value)


def _first_dedented(value: ast.Constant) -> str:
    first, _, rest = str(value.value).partition("\n")
    return f"{first.strip()}\n{textwrap.dedent(rest)}"


def _comments(source: str) -> tuple[list[tuple[int, str]], set[int]]:
    """Return comments, lines that follow each other as one, and the lines that have the escape."""
    comments: list[tuple[int, str]] = []
    escaped: set[int] = set()
    last = -1
    line = 1
    position = 0
    for lexeme in _LEXEME.finditer(source):
        comment = lexeme[1]
        if comment is None:
            continue
        line += source.count("\n", position, lexeme.start())
        position = lexeme.start()
        if ESCAPE in comment:
            escaped.add(line)
        text = "" if _NOISE.search(comment) else comment.lstrip("#:").strip()
        if (
            line == last + 1
            and not source[source.rfind("\n", 0, position) + 1 : position].strip()
            and comments
        ):
            comments[-1] = (comments[-1][0], f"{comments[-1][1]}\n{text}")
        else:
            comments.append((line, text))
        last = line
    return comments, escaped


def _message(node: ast.Constant | ast.JoinedStr) -> str | None:
    """Return the text of a string of three words or more."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else CODE for part in node.values)
    else:
        text = str(node.value)
    return text if sum(map(bool, map(_PLAIN.fullmatch, text.split()))) >= 3 else None


def _without_code(text: str) -> str:
    """Return the text without literal blocks, examples, tables, names of fields and inline code."""
    lines: list[str] = []
    block = False
    for line in text.splitlines():
        indented = line.startswith("    ")
        block = indented and (
            block or not lines or not lines[-1].strip() or lines[-1].rstrip().endswith("::")
        )
        if not block and not line.lstrip().startswith(">>>"):
            lines.append(line)
    plain = _TABLE_BLOCK.sub("", "\n".join(lines))
    plain = re.sub(r"^(\s*:\w+) [^:\n]+:", rf"\1 {CODE}:", plain, flags=re.MULTILINE)
    return re.sub(r":\w+:`[^`]*`|``.*?``|`[^`]*`", CODE, plain, flags=re.DOTALL)


# -- the program -----------------------------------------------------------------------------------


def texts_of(path: pathlib.Path) -> Iterator[Text]:
    """Yield the passages of a file."""
    name = path.relative_to(ROOT).as_posix()
    source = path.read_text()
    in_tests = path.relative_to(ROOT).parts[0] in TESTS
    parse = {".md": markdown_texts, ".yaml": note_texts}.get(
        path.suffix, test_texts if in_tests else python_texts
    )
    return parse(name, source)


def files(names: Sequence[str]) -> list[pathlib.Path]:
    """Return the files to check: those below the names, or all."""
    if names:
        chosen = [pathlib.Path(name).resolve() for name in names]
        return [path for one in chosen for path in ([one] if one.is_file() else _below(one))]
    paths = [path for pattern in DOCUMENTS for path in ROOT.glob(pattern)]
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    paths += [path for folder in (*packages, *FOLDERS, *TESTS) for path in _below(ROOT / folder)]
    return paths


def _below(folder: pathlib.Path) -> list[pathlib.Path]:
    kinds = ["*.py"]
    if folder.relative_to(ROOT).parts[0] not in TESTS:
        kinds.append("*.md")
    if folder.is_relative_to(ROOT / NOTES):  # Other YAML files are templates and environments.
        kinds.append("*.yaml")
    return sorted(path for kind in kinds for path in folder.rglob(kind))


def main(arguments: Sequence[str]) -> int:
    """Print the faults, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check the English of documents, docstrings and messages.")
    parser.add_argument("-v", "--verbose", action="store_true", help="print warnings, too")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    chosen = parser.parse_args(arguments)
    words = vocabulary((ROOT / VOCABULARY).read_text())
    findings = [
        finding for path in files(chosen.paths) for text in texts_of(path) for finding in check(text, words)
    ]
    for finding in findings:
        if finding.serious or chosen.verbose:
            print(finding if finding.serious else f"{finding} (warning)")
    return any(finding.serious for finding in findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
