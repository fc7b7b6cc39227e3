"""The texts of errors: values are spelt as in JSON and YAML, and it is said what would be right."""

import ast
import pathlib
import re
import typing

import pytest
import stoker
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
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
    return [each.message for each in (caught.value, *caught.value.others)]


def test_no_message_shows_a_value_as_python_writes_it() -> None:
    offenders = []
    for folder in PARTS:
        for path in (ROOT / folder).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if "!r" in text else ():
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


def of_resource(type_name: str, **properties: Json) -> list[str]:
    return messages({"resources": {"r": {"type": type_name, "properties": properties}}})


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("10GB", "; size is in GiB: write 10"),
        ("10 gib", "; size is in GiB: write 10"),
        ("2T", "; size is in GiB: write 2048"),
        ("10MB", "; size is in GiB"),
        ("10 minutes", "; size is in GiB"),
        ("ten", ""),
    ],
)
def test_an_error_of_a_size_with_a_unit_names_the_plain_number(value: str, hint: str) -> None:
    assert of_resource("OS::Cinder::Volume", size=value)[0] == f"Value '{value}' is not an integer{hint}"


def test_an_error_of_a_time_names_it_in_the_propertys_unit() -> None:
    wait = {"handle": "x", "timeout": "5m"}
    assert of_resource("OS::Heat::WaitCondition", **wait)[0].endswith("; timeout is in seconds: write 300")


def test_ports_in_the_wrong_order_are_named_with_their_rule() -> None:
    def rule(low: Json, high: Json, protocol: str = "tcp") -> Json:
        return {"protocol": protocol, "port_range_min": low, "port_range_max": high}

    rules = [rule(80, 22), rule(1, 2), rule(8, 0, "icmp"), rule("90", 80, "udp")]
    assert of_resource("OS::Neutron::SecurityGroup", rules=rules) == [
        "port_range_min (80) must not be above port_range_max (22)",
        "port_range_min (90) must not be above port_range_max (80)",
    ]
    alone = of_resource("OS::Neutron::SecurityGroupRule", security_group="g", **rule(80, 22))
    assert alone == ["port_range_min (80) must not be above port_range_max (22)"]


def test_a_property_of_another_type_is_named_with_it() -> None:
    [text] = of_resource("OS::Neutron::Net", cidr="10.0.0.0/24")
    assert text.startswith("Unknown Property cidr; it is a property of OS::Neutron::Subnet (allowed: ")
    [text] = of_resource("OS::Neutron::Net", description="x")
    assert " it is a property of" not in text, "many have it"


def test_no_list_of_names_follows_a_good_guess() -> None:
    [text, *_] = of_resource("OS::Nova::Server", flavour="m1")
    assert text == 'Unknown Property flavour; did you mean "flavor"?'
    template = {"resources": {"web": {"type": "OS::Heat::None"}, "db": {"type": "No", "depends_on": ["wbe"]}}}
    assert messages(template)[0] == (
        'The specified reference "wbe" (in db.DependsOn) is incorrect. '
        'depends_on names "wbe", which the template does not have; did you mean "web"?'
    )


@pytest.mark.parametrize(
    ("written", "suggestion"),
    [
        ("2018-08-3", "2018-08-31"),
        ("2018-8-31", "2018-08-31"),
        ("2013-05-32", "2013-05-23"),
        ("walaby", "wallaby"),
        ("2030-01-01", None),
    ],
)
def test_the_error_of_a_misspelt_version_names_the_nearest(written: str, suggestion: str | None) -> None:
    [text] = messages({"heat_template_version": written})
    beginning = f'The template version is invalid: "{written}". "heat_template_version" should be '
    assert text.startswith(f"{beginning}{'a known version; did you mean' if suggestion else 'one of: '}")
    assert text.endswith(f'did you mean "{suggestion}"?') or suggestion is None


def test_the_error_of_a_misspelt_version_key_names_the_right_one() -> None:
    compiler = GoalCompiler(ResourceRegistry.installed(), Limits())
    goal = Goal({"heat_template_versoin": "2018-08-31"})
    with pytest.raises(TemplateError, match='not provided; did you mean "heat_template_version"'):
        compiler.compile(goal, Identity("s", "i", "p"), SEALER)
