"""The check of the English finds what is planted."""

import importlib.util
import io
import pathlib
import sys
import tokenize
import types
from collections.abc import Iterator, Sequence

import pytest
import yaml
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Property
from stoker.resources.registry import ResourceRegistry

ROOT = pathlib.Path(__file__).parents[2]


def _load() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose"] = module
    spec.loader.exec_module(module)
    return module


prose = _load()
WORDS = prose.vocabulary((ROOT / prose.VOCABULARY).read_text())
NEXT = "\n"
LONG = " ".join(["word"] * 41) + "."


def findings(texts: Sequence[object]) -> list[str]:
    return [finding.message for text in texts for finding in prose.check(text, WORDS) if finding.serious]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("The clock stands while it waits.", "'stands'"),
        ("A thread that was\ngiven up is replaced.", "'given up'"),
        ("* one\n* It goes on.", "'goes on'"),
        ("| a | b |\n|---|---|\n| fine | the tenant's |", "'tenant'"),
        ("# A wish", "'wish'"),
        (f"It is long. {LONG}", "a sentence of 41 words"),
    ],
)
def test_a_document_is_refused(source: str, message: str) -> None:
    [finding] = findings(list(prose.markdown_texts("doc/x.md", source)))
    assert message in finding


@pytest.mark.parametrize(
    "source",
    [
        "A task waits for its predecessors.",
        "UNIX stands for nothing, a stand-in looks like it, and who looks up a word understands.",
        "The metric `stoker_threads_written_off`, and the option `most_written_off`.",
        "```text\nit goes on\n```",
        "Paragraph:\n\n    a session that stands here",
        " ".join(["word"] * 40) + ". Another sentence.",
    ],
)
def test_a_document_is_accepted(source: str) -> None:
    assert findings(list(prose.markdown_texts("doc/x.md", source))) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('"""What is stored."""', "begins with 'What'"),
        ('def f() -> None:\n    """Of a task."""', "begins with 'Of'"),
        ('SIZE = 3\n"""Whether it fits."""', "begins with 'Whether'"),
        ('def f() -> None:\n    """Return it.\n\n    A row stands there.\n    """', "'stands'"),
        (f'"""Return it.\n\n{LONG}\n"""', "a sentence of 41 words"),
        ("x = 1  # it goes on", "'goes on'"),
        ("# One that is\n# given up.\nx = 1", "'given up'"),
        ('LOG.info("The stack %s goes on", 1)', "'goes on'"),
        ('raise ValueError(f"the tenant {name} is unknown here")', "'tenant'"),
    ],
)
def test_a_module_is_refused(source: str, message: str) -> None:
    [finding] = findings(list(prose.python_texts("x.py", source)))
    assert message in finding


@pytest.mark.parametrize(
    "source",
    [
        '"""Rows of tasks."""',
        '"""Return `tenant`, and ``look``."""',
        'def f() -> None:\n    """Return it.\n\n    Example::\n\n        it goes on\n    """',
        'x = "tenant"',
        'x = "As Heat has it: the tenant"  # prose: a text of Heat\'s API',
        "x = 1  # noqa: E501 - it goes on",
    ],
)
def test_a_module_is_accepted(source: str) -> None:
    assert findings(list(prose.python_texts("x.py", source))) == []


def test_a_comment_is_distinguished_from_a_string() -> None:
    source = (
        """'#1'; x = "#2 \\\\"  # a\ny = r'\\'#3' + f"{x!r}#4"  # b\nz = '''#5 " \n#6 \\''''''#c\n\n# d\n"""
    )
    comments, _ = prose._comments(source)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    expected = [(t.start[0], t.string.lstrip("# ")) for t in tokens if t.type == tokenize.COMMENT]
    assert comments == expected
    assert len(comments) == 4


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('def f() -> None:\n    """Return it.\n\n    A row stands there.\n    """', "'stands'"),
        ("x = 1  # it goes on", "'goes on'"),
        (f'"""Return it.\n\n{LONG}\n"""', "a sentence of 41 words"),
        ('"""What is stored."""', "begins with 'What'"),
        ("def test_a_stack_goes_on(world):\n    pass", "'goes on'"),
        ("def test_a_service_is_asked_once():\n    pass", "'asked'"),
    ],
)
def test_a_test_is_refused(source: str, message: str) -> None:
    [finding] = findings(list(prose.test_texts("tests/x.py", source)))
    assert message in finding


def test_strings_and_helpers_of_a_test_are_accepted() -> None:
    assert findings(list(prose.test_texts("tests/x.py", "def goes_on_as_asked():\n    pass"))) == []
    assert findings(list(prose.test_texts("tests/x.py", 'assert x, "the tenant is unknown here"'))) == []


def test_a_file_of_a_test_is_checked_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    path = tmp_path / "tests" / "unit" / "test_x.py"
    path.parent.mkdir(parents=True)
    path.write_text('"""It goes on."""\nassert x, "the tenant is unknown here"\n')
    (path.parent / "template.yaml").write_text("description: It goes on\n")
    assert prose.files([]) == prose.files([str(path.parent)]) == [path]
    [message] = findings(list(prose.texts_of(path)))
    assert "'goes on'" in message


def test_a_field_of_a_docstring_begins_a_sentence() -> None:
    half = " ".join(["word"] * 30)
    assert (
        prose.sentences(f"Return {half}\n\n:param x: {half}\n:raises Y: {half}")[0].strip()
        == f"Return {half}"
    )
    assert (
        findings(
            list(prose.python_texts("x.py", f'"""Return {half}\n\n:param x: {half}\n:raises Y: {half}"""'))
        )
        == []
    )


def test_a_release_note_is_refused() -> None:
    [message] = findings(list(prose.note_texts("x.yaml", "fixes:\n  - |\n    A stack goes on.\n")))
    assert "'goes on'" in message


@pytest.mark.parametrize("first", sorted(prose.NOT_A_NOUN))
def test_a_description_of_a_property_begins_with_a_noun(first: str) -> None:
    source = f'NAME = Property(\n    "string",\n    "{first} name.",\n    required=True,\n)\n'
    source += f'NAMES = {{"name": Attribute("{first} name.", "string"), "size": Attribute("Size.")}}\n'
    assert len(findings(list(prose.python_texts("resources/x.py", source)))) == 2
    for document in (
        f"```python\n{source}```",
        f"```diff\n+{source.rstrip().replace(NEXT, f'{NEXT}+')}\n```",
    ):
        assert len(findings(list(prose.markdown_texts("doc/x.md", document)))) == 2


def test_all_descriptions_of_types_begin_with_a_noun() -> None:
    """Schemas show what the check of the source cannot see: texts in constants and from functions."""
    registry = ResourceRegistry.installed()
    described = [text for name in registry.names() for text in type_descriptions(registry.get(name))]
    assert len(described) > 1200
    texts = [prose.Text(place, 1, "description", text) for place, text in [*described, *older_types()]]
    assert findings(texts) == []


def type_descriptions(plugin: ResourceType) -> Iterator[tuple[str, str]]:
    path = type(plugin).__qualname__
    schemas = [plugin.properties_schema, plugin.update_policy_schema]
    for schema in schemas:
        for name, prop in schema.items():
            yield f"{path}.{name}", prop.description
            if isinstance(prop.schema, Property):
                schemas.append({f"{name}.*": prop.schema})
            elif prop.schema is not None:
                schemas.append({f"{name}.{key}": member for key, member in prop.schema.items()})
    yield from ((f"{path}.{name}", item.description) for name, item in plugin.attributes_schema.items())


def older_types() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "etc" / "older_types" / "templates").glob("*.yaml"):
        template = yaml.safe_load(path.read_text())
        for name, item in {**template["parameters"], **template.get("outputs", {})}.items():
            yield f"{path.name}.{name}", item.get("description", "")


def test_every_form_of_the_words_is_found() -> None:
    table = (ROOT / prose.VOCABULARY).read_text().partition(f"## {prose.TABLE}\n")[2]
    rows = [line.strip("|").split("|")[0] for line in table.splitlines() if line.startswith("|")][2:]
    forms = [form.strip() for row in rows for form in row.split(",")]
    assert len(forms) > 50
    for form in forms:
        assert findings([prose.Text("x.md", 1, "prose", f"Here it {form}, so.")]), form


def test_the_cells_of_the_glossary_are_checked() -> None:
    texts = list(prose.markdown_texts("doc/glossary.md", (ROOT / "doc" / "glossary.md").read_text()))
    assert len(texts) > 100
    assert findings(texts) == []


def test_everything_else_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    code = prose.main([])
    assert capsys.readouterr().out == ""
    assert code == 0
