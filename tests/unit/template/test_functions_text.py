"""Functions that make texts, as the outputs of a template show them."""

import hashlib

import pytest
from stoker.template.budget import MAX_TEXT
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.errors import LimitExceeded, TemplateError

OLD = "2013-05-23"
NEW = "2021-04-16"


def out(value, version=NEW, files=None, **sections):
    template = {"heat_template_version": version, "outputs": {"out": {"value": value}}, **sections}
    compiled = compile_template(
        Source(template, files=files or {}),
        identity=Identity("stack", "id", "project"),
        limits=Limits(),
        seal=str,
    )
    return compiled.outputs["out"].value


def failure(value, version=NEW, **options):
    with pytest.raises(TemplateError) as caught:
        out(value, version, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("version", "args", "text"),
    [
        (OLD, [",", ["a", "b"]], "a,b"),
        (OLD, [",", []], ""),
        (OLD, [",", None], ""),
        (OLD, ["-", ["a", None, "b"]], "a--b"),
        (NEW, ["-", ["a", None, "b"]], "a--b"),
        (NEW, [",", ["a"], [], None, ["b", "c"]], "a,b,c"),
        (NEW, [",", "", ["b"], {}], "b"),
        (NEW, [", ", [{"b": 1, "a": [True]}, ["x"], "y"]], '{"a": [true], "b": 1}, ["x"], y'),
        (NEW, [",", [{"list_join": ["+", ["a", "b"]]}, "c"]], "a+b,c"),
    ],
)
def test_list_join(version, args, text):
    assert out({"list_join": args}, version) == text


@pytest.mark.parametrize(
    ("version", "args", "words"),
    [
        (OLD, "a,b", "must be of the form [delimiter, [item, item, …]]"),
        (OLD, [","], "must be of the form"),
        (OLD, [",", ["a"], ["b"]], "joins one list only in version 2013-05-23; several need 2015-10-15"),
        (OLD, [",", "abc"], 'must join lists, not "abc"'),
        (OLD, [",", ""], 'must join lists, not ""'),
        (OLD, [",", [{"a": 1}]], 'items to join must be strings, not {"a": 1}'),
        (NEW, [",", "abc"], 'must join lists, not "abc"'),
        (NEW, [",", [1]], "items to join must be strings, maps and lists, not 1"),
        (NEW, [1, ["a"]], "the delimiter must be a string, not 1"),
    ],
)
def test_list_join_refuses(version, args, words):
    assert failure({"list_join": args}, version).startswith(f"outputs.out.value.list_join: {words}")


STRICT = ("str_replace_strict", "str_replace_vstrict")


@pytest.mark.parametrize(
    ("template", "params", "text"),
    [
        ("$a and $b", {"$a": "1", "$b": 2}, "1 and 2"),
        ("$a", {"$a": "$b", "$b": "$a"}, "$b"),
        ("aab", {"a": "b", "b": "c"}, "bbc"),
        ("$ab $a", {"$a": "short", "$ab": "long"}, "long short"),
        ("xyx", {"xy": "1", "yx": "2"}, "1x"),
        ("f i t n", {"f": 1.5, "i": 7, "t": True, "n": None}, "1.5 7 True "),
        ("json", {"json": {"b": [1], "a": None}}, '{"a": null, "b": [1]}'),
        ("", {}, ""),
    ],
)
def test_str_replace(template, params, text):
    assert out({"str_replace": {"template": template, "params": params}}) == text


def test_str_replace_passes_over_other_keys_as_heat_does():
    assert out({"str_replace": {"template": "a", "params": {"a": "b"}, "note": "x"}}) == "b"


def test_str_replace_without_matches_keeps_the_text():
    assert out({"str_replace": {"template": "text", "params": {"$x": 1}}}) == "text"


@pytest.mark.parametrize("name", STRICT)
def test_the_strict_forms_replace_too(name):
    assert out({name: {"template": "$a $b", "params": {"$a": "1", "$b": "2"}}}) == "1 2"


@pytest.mark.parametrize("name", STRICT)
@pytest.mark.parametrize(
    ("template", "params", "missing"),
    [
        ("text", {"$b": 1, "$aa": 2}, "$aa, $b"),
        # A longer word takes what the shorter one would have matched.
        ("abc", {"abc": 1, "b": 2}, "b"),
        # What was put in does not count.
        ("a", {"a": "b", "b": "c"}, "b"),
    ],
)
def test_the_strict_forms_name_the_words_that_are_not_in_the_text(name, template, params, missing):
    message = failure({name: {"template": template, "params": params}})
    assert message == f"outputs.out.value.{name}: these params are not in the template: {missing}"


@pytest.mark.parametrize("empty", ["", None, [], {}])
def test_the_very_strict_form_refuses_empty_values(empty):
    tree = {"template": "$a", "params": {"$a": empty}}
    assert failure({"str_replace_vstrict": tree}).endswith(".str_replace_vstrict: param $a has no value")
    assert out({"str_replace_strict": tree}) in ("", "[]", "{}")


@pytest.mark.parametrize("zero", [0, False, 0.0])
def test_the_very_strict_form_takes_zero_for_a_value(zero):
    assert out({"str_replace_vstrict": {"template": "$a", "params": {"$a": zero}}}) == str(zero)


@pytest.mark.parametrize(
    ("version", "args", "words"),
    [
        (NEW, "x", "must be a map with the keys template and params"),
        (NEW, {"template": "x"}, "must be a map with the keys template and params"),
        (NEW, {"template": 1, "params": {}}, "template must be a string, not 1"),
        (NEW, {"template": "x", "params": ["a"]}, 'params must be a map, not ["a"]'),
        (NEW, {"template": "x", "params": {"": "a"}}, "params must not have an empty key"),
        (OLD, {"template": "x", "params": {"x": {"a": 1}}}, "param x must be a string or a number, not"),
    ],
)
def test_str_replace_refuses(version, args, words):
    assert failure({"str_replace": args}, version).startswith(f"outputs.out.value.str_replace: {words}")


def test_a_text_that_would_fill_the_memory_is_not_made():
    half = "a" * (MAX_TEXT // 4096)
    out({"str_replace": {"template": half, "params": {"a": "x" * 4095}}})
    with pytest.raises(LimitExceeded, match=f"above the limit of {MAX_TEXT}"):
        out({"str_replace": {"template": half, "params": {"a": "x" * 4097}}})


@pytest.mark.parametrize(
    ("args", "value"),
    [
        ([",", "a,b"], ["a", "b"]),
        ([",", ""], [""]),
        ([", ", "a, b", 1], "b"),
        ([",", "a,b", "0"], "a"),
        ([",", "a,b", -1], "b"),
        ([",", None], None),
        ([",", None, 5], None),
    ],
)
def test_str_split(args, value):
    assert out({"str_split": args}) == value


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("a,b", "must be of the form [delimiter, string, index]"),
        ([","], "must be of the form [delimiter, string, index]"),
        ([",", "a", 0, 1], "must be of the form [delimiter, string, index]"),
        (["", "a"], 'the delimiter must be a string that is not empty, not ""'),
        ([",", ["a"]], 'can only split a string, not ["a"]'),
        ([",", "a,b", 2], "the index 2 is not between 0 and 1"),
        ([",", "a,b", "x"], 'the index must be a whole number, not "x"'),
        ([",", "a,b", None], "the index must be a whole number, not null"),
    ],
)
def test_str_split_refuses(args, words):
    assert failure({"str_split": args}).startswith(f"outputs.out.value.str_split: {words}")


@pytest.mark.parametrize("name", ["md5", "SHA256", "sha512", "blake2b"])
def test_digest_is_hashlibs_in_hexadecimal(name):
    assert out({"digest": [name, "tëxt"]}) == hashlib.new(name.lower(), "tëxt".encode("latin-1")).hexdigest()


def test_digest_of_what_latin_1_has_not_is_of_its_utf_8():
    assert out({"digest": ["md5", "日本"]}) == hashlib.md5("日本".encode()).hexdigest()


@pytest.mark.parametrize("algorithm", ["nope", "shake_128", ""])
def test_digest_names_the_algorithms_it_knows(algorithm):
    message = failure({"digest": [algorithm, "x"]})
    assert message.startswith(
        f'outputs.out.value.digest: does not support the algorithm "{algorithm}"; supported'
    )
    assert "sha256" in message
    assert "shake_128, " not in message


@pytest.mark.parametrize("args", ["md5", ["md5"], ["md5", 1], ["md5", "x", "y"]])
def test_digest_refuses(args):
    assert failure({"digest": args}).startswith("outputs.out.value.digest: must be of the form [algorithm,")


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"scheme": "http", "host": "example.com", "path": "/a b"}, "http://example.com/a%20b"),
        ({"scheme": "http", "host": "example.com", "port": 80}, "http://example.com:80"),
        ({"scheme": "http", "host": "::1", "port": "8080", "path": "/x"}, "http://[::1]:8080/x"),
        ({"scheme": "http", "host": "[::1]"}, "http://[::1]"),
        ({"scheme": "http", "host": "[x"}, "http://%5Bx"),
        ({"scheme": "ftp", "username": "u@", "password": "p:/", "host": "h"}, "ftp://u%40:p%3A%2F@h"),
        ({"scheme": "http", "password": "p", "host": "h"}, "http://:p@h"),
        ({"scheme": "http", "host": "h", "query": {"a": "b/c", "d": 1}}, "http://h?a=b/c&d=1"),
        ({"host": "h", "path": "p", "fragment": "f#"}, "//h/p#f%23"),
        ({}, ""),
    ],
)
def test_make_url(parts, url):
    assert out({"make_url": parts}) == url


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("http://x", "must be a map with keys of: scheme, username"),
        ({"hots": "x"}, "has unknown keys: hots; known: scheme, username"),
        ({"host": 1}, "host must be a string, not 1"),
        ({"scheme": "http:"}, 'scheme must not contain ":", as "http:" does'),
        ({"host": "h", "port": 0}, "port must be between 1 and 65535, not 0"),
        ({"host": "h", "port": 65536}, "port must be between 1 and 65535, not 65536"),
        ({"host": "h", "port": "x"}, 'port must be a number, not "x"'),
        ({"host": "h", "query": "a=b"}, 'query must be a map, not "a=b"'),
    ],
)
def test_make_url_refuses(parts, words):
    assert failure({"make_url": parts}).startswith(f"outputs.out.value.make_url: {words}")


def test_get_file_gives_the_text_that_was_sent():
    assert out({"get_file": "a.sh"}, files={"a.sh": "#!/bin/sh"}) == "#!/bin/sh"
    assert out({"get_file": {"list_join": ["", ["a", ".sh"]]}}, files={"a.sh": ""}) == ""


def test_get_file_names_a_file_by_a_text():
    assert failure({"get_file": 1}).endswith("get_file: the file's name must be a string, not 1")
