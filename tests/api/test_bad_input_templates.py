"""Broken templates: each is refused with an error that names what is wrong, and nothing is stored."""

import typing

import pytest
from harness.templates import one, template

Json = typing.Any
HEAD = "heat_template_version: 2021-04-16\n"
INVALID = "StackValidationFailed"
REFERENCE = "InvalidTemplateReference"
BAD = "HTTPBadRequest"
VERSION = "InvalidTemplateVersion"
LIMIT = "RequestLimitExceeded"


class Refusals(typing.Protocol):
    def create(self, kind: str, *fragments: str, **fields: Json) -> None: ...


def value(body: Json) -> Json:
    return template({"r": one(value=body)})


def text(body: str) -> str:
    return HEAD + body


def needs(*names: str) -> Json:
    return {"type": "OS::Heat::None", "depends_on": list(names)}


DOCUMENTS = {
    "no YAML": ("a: [", BAD, ["not valid YAML", "line 2"]),
    "a tab": (text("resources:\n\tr: x"), BAD, ["not valid YAML", "line 3"]),
    "a list": ("- a\n- b", BAD, ["must be a mapping", "list"]),
    "a word": ("word", BAD, ["must be a mapping", "str"]),
    "only a comment": ("# nothing", BAD, ["empty"]),
    "a list as key": (text("? [a]\n: b"), BAD, ["key"]),
    "a Python object": (text("description: !!python/object:os.system {}"), BAD, ["python/object"]),
    "a loop of aliases": (text("resources: &r {a: *r}"), BAD, ["alias"]),
    "a bomb of aliases": (
        text("\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 1}]" for i in range(9))),
        LIMIT,
        ["aliases", "500000"],
    ),
    "too deep": (text("description: " + "[" * 200 + "]" * 200), LIMIT, ["100 levels"]),
    "not a number": (text("resources: {r: {type: OS::Heat::None, metadata: {a: .nan}}}"), BAD, ["NaN"]),
    "infinity": (text("resources: {r: {type: OS::Heat::None, metadata: {a: .inf}}}"), BAD, ["Infinity"]),
    "too long": (text("description: " + "x" * 524_288), LIMIT, ["524288", "limit"]),
    "a NUL by an escape of YAML": (text('description: "a\\0b"'), INVALID, ["description", "NUL"]),
    "half a surrogate pair by an escape of YAML": (
        text('resources: {"\\uD800": {type: OS::Heat::None}}'),
        BAD,
        ["Unicode"],
    ),
    "a control character": (text("description: a\x07b"), BAD, ["not valid YAML"]),
}

SECTIONS = {
    "no version": ({"resources": {}}, VERSION, ["heat_template_version", "2021-04-16"]),
    "an unknown version": ({"heat_template_version": "1999-01-01"}, VERSION, ["1999-01-01", "2021-04-16"]),
    "a version of AWS": (
        {"AWSTemplateFormatVersion": "2010-09-08", "Resources": {}},
        VERSION,
        ['"AWSTemplateFormatVersion" should be', "2010-09-08", "2010-09-09"],
    ),
    "two versions": (
        {"AWSTemplateFormatVersion": "2010-09-09", "heat_template_version": "2013-05-23"},
        VERSION,
        ["Ambiguous versions (heat_template_version, AWSTemplateFormatVersion)"],
    ),
    "a wrong property in CloudFormation's format": (
        {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Resources": {"r": {"Type": "OS::Heat::RandomString", "Properties": {"length": 0}}},
        },
        INVALID,
        ["Resources.r.Properties.length", "out of range"],
    ),
    "an unknown section": (template({}, resource={}), "InvalidTemplateSection", ['"resource"', "resources"]),
    "resources are a list": (template([]), INVALID, ["resources", "must be a map", "list"]),
    "a resource is a word": (template({"r": "x"}), INVALID, ["resources.r", "must be a map"]),
    "a resource without type": (template({"r": {"properties": {}}}), INVALID, ["resources.r.type"]),
    "an unknown key of a resource": (
        template({"r": {"type": "OS::Heat::None", "property": {}}}),
        INVALID,
        ["resources.r", '"property"', "properties"],
    ),
    "an unknown type": (
        template({"r": {"type": "OS::Heat::TestResourc"}}),
        INVALID,
        ["resources.r.type", "OS::Heat::TestResourc", "OS::Heat::TestResource"],
    ),
    "a type of AWS that is not there": (
        template({"r": {"type": "AWS::RDS::DBInstance"}}),
        "ResourceTypeUnavailable",
        [
            "HEAT-E99001 Service heat is not available for resource type AWS::RDS::DBInstance",
            "resources.r.type",
        ],
    ),
    "a slash in a resource's name": (template({"a/b": one()}), INVALID, ["resources.a/b", "slash"]),
    "an empty name of a resource": (template({"": one()}), INVALID, ["name", "1 to 255"]),
    "a long name of a resource": (template({"r" * 256: one()}), INVALID, ["rrr", "255"]),
    "a type that needs a cloud, where there is none": (
        template({"r": {"type": "OS::Neutron::Net"}}),
        "ResourceTypeUnavailable",
        ["OS::Neutron::Net", "neutron", "auth_strategy = keystone", "make demo-cloud"],
    ),
    "a copy of a type without copies": (
        template({"r": {"type": "OS::Heat::None", "deletion_policy": "Snapshot"}}),
        INVALID,
        ["resources.r.deletion_policy", "OS::Heat::None", "Delete or Retain"],
    ),
    "an unknown deletion policy": (
        template({"r": {"type": "OS::Heat::None", "deletion_policy": "Forget"}}),
        INVALID,
        ["resources.r.deletion_policy", "Forget", "Retain"],
    ),
    "an unknown key of an output": (
        template({}, outputs={"o": {"valu": 1}}),
        INVALID,
        ["outputs.o", '"valu"', "value"],
    ),
    "an output without value": (
        template({}, outputs={"o": {"description": "d"}}),
        INVALID,
        ["outputs.o", "value"],
    ),
    "too many resources": (
        template({f"r{i}": {"type": "OS::Heat::None"} for i in range(10_001)}),
        LIMIT,
        ["10001", "10000"],
    ),
}

REFERENCES = {
    "itself": (template({"a": needs("a")}), "CircularDependencyException", ["a"]),
    "a circle of three": (
        template({"a": needs("b"), "b": needs("c"), "c": needs("a")}),
        "CircularDependencyException",
        ["a", "b", "c"],
    ),
    "a circle through attributes": (
        template(
            {
                "a": one(value={"get_attr": ["b", "output"]}),
                "b": one(value={"get_attr": ["a", "output"]}),
            }
        ),
        "CircularDependencyException",
        ["a", "b"],
    ),
    "depends_on nothing": (template({"a": needs("nope")}), REFERENCE, ["resources.a.depends_on", "nope"]),
    "get_resource": (value({"get_resource": "nope"}), REFERENCE, ["nope"]),
    "get_attr of nothing": (value({"get_attr": ["nope", "output"]}), REFERENCE, ["nope"]),
    "an unknown attribute": (
        template({"a": one(), "b": one(value={"get_attr": ["a", "outputs"]})}),
        INVALID,
        ["a outputs", "output"],
    ),
    "an unknown attribute in an output": (
        template({"a": one()}, outputs={"o": {"value": {"get_attr": ["a", "nope"]}}}),
        INVALID,
        ["outputs.o", "a nope"],
    ),
    "get_param": (value({"get_param": "nope"}), INVALID, ["nope"]),
    "an unknown condition": (
        template({"a": {"type": "OS::Heat::None", "condition": "nope"}}),
        INVALID,
        ["resources.a.condition", "nope"],
    ),
    "conditions in a circle": (
        template({}, conditions={"a": {"not": "b"}, "b": {"not": "a"}}),
        INVALID,
        ["conditions.a", "circle", "a -> b -> a"],
    ),
}

FUNCTIONS = {
    "get_file of a file that was not sent": (
        value({"get_file": "nope.txt"}),
        INVALID,
        ["get_file", "nope.txt"],
    ),
    "get_attr with one word": (value({"get_attr": "a"}), INVALID, ["get_attr", "[resource, attribute"]),
    "get_resource with a list": (value({"get_resource": ["a"]}), REFERENCE, ["must be a string", '["a"]']),
    "str_replace without params": (
        value({"str_replace": {"template": "x"}}),
        INVALID,
        ["str_replace", "params"],
    ),
    "list_join of a word": (value({"list_join": "x"}), INVALID, ["list_join"]),
    "digest by an unknown algorithm": (
        value({"digest": ["rot13", "x"]}),
        INVALID,
        ["digest", "rot13", "md5"],
    ),
    "str_split beyond the end": (value({"str_split": [",", "a,b", 5]}), INVALID, ["str_split"]),
    "repeat over a number": (
        value({"list_join": ["", {"repeat": {"template": "%x%", "for_each": {"%x%": 5}}}]}),
        INVALID,
        ["repeat", "for_each"],
    ),
    "yaql that is no yaql": (
        value({"yaql": {"expression": "$.((", "data": {}}}),
        INVALID,
        ["yaql", "$.(("],
    ),
    "if with three branches": (
        template({"r": one(value={"if": ["c", 1, 2, 3]})}, conditions={"c": True}),
        INVALID,
        ["value.if"],
    ),
    "a condition that is neither true nor false": (
        template({}, conditions={"c": "maybe"}),
        INVALID,
        ["conditions.c", "maybe"],
    ),
    "a function that this version has not": (
        {
            "heat_template_version": "2013-05-23",
            "resources": {"r": one(value={"yaql": {"expression": "1", "data": {}}})},
        },
        VERSION,
        ["yaql", "2016-10-14"],
    ),
}

PROPERTIES = {
    "an unknown property": (
        template({"r": one(valu="x")}),
        INVALID,
        ["resources.r.properties", "valu", "value"],
    ),
    "a word for a number": (template({"r": one(wait_secs="soon")}), INVALID, ["wait_secs", "soon"]),
    "a word for a boolean": (template({"r": one(fail="perhaps")}), INVALID, ["fail", "perhaps"]),
    "a map for a string": (template({"r": one(value={"a": 1})}), INVALID, ["value"]),
    "a word for a map": (template({"r": one(action_wait_secs="x")}), INVALID, ["action_wait_secs", "x"]),
    "an unknown key of a map": (template({"r": one(action_wait_secs={"eat": 1})}), INVALID, ["eat"]),
    "properties are a list": (
        template({"r": {"type": "OS::Heat::None", "properties": []}}),
        INVALID,
        ["resources.r.properties", "must be a map"],
    ),
    "a number that is too small": (
        template({"r": {"type": "OS::Heat::RandomString", "properties": {"length": 0}}}),
        INVALID,
        ["length", "0", "1", "512"],
    ),
    "a huge number": (
        template({"r": {"type": "OS::Heat::RandomString", "properties": {"length": 10**40}}}),
        INVALID,
        ["length", "512"],
    ),
    "a required property is missing": (
        template({"r": {"type": "OS::Heat::WaitCondition", "properties": {"timeout": 5}}}),
        INVALID,
        ["handle", "not assigned"],
    ),
    "a value that is not allowed": (
        template(
            {
                "r": {
                    "type": "OS::Heat::RandomString",
                    "properties": {"character_classes": [{"class": "runes"}]},
                }
            }
        ),
        INVALID,
        ["class", "runes", "lettersdigits"],
    ),
}

TABLE = {
    f"{group}: {name}": case
    for group, cases in {
        "document": DOCUMENTS,
        "section": SECTIONS,
        "reference": REFERENCES,
        "function": FUNCTIONS,
        "property": PROPERTIES,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("broken", "kind", "fragments"), TABLE.values(), ids=TABLE)
def test_a_broken_template_is_refused(
    refusals: Refusals, broken: Json, kind: str, fragments: list[str]
) -> None:
    refusals.create(kind, *fragments, template=broken)
