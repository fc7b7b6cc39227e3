"""Merging environments: which files are merged first makes no difference, as long as their order stays."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from stoker.template.functions.table import VERSIONS
from stoker.template.merging import Named, merge_environments
from stoker.template.parameters import parse_declarations

KINDS = {"text": "string", "list": "comma_delimited_list", "map": "json"}
DECLARATIONS = parse_declarations({name: {"type": kind} for name, kind in KINDS.items()}, VERSIONS["wallaby"])

words = st.text("ab", max_size=3)
# Each key holds values of one type: Heat too appends only what is of the same type.
maps = st.fixed_dictionaries(
    {},
    optional={
        "s": st.none() | words,
        "n": st.none() | st.integers(0, 3),
        "l": st.none() | st.lists(words, max_size=2),
        "m": st.none() | st.dictionaries(st.sampled_from("xy"), words, max_size=2),
    },
)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | words,
        "list": st.none() | st.lists(words, max_size=3),
        "map": st.none() | maps,
        "elsewhere": st.none() | words,
    },
)
registries = st.dictionaries(st.sampled_from(["A", "B", "C"]), st.sampled_from(["X", "Y.yaml"]), max_size=3)
documents = st.fixed_dictionaries(
    {},
    optional={
        "parameters": parameters,
        "parameter_defaults": parameters,
        "resource_registry": registries,
        "event_sinks": st.lists(st.just({"type": "zaqar-queue", "target": "t"}), max_size=2),
    },
)
strategies = st.fixed_dictionaries(
    {"default": st.sampled_from(["overwrite", "merge", "deep_merge"])},
    optional={"map": st.sampled_from(["overwrite", "merge", "deep_merge"])},
)


def merged(chosen, *files):
    """The documents merged, each with the same strategies, and without what says nothing."""
    texts = {
        str(n): json.dumps({**file, "parameter_merge_strategies": chosen}) for n, file in enumerate(files)
    }
    environment = merge_environments(Named(texts, list(texts)), None, DECLARATIONS)
    return {section: body for section, body in environment.items() if body}


@settings(deadline=None)
@given(strategies, documents, documents, documents)
def test_merging_is_associative(chosen, first, second, third):
    at_once = merged(chosen, first, second, third)
    assert merged(chosen, merged(chosen, first, second), third) == at_once
    assert merged(chosen, first, merged(chosen, second, third)) == at_once


@settings(deadline=None)
@given(strategies, documents)
def test_an_empty_file_changes_nothing(chosen, document):
    assert merged(chosen, document, {}) == merged(chosen, document) == merged(chosen, {}, document)


@settings(deadline=None)
@given(documents, documents)
def test_overwriting_is_the_union_in_which_later_ones_win(first, second):
    environment = merged({"default": "overwrite"}, first, second)
    for section in ("parameters", "parameter_defaults", "resource_registry"):
        given_values = [file.get(section) or {} for file in (first, second)]
        union = {key: value for body in given_values for key, value in body.items() if value is not None}
        assert environment.get(section, {}) == union
