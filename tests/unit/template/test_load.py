"""Reading documents that strangers send: what YAML may be, and how much of it."""

import json
import time

import pytest
from stoker.template.budget import Budget
from stoker.template.errors import LimitExceeded, TemplateError
from stoker.template.load import (
    MAX_DEPTH,
    MAX_NODES,
    LoadedTemplates,
    load_document,
    load_template,
    repeated_keys,
)


def test_a_template_is_read_from_yaml_json_and_what_a_client_has_parsed():
    expected = {"heat_template_version": "2013-05-23", "resources": {"r": {"type": "X"}}}
    assert load_template("heat_template_version: 2013-05-23\nresources: {r: {type: X}}\n") == expected
    assert load_template(json.dumps(expected)) == expected
    assert load_template(expected) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2016-10-14", {"a": "2016-10-14"}),
        ("a: 2016-10-14 10:00:00", {"a": "2016-10-14 10:00:00"}),
        ("a: yes\nb: 010\nc: 1.5\nd: ~", {"a": True, "b": 8, "c": 1.5, "d": None}),
        ("1: a\nyes: b\n~: c\n1.5: d", {"1": "a", "true": "b", "null": "c", "1.5": "d"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: {<<: [{b: 1}, {b: 2, c: 3}]}", {"a": {"b": 1, "c": 3}}),
        ('{\n\t"a":\t"\\ud83d\\ude00\\/"\n}', {"a": "😀/"}),
        ("{a: 1}", {"a": 1}),
        ("a: |\n  line\n  line\n", {"a": "line\nline\n"}),
    ],
)
def test_yaml_is_read_as_though_it_had_come_as_json(text, value):
    assert load_document(text) == value
    assert json.loads(json.dumps(load_document(text))) == load_document(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the document is empty"),
        ("# only this\n", "the document is empty"),
        ("- a", "the document must be a mapping, not a list"),
        ("text", "the document must be a mapping, not a string"),
        ("a: b: c", "the document is not valid YAML in line 1, column 5: "),
        ("a: 1\nb: [", "the document is not valid YAML in line 3, column 1: while parsing a flow node, "),
        ("[a]: b", "in line 1, column 1: a key must be a string"),
        ("{a: 1}: b", "in line 1, column 1: a key must be a string"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("a: *x", "found undefined alias"),
        ("a: &x [*x]", "the document has an alias inside its own anchor"),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("a: !!python/name:os.system", "could not determine a constructor"),
        ("a: !own x", "could not determine a constructor"),
        ("a: !!binary aGk=", "holds binary data, which JSON cannot represent"),
        ("a: !!set {x}", "holds a set, which JSON cannot represent"),
        ("a: .nan", "holds NaN, which JSON cannot represent"),
        ("a: .inf", "holds Infinity, which JSON cannot represent"),
        ('{"a": Infinity}', "holds Infinity, which JSON cannot represent"),
        ("a: 0x" + "f" * 300, "holds a number of more than 1024 bits"),
        ("a: " + "9" * 5000, "not valid YAML"),
        ('{"a": ' + "9" * 5000 + "}", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ("a: \ud800", "not valid YAML"),
    ],
)
def test_a_text_that_is_no_document_is_refused_with_the_place(text, words):
    with pytest.raises(TemplateError) as caught:
        load_document(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("document", [None, 3, ["a"], b"a: 1"])
def test_a_template_is_a_text_or_a_mapping(document):
    with pytest.raises(TemplateError, match=r"^the template must be a text or a mapping, not "):
        load_template(document)


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1, 2}, 1 << 1025, object])
def test_what_a_client_has_parsed_is_checked_too(value):
    with pytest.raises(TemplateError, match=r"^the template holds "):
        load_template({"a": [{"b": value}]})


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("form", ["a: %s", '{"a": %s}', "{a: %s}"])
def test_depth_is_limited(form):
    assert load_document(form % nested(MAX_DEPTH - 1))
    for levels in (MAX_DEPTH, 1000, 100_000):
        with pytest.raises(LimitExceeded, match=f"deeper than {MAX_DEPTH} levels"):
            load_document(form % nested(levels))


def test_depth_through_indentation_and_through_aliases_is_limited():
    indented = "".join(f"{' ' * level}k:\n" for level in range(MAX_DEPTH + 1))
    aliased = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, MAX_DEPTH + 1))
    for text in (indented, aliased, "- " * 3000, "? " * 3000):
        with pytest.raises(LimitExceeded, match=f"deeper than {MAX_DEPTH} levels"):
            load_document(text)


@pytest.mark.parametrize(
    ("text", "value", "repeated"),
    [
        ("a: 1\nb: 2\na: 3", {"a": 3, "b": 2}, [("a", 3)]),
        ('1: a\n"1": b', {"1": "b"}, [("1", 2)]),
        ('{"x": {"a": 1,\n"a": 2}}', {"x": {"a": 2}}, [("a", 2)]),
        ("a: [{b: 1, b: 2}]\n", {"a": [{"b": 2}]}, [("b", 1)]),
        ("a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: *a", {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 1}}, []),
    ],
)
def test_of_equal_keys_the_last_counts(text, value, repeated):
    assert load_document(text) == value
    assert list(repeated_keys(text)) == repeated


def test_depth_of_a_parsed_template_is_limited():
    with pytest.raises(LimitExceeded, match="the template is deeper than 100 levels"):
        load_template({"a": json.loads(nested(500))})


def laughs(levels, form="[%s]"):
    lines = ["a0: &a0 {k: lol}"]
    for level in range(1, levels + 1):
        lines.append(f"a{level}: &a{level} " + form % ", ".join([f"*a{level - 1}"] * 10))
    return "\n".join(lines)


@pytest.mark.parametrize("form", ["[%s]", "{<<: [%s]}"])
def test_a_billion_laughs_are_refused_before_they_are_heard(form):
    started = time.thread_time()
    with pytest.raises(LimitExceeded, match=f"expands to more than {MAX_NODES} nodes through its aliases"):
        load_document(laughs(9, form))
    assert time.thread_time() - started < 1
    assert load_document(laughs(3, form))


def test_size_is_limited_in_bytes_of_the_text_or_of_its_json():
    text = "a: " + "é" * 10
    assert load_template(text, max_bytes=23)
    assert load_template(text, max_bytes=0)
    with pytest.raises(LimitExceeded, match=r"^the template has 23 bytes, above the limit of 22$"):
        load_template(text, max_bytes=22)
    assert load_template({"a": "x" * 10}, max_bytes=19)
    with pytest.raises(LimitExceeded, match=r"^the template has 19 bytes, above the limit of 18$"):
        load_template({"a": "x" * 10}, max_bytes=18)


def test_equal_templates_of_a_request_are_loaded_once_and_never_above_the_limit():
    templates = LoadedTemplates(Budget(), max_bytes=10)
    assert templates.load("a: " + "b" * 7) is templates.load("a: " + "b" * 7)
    for document in ("a: " + "b" * 8, {"a": "bbb"}):
        with pytest.raises(LimitExceeded, match="above the limit of 10"):
            templates.load(document)
    assert templates.load({"a": "bbb"}, generated=True) == {"a": "bbb"}


def test_a_large_plain_document_is_not_taken_for_a_bomb():
    text = "a:\n" + "- x\n" * (MAX_NODES // 8)
    assert len(load_document(text)["a"]) == MAX_NODES // 8
