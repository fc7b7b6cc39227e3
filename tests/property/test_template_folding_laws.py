"""Folding: what is known early and what is known late must give the same."""

import itertools
import json

from harness.trees import Answers, outcome, planted, trees_of
from hypothesis import given, settings
from hypothesis import strategies as st
from stoker.template.budget import Budget
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.functions.table import APPLY, VERSIONS
from stoker.template.residual import evaluate, is_deferred, partial, plain, quote

WALLABY = VERSIONS["wallaby"]
SECRET = "hush-hush"
texts = st.sampled_from(["", "a", "b", "ab", "a,b", "%", "web", "0", "$fn"])
scalars = st.none() | st.booleans() | st.integers(-2, 3) | texts
keys = st.sampled_from(["a", "b", "%", "$fn", "args", "keys"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def lists(inner):
    return st.lists(inner, max_size=3)


def function_call(name, argument):
    return argument.map(lambda value: {name: value})


def functions(inner):
    """Calls that are mostly right, of arguments that are not always."""
    many = lists(inner) | inner
    maps = st.dictionaries(keys, inner, max_size=2) | inner
    words = st.dictionaries(st.sampled_from(["a", "ab", "%"]), inner, max_size=2) | inner
    replace = st.fixed_dictionaries({"template": inner, "params": words})
    loops = st.dictionaries(st.sampled_from(["%", "a"]), many, min_size=1, max_size=2)
    return st.one_of(
        function_call("list_join", st.tuples(texts, many, many).map(list)),
        function_call("str_replace", replace),
        function_call("str_replace_strict", replace),
        function_call("str_split", st.tuples(texts, inner, st.integers(-1, 2)).map(list)),
        function_call("digest", st.tuples(st.just("md5"), inner).map(list)),
        function_call("map_merge", lists(maps)),
        function_call(
            "map_replace", st.tuples(maps, st.fixed_dictionaries({"keys": maps, "values": maps})).map(list)
        ),
        function_call("filter", st.tuples(many, many).map(list)),
        function_call("list_concat", lists(many)),
        function_call("list_concat_unique", lists(many)),
        function_call("contains", st.tuples(inner, many).map(list)),
        function_call("repeat", st.fixed_dictionaries({"template": inner, "for_each": loops})),
        function_call("if", st.tuples(st.booleans(), inner, inner).map(list)),
        function_call("if", st.tuples(st.booleans(), inner).map(list)),
        lists(inner),
        st.dictionaries(keys, inner, max_size=2),
    )


trees = trees_of(functions)


def folded(tree, value, *, hidden=False):
    template = {
        "heat_template_version": "wallaby",
        "parameters": {"p": {"type": "json", "hidden": hidden, "default": {"v": value}}},
        "resources": {"r": {"type": "X"}},
        "outputs": {"o": {"value": tree}},
    }
    identity = Identity("s", "i", "p")
    source = Source(template)
    compiled = compile_template(source, identity=identity, limits=Limits(), seal=lambda value: "token")
    return compiled.outputs["o"].value


@settings(max_examples=250, deadline=None)
@given(trees, values)
def test_early_and_late_values_give_the_same(tree, value):
    early = outcome(lambda: plain(folded(planted(tree, {"get_param": ["p", "v"]}), value)))
    late = planted(tree, {"get_attr": ["r", "x"]})
    assert outcome(lambda: evaluate(folded(late, value), Answers(value))) == early
    assert outcome(lambda: evaluate(partial(folded(late, value), Answers(value)), Answers(value))) == early


@settings(max_examples=120, deadline=None)
@given(trees, values)
def test_secrets_give_the_same_values_and_are_in_nothing_that_is_stored(tree, value):
    value = {"secret": SECRET, "value": value}
    path = ["p", "v", "value"]
    early = outcome(lambda: plain(folded(planted(tree, {"get_param": path}), value)))

    def unsealed(*steps):
        residual = folded(planted(tree, {"get_param": path}), value, hidden=True)
        for step in steps:
            residual = step(residual, Answers({"v": value}))
        assert SECRET not in json.dumps(residual)
        return evaluate(residual, Answers({"v": value}))

    assert outcome(unsealed) == early
    assert outcome(lambda: unsealed(partial)) == early


@settings(deadline=None)
@given(values)
def test_a_value_stays_itself_as_a_part_of_a_residual(value):
    quoted = quote(value)
    assert not is_deferred(quoted)
    assert plain(quoted) == value
    assert evaluate(quoted, Answers(None)) == value
    assert evaluate(partial(quoted, Answers(None)), Answers(None)) == value
    assert json.loads(json.dumps(quoted)) == quoted


def marked(text, words):
    """Twin of str_replace: characters that a value has taken are marked, so that no word finds them again."""
    cells = [(letter, None) for letter in text]
    for word in sorted(sorted(words), key=len, reverse=True):
        index = 0
        while index <= len(cells) - len(word):
            part = cells[index : index + len(word)]
            if (
                all(inserted is None for _, inserted in part)
                and "".join(letter for letter, _ in part) == word
            ):
                cells[index : index + len(word)] = [("", words[word])]
            index += 1
    return "".join(letter if inserted is None else inserted for letter, inserted in cells)


short = st.text("abc", max_size=8)


@settings(deadline=None)
@given(short, st.dictionaries(st.text("abc", min_size=1, max_size=3), short, max_size=4))
def test_str_replace_is_its_twin(text, words):
    assert APPLY["str_replace"]({"template": text, "params": words}, WALLABY, Budget()) == marked(text, words)


@settings(deadline=None)
@given(
    st.lists(short, max_size=3),
    st.lists(short, max_size=3),
    st.booleans(),
    st.recursive(st.text("xy-", max_size=4), lambda inner: st.lists(inner, max_size=2), max_leaves=4),
)
def test_repeat_is_its_twin(first, second, permutations, template):
    def put(tree, x, y):
        if isinstance(tree, list):
            return [put(item, x, y) for item in tree]
        return tree.replace("x", x).replace("y", y)

    args = {"template": template, "for_each": {"x": first, "y": second}, "permutations": permutations}
    if not permutations and len(first) != len(second):
        assert outcome(lambda: APPLY["repeat"](args, WALLABY, Budget())) == "refused"
        return
    pairs = itertools.product(first, second) if permutations else zip(first, second, strict=True)
    assert APPLY["repeat"](args, WALLABY, Budget()) == [put(template, x, y) for x, y in pairs]


@settings(deadline=None)
@given(st.lists(st.lists(values, max_size=4), max_size=3))
def test_list_concat_unique_is_its_twin(lists_of_values):
    unique = []
    for item in itertools.chain.from_iterable(lists_of_values):
        if item not in unique:
            unique.append(item)
    assert APPLY["list_concat_unique"](lists_of_values, WALLABY, Budget()) == unique
