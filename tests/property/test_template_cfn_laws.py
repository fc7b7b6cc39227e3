"""Functions of CloudFormation's format: early and late values, and what each has in common with HOT's."""

import json

from harness.trees import Answers, outcome, planted, trees_of
from hypothesis import given, settings
from hypothesis import strategies as st
from stoker.template.budget import Budget
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.functions.table import APPLY, VERSIONS
from stoker.template.residual import evaluate, partial, plain

AWS = VERSIONS["2010-09-09"]
MAPPING = {"a": {"b": "found", "": ["x"]}, "web": {"a": 1}}
texts = st.sampled_from(["", "a", "b", "ab", "a,b", "%", "web", "0", '["a"]', '{"a": 1}', "$fn"])
scalars = st.none() | st.booleans() | st.integers(-2, 3) | texts
keys = st.sampled_from(["a", "b", "%", "$fn", "args"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def function_call(name, *arguments):
    return st.tuples(*arguments).map(lambda values: {name: list(values)})


def functions(inner):
    """Calls that are mostly right, of arguments that are not always."""
    many = st.lists(inner, max_size=3) | inner
    words = st.dictionaries(st.sampled_from(["a", "ab", "%"]), inner, max_size=2)
    members = st.lists(st.sampled_from([".member.0.N=a", ".member.0.V=b", ".member.1.N=c", "x"]), max_size=4)
    return st.one_of(
        function_call("Fn::Join", texts, many),
        function_call("Fn::Split", texts, inner),
        function_call("Fn::Select", inner, many),
        function_call("Fn::Replace", words, inner),
        function_call("Fn::FindInMap", st.just("M"), inner, inner),
        function_call("Fn::MemberListToMap", st.just("N"), st.just("V"), members | inner),
        function_call("Fn::If", st.sampled_from(["on", "off"]), inner, inner),
        inner.map(lambda value: {"Fn::Base64": value}),
        st.lists(inner, max_size=2),
        st.dictionaries(keys, inner, max_size=2),
    )


trees = trees_of(functions)


def folded(tree, value):
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"p": {"Type": "Json", "Default": {"v": value}}},
        "Mappings": {"M": MAPPING},
        "Conditions": {"on": {"Fn::Equals": [1, 1]}, "off": {"Fn::Not": ["on"]}},
        "Resources": {"r": {"Type": "X"}},
        "Outputs": {"o": {"Value": tree}},
    }
    compiled = compile_template(
        Source(template), identity=Identity("s", "i", "p"), limits=Limits(), seal=lambda value: "token"
    )
    return compiled.outputs["o"].value


@settings(max_examples=120, deadline=None)
@given(trees, values)
def test_early_and_late_values_give_the_same(tree, value):
    early = outcome(lambda: plain(folded(planted(tree, {"Fn::Select": ["v", {"Ref": "p"}]}), value)))
    late = planted(tree, {"Fn::GetAtt": ["r", "x"]})
    assert outcome(lambda: evaluate(folded(late, value), Answers(value))) == early
    assert outcome(lambda: evaluate(partial(folded(late, value), Answers(value)), Answers(value))) == early


def apply(name, *arguments, version=AWS):
    return APPLY[name](list(arguments), version, Budget())


pieces = st.lists(st.text("ab ", max_size=4), min_size=1, max_size=6)


@given(pieces, st.sampled_from([",", ";;", "-"]))
def test_a_text_is_split_into_what_was_joined(items, delimiter):
    assert apply("Fn::Split", delimiter, apply("Fn::Join", delimiter, items)) == items


@given(pieces, st.integers(-8, 8))
def test_one_item_is_selected_from_a_list_from_its_json_and_from_its_map(items, index):
    selected = apply("Fn::Select", index, items)
    assert selected == (items[index] if -len(items) <= index < len(items) else "")
    assert apply("Fn::Select", str(index), json.dumps(items)) == selected
    if index >= 0:
        assert apply("Fn::Select", str(index), dict(zip(map(str, range(8)), items, strict=False))) == selected


@given(st.text("abc", max_size=8), st.dictionaries(st.text("abc", min_size=1, max_size=2), st.text("abc")))
def test_words_are_replaced_as_in_hot(text, words):
    hot = APPLY["str_replace"]({"template": text, "params": words}, VERSIONS["wallaby"], Budget())
    assert apply("Fn::Replace", words, text) == hot


@given(st.dictionaries(st.text(), st.text()), st.randoms(use_true_random=False))
def test_a_map_returns_from_its_members_in_any_order(pairs, random):
    members = [
        f".member.{number}.{name}={text}"
        for number, pair in enumerate(pairs.items())
        for name, text in zip(("Name", "Value"), pair, strict=True)
    ]
    random.shuffle(members)
    assert apply("Fn::MemberListToMap", "Name", "Value", members) == pairs


@given(st.dictionaries(st.text(max_size=3), st.dictionaries(st.text(max_size=3), values)))
def test_every_value_of_a_mapping_is_found(mapping):
    for top, level in mapping.items():
        for key, value in level.items():
            assert apply("Fn::FindInMap", mapping, top, key) == value
