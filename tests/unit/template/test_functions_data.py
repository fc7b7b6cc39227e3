"""Functions over lists and maps, as the outputs of a template show them."""

import threading

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.errors import LimitExceeded, TemplateError

NEW = "2021-04-16"


def out(value, version=NEW, parameter_values=None, **sections):
    template = {"heat_template_version": version, "outputs": {"out": {"value": value}}, **sections}
    compiled = compile_template(
        Source(template, parameters=parameter_values or {}),
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
    ("function", "args", "value"),
    [
        ("map_merge", [{"a": 1, "b": 1}, {"b": 2}], {"a": 1, "b": 2}),
        ("map_merge", [None, {"a": None}], {"a": None}),
        ("map_merge", [], {}),
        ("map_replace", [{"a": "x", "b": "y"}, {"keys": {"a": "A"}}], {"A": "x", "b": "y"}),
        ("map_replace", [{"a": "x", "b": "y"}, {"values": {"x": "X"}}], {"a": "X", "b": "y"}),
        ("map_replace", [{"a": "x"}, {"keys": {"a": "a"}}], {"a": "x"}),
        ("map_replace", [{"a": ["x"]}, {"values": {"x": 1}}], {"a": ["x"]}),
        ("map_replace", [{"a": "x"}, {"keys": None, "values": None}], {"a": "x"}),
        ("map_replace", [{"a": "x"}, {"keys": {"a": None}, "values": {"x": None}}], {"a": None}),
        ("map_replace", [None, None], {}),
        ("filter", [["a"], ["a", "b", "a", "c"]], ["b", "c"]),
        ("filter", [[], ["a"]], ["a"]),
        ("filter", [None, ["a"]], ["a"]),
        ("filter", [["a"], []], []),
        ("filter", [["a"], None], None),
        ("filter", [[{"a": 1}], [{"a": 1}, {"a": 2}]], [{"a": 2}]),
        ("list_concat", [["a"], None, ["b", "a"], []], ["a", "b", "a"]),
        ("list_concat_unique", [["a", "b"], ["b", "c", "a"]], ["a", "b", "c"]),
        ("list_concat_unique", [[{"a": [1]}, [1]], [{"a": [1]}, [1], [2]]], [{"a": [1]}, [1], [2]]),
        ("list_concat_unique", [["1", 1], [1.0, None, None]], ["1", 1, None]),
        ("contains", ["a", ["a", "b"]], True),
        ("contains", ["c", ["a", "b"]], False),
        ("contains", ["b", "abc"], True),
        ("contains", [{"a": 1}, [{"a": 1}]], True),
    ],
)
def test_functions_of_lists_and_maps(function, args, value):
    assert out({function: args}) == value


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        ("map_merge", {"a": 1}, "must be a list of maps"),
        ("map_merge", ["a"], 'items to merge must be maps, not "a"'),
        ("map_replace", [{"a": 1}], "must be of the form [map, {keys: {old: new}, values: {old: new}}]"),
        ("map_replace", [{"a": 1}, {"kyes": {}}], "must be of the form [map, {keys:"),
        ("map_replace", [{"a": 1}, {"keys": ["a"]}], "must be of the form [map, {keys:"),
        ("map_replace", [[], {}], "must be of the form [map, {keys:"),
        ("map_replace", [{"a": 1, "b": 2}, {"keys": {"a": "b"}}], 'the new key "b" is in the map already'),
        ("map_replace", [{"a": 1, "b": 2}, {"keys": {"a": "c", "b": "c"}}], 'the new key "c" is in'),
        ("map_replace", [{"a": 1}, {"keys": {"a": ["c"]}}], 'a new key must be a string, not ["c"]'),
        ("filter", [["a"]], "must be of the form [[value, …], [item, …]]"),
        ("filter", [["a"], "abc"], 'can only filter a list, not "abc"'),
        ("filter", ["a", ["a"]], 'the values must be a list, not "a"'),
        ("list_concat", {"a": 1}, "must be a list of lists"),
        ("list_concat", [["a"], "b"], 'can only concatenate lists, not "b"'),
        ("list_concat_unique", [["a"], {"b": 1}], 'can only concatenate lists, not {"b": 1}'),
        ("contains", ["a"], "must be of the form [value, [item, …]]"),
        ("contains", ["a", 1], "the second argument must be a list, not 1"),
        ("contains", [1, "abc"], "a string can only contain a string, not 1"),
    ],
)
def test_functions_of_lists_and_maps_say_what_they_want(function, args, words):
    assert failure({function: args}).startswith(f"outputs.out.value.{function}: {words}")


@pytest.mark.parametrize(
    ("expression", "data", "value"),
    [
        ("$.data", {"a": [1]}, {"a": [1]}),
        ("$.data.list.where($ > 1).select($ * 2)", {"list": [1, 2, 3]}, [4, 6]),
        ("$.data.list.sum()", {"list": [3, 2, 1]}, 6),
        ("$.data.list.max()", {"list": [3, 2, 1]}, 3),
        ("dict($.data.select([$, $ + 1]))", [1], {"1": 2}),
        ("set(1)", None, [1]),
        ("$.data.get(x)", {}, None),
    ],
)
def test_yaql(expression, data, value):
    assert out({"yaql": {"expression": expression, "data": data}}) == value


def test_yaql_without_data_has_an_empty_map():
    assert out({"yaql": {"expression": "$.data"}}) == {}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("$.data", "must be a map with the keys expression and data"),
        ({"data": 1}, "must be a map with the keys expression and data"),
        ({"expression": "$", "dta": 1}, "must be a map with the keys expression and data"),
        ({"expression": 1}, "expression must be a string, not 1"),
        ({"expression": "$.data.("}, 'cannot evaluate "$.data.(": '),
        ({"expression": "$.data.nope()"}, 'cannot evaluate "$.data.nope()": '),
        ({"expression": "1 / 0"}, 'cannot evaluate "1 / 0": '),
        ({"expression": "regex('(').matches(a)"}, "cannot evaluate \"regex('('"),
        ({"expression": "def(f, f()) -> f()"}, 'cannot evaluate "def(f, f()) -> f()": '),
        ({"expression": "range(0, 1000000).sum()"}, 'cannot evaluate "range(0, 1000000).sum()": '),
        ({"expression": "'a' * 1000000000"}, "cannot evaluate \"'a' * 1000000000\": "),
        ({"expression": "float(nan)"}, "gives nan, which JSON cannot represent"),
    ],
)
def test_yaql_that_cannot_be_evaluated_is_the_users_error(args, words):
    assert failure({"yaql": args}).startswith(f"outputs.out.value.yaql: {words}")


@pytest.mark.parametrize(
    "expression",
    ["regex('(a+)+$').matches($.data)", "pow(9, pow(9, 9))", "shiftBitsLeft(1, 10000000000)"],
)
def test_yaql_that_takes_too_much_is_refused_with_its_path(expression):
    with pytest.raises(LimitExceeded) as caught:
        out({"yaql": {"expression": expression, "data": "a" * 60 + "!"}})
    assert str(caught.value).startswith(f'outputs.out.value.yaql: cannot evaluate "{expression}": ')
    assert str(caught.value).endswith(("took more than 1 s", "needs more than 64 MiB of memory"))


def test_the_error_of_a_long_expression_is_short():
    assert len(failure({"yaql": {"expression": "$.(" + "a" * 100_000}})) < 1000


def test_yaql_can_be_evaluated_by_several_threads_at_once():
    wrong = []

    def evaluate(number):
        for _ in range(40):
            try:
                value = out({"yaql": {"expression": f"$.data.select($ + {number})", "data": [1, 2]}})
            except TemplateError as error:
                value = str(error)
            if value != [1 + number, 2 + number]:
                wrong.append(value)

    threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def repeat(template, **options):
    permutations = {"permutations": options.pop("permutations")} if "permutations" in options else {}
    return {"repeat": {"template": template, "for_each": options, **permutations}}


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (repeat("port-x", x=["80", "443"]), ["port-80", "port-443"]),
        (repeat({"x": ["x", "y"]}, x=["a"], y=["1", "2"]), [{"a": ["a", "1"]}, {"a": ["a", "2"]}]),
        (repeat("xy", x=["a", "b"], y=["1", "2"], permutations=True), ["a1", "a2", "b1", "b2"]),
        (repeat("xy", x=["a", "b"], y=["1", "2"], permutations=False), ["a1", "b2"]),
        (repeat("xy", x=["a", "b"], y=None, permutations=False), []),
        (repeat("x", x={"k1": 1, "k2": 2}), ["k1", "k2"]),
        (repeat("x", x=[]), []),
        (repeat("x", x=None), []),
        (repeat(7, x=["a", "b"]), [7, 7]),
        # Later variables are replaced in the values of earlier ones too.
        (repeat("x", x=["y"], y=["z"]), ["z"]),
        # Heat takes strings only; here any value can be where the variable is alone.
        (
            repeat({"v": "x", "t": "<x>"}, x=[{"a": 1}, 2]),
            [{"v": {"a": 1}, "t": '<{"a": 1}>'}, {"v": 2, "t": "<2>"}],
        ),
    ],
)
def test_repeat(tree, value):
    assert out(tree) == value


def test_repeat_evaluates_its_template_before_it_replaces():
    parameters = {"x": {"type": "string", "default": "value of x"}}
    tree = repeat({"list_join": ["-", [{"get_param": "x"}, "%"]]}, **{"%": ["1", "2"]})
    assert out(tree, parameters=parameters) == ["value of x-1", "value of x-2"]
    assert out(repeat({"get_param": "x"}, x=["1"]), parameters=parameters) == ["value of 1"]
    assert out(repeat({"digest": ["md5", "x"]}, x=["a"])) == out([{"digest": ["md5", "x"]}])


def test_what_repeat_puts_in_is_never_taken_for_a_function():
    parameters = {"list": {"type": "json"}, "secret": {"type": "string", "default": "s"}}
    tree = repeat("x", x={"get_param": "list"})
    for value in ({"get_param": "secret"}, {"$fn": "get_param", "args": ["secret"]}):
        output = out(tree, parameters=parameters, parameter_values={"list": [value]})
        assert output == [value] or output == [{"$fn": "literal", "args": [value]}]


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"repeat": ["a"]}, "must be a map with the keys for_each and template"),
        ({"repeat": {"template": "x"}}, "must be a map with the keys for_each and template"),
        (repeat("x"), "for_each must be a map of variables to lists"),
        ({"repeat": {"template": "x", "for_each": ["x"]}}, "for_each must be a map of variables to lists"),
        (repeat("x", x="abc"), 'for_each.x must be a list or a map, not "abc"'),
        (repeat("x", x={"a": 1}, permutations=False), 'for_each.x must be a list, not {"a": 1}'),
        (repeat("x", x=["a"], permutations="no"), "permutations must be true or false"),
        (repeat("x", x=["a"], y=["b", "c"], permutations=False), "the lists of for_each must have the same"),
    ],
)
def test_a_wrong_repeat_is_refused_with_the_right_form(tree, words):
    assert failure(tree).startswith(f"outputs.out.value.repeat: {words}")


def test_repetitions_that_would_fill_the_memory_are_refused():
    tree = repeat("abcde", **{name: ["x"] * 100 for name in "abcde"})
    with pytest.raises(LimitExceeded, match=r"^outputs\.out\.value\.repeat: would make a text of"):
        out(tree)


def test_functions_work_on_what_functions_give():
    parameters = {"names": {"type": "comma_delimited_list", "default": "a,b"}}
    tree = {
        "map_merge": repeat(
            {"n": {"str_replace": {"template": "<n>", "params": {}}}}, n={"get_param": "names"}
        )
    }
    assert out(tree, parameters=parameters) == {"a": "<a>", "b": "<b>"}
