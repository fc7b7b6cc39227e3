"""The texts of errors: values are spelt as in JSON and YAML, and it is said what would be right."""

import ast
import pathlib
import re
import typing

import pytest
import stoker
from stoker.engine.compile import GoalCompiler
from stoker.planning.requests import Goal
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.stored import Sealer
from stoker.template.compile import Identity, Limits
from stoker.template.errors import TemplateError

Json = typing.Any
ROOT = pathlib.Path(stoker.__file__).parent
SEALER = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
PARTS = ("template", "planning", "resources", "engine")
"""Folders whose errors users read."""
FOR_NOBODY = {"template/scalars.py"}
"""Where a text is a key of a set, not a message."""


def messages(template: Json, **fields: Json) -> list[str]:
    """The messages of all errors of a template."""
    body = {"heat_template_version": "2021-04-16", **template}
    compiler = GoalCompiler(ResourceRegistry.installed(), Limits())
    with pytest.raises(TemplateError) as caught:
        compiler.compile(Goal(body, **fields), Identity("s", "i", "p"), SEALER)
    return [one.message for one in (caught.value, *caught.value.others)]


def test_no_message_shows_a_value_as_python_writes_it() -> None:
    offenders = []
    for folder in PARTS:
        for path in (ROOT / folder).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FormattedValue) and node.conversion == ord("r"):
                    offenders.append(f"{name}:{node.lineno}")
    assert [each for each in offenders if each.partition(":")[0] not in FOR_NOBODY] == []


WRONG: list[Json] = [True, None, 1.5, "word", [True, None], {"a": None, "b": [False]}]
"""Values of each kind."""
PYTHON = re.compile(r"\b(True|False|None|NoneType|OrderedDict|dict|str)\b|\{'|\['")


@pytest.mark.parametrize("value", WRONG, ids=str)
def test_a_wrong_value_of_each_kind_is_shown_as_json(value: Json) -> None:
    texts = []
    for kind in ("string", "number", "boolean", "json", "comma_delimited_list"):
        parameters = {"p": {"type": kind, "default": value}, "q": {"type": value}}
        texts += messages({"parameters": parameters})
    keys = ("type", "properties", "metadata", "depends_on", "deletion_policy", "condition", "external_id")
    for key in keys:
        texts += messages({"resources": {"r": {"type": "OS::Heat::None", key: value}, "wrong": {}}})
    functions = ("get_param", "get_resource", "get_attr", "get_file", "list_join", "str_replace", "map_merge")
    properties = [{"value": {name: value}} for name in functions]
    properties += [{"type": kind, "value": value} for kind in ("string", "number", "json", "boolean")]
    for each in properties:
        texts += messages({"resources": {"r": {"type": "OS::Heat::Value", "properties": each}, "wrong": {}}})
    assert [text for text in texts if PYTHON.search(text)] == []


def test_a_bound_that_is_none_is_not_named() -> None:
    lengths = [{"length": {"max": 2}}, {"length": {"min": 9}}]
    numbers = [{"range": {"max": 2}}, {"range": {"min": 9}}, {"range": {"min": 1, "max": 2}}]
    bodies = [{"type": "string", "default": "word", "constraints": [each]} for each in lengths]
    bodies += [{"type": "number", "default": 5, "constraints": [each]} for each in numbers]
    assert messages({"parameters": {str(index): body for index, body in enumerate(bodies)}}) == [
        "length (4) is out of range (max: 2)",
        "length (4) is out of range (min: 9)",
        "5 is out of range (max: 2)",
        "5 is out of range (min: 9)",
        "5 is out of range (min: 1, max: 2)",
    ]
