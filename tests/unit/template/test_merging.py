"""Merging of several environment files, by the rules of Heat's environment_util."""

import json

import pytest
from stoker.template.errors import TemplateError
from stoker.template.functions.table import VERSIONS
from stoker.template.merging import Named, merge_environments, parameter_names
from stoker.template.parameters import parse_declarations

DECLARATIONS = parse_declarations(
    {
        "text": {"type": "string"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "comma_delimited_list"},
        "map": {"type": "json"},
    },
    VERSIONS["wallaby"],
)


def merged(*documents, environment=None):
    files = {f"env{index}.yaml": json.dumps(document) for index, document in enumerate(documents)}
    return merge_environments(Named(files, list(files)), environment, DECLARATIONS)


def values(strategy, name, *merged_values, section="parameters"):
    documents = [{section: {name: value}} for value in merged_values]
    documents[0]["parameter_merge_strategies"] = {name: strategy}
    return merged(*documents)[section][name]


def failure(*documents):
    with pytest.raises(TemplateError) as caught:
        merged(*documents)
    return str(caught.value)


def test_without_files_the_environment_of_the_request_counts():
    assert merged(environment={"parameters": {"a": 1}}) == {"parameters": {"a": 1}}
    assert merged() == {}


def test_files_replace_the_environment_of_the_request():
    assert merged({"parameters": {"a": 1}}, environment={"parameters": {"b": 2}}) == {"parameters": {"a": 1}}


def test_a_later_file_overwrites_an_earlier_one_and_null_counts_as_absent():
    first = {"parameters": {"text": "a", "map": {"x": 1}, "list": "1"}}
    second = {"parameters": {"text": "b", "map": {"y": 2}, "list": None}}
    assert merged(first, second)["parameters"] == {"text": "b", "map": {"y": 2}, "list": "1"}


@pytest.mark.parametrize("section", ["parameters", "parameter_defaults"])
@pytest.mark.parametrize(
    ("strategy", "name", "merged_values", "value"),
    [
        ("overwrite", "text", ["a", "b", "c"], "c"),
        ("merge", "text", ["a", "b", "c"], "abc"),
        ("deep_merge", "text", ["a", "b"], "ab"),
        ("merge", "list", ["a,b", "c"], "a,b,c"),
        ("merge", "list", ["a", ""], "a"),
        ("merge", "list", [["a"], ["b", "a"]], ["a", "b", "a"]),
        ("merge", "list", ["a,b", ["c"]], ["a", "b", "c"]),
        ("merge", "map", [{"a": 1, "b": {"c": 1}}, {"b": {"d": 2}, "a": None}], {"a": 1, "b": {"d": 2}}),
        ("merge", "map", ['{"a": 1}', '{"b": 2}'], {"a": 1, "b": 2}),
        ("merge", "map", [[1], [2]], [1, 2]),
        (
            "deep_merge",
            "map",
            [{"b": {"c": 1, "l": [1]}}, {"b": {"d": 2, "l": [2]}}],
            {"b": {"c": 1, "l": [1, 2], "d": 2}},
        ),
        (
            "deep_merge",
            "map",
            [{"s": "a", "n": 1, "m": {}}, {"s": "b", "n": 2, "m": 3}],
            {"s": "ab", "n": 2, "m": 3},
        ),
        ("deep_merge", "map", [{"b": {"c": 1}}, {"b": {"c": None}}], {"b": {"c": 1}}),
        ("merge", "number", [7], 7),
        ("merge", "elsewhere", [["a"], ["b"]], ["a", "b"]),
        ("merge", "elsewhere", ["a", "b"], "ab"),
        ("deep_merge", "elsewhere", [{"a": {"b": 1}}, {"a": {"c": 2}}], {"a": {"b": 1, "c": 2}}),
    ],
)
def test_merge_strategies(section, strategy, name, merged_values, value):
    assert values(strategy, name, *merged_values, section=section) == value


def test_the_strategy_of_the_first_file_with_a_parameter_holds_for_all():
    strategies = {"parameter_merge_strategies": {"text": "merge"}}
    texts = [{"parameters": {"text": text}} for text in "abc"]
    assert merged({**texts[0], **strategies}, *texts[1:])["parameters"]["text"] == "abc"
    assert merged({**texts[0], **strategies}, {**texts[1], **strategies})["parameters"]["text"] == "ab"


def test_the_default_strategy_is_for_those_without_one():
    strategies = {"default": "merge", "list": "overwrite"}
    first = {"parameter_merge_strategies": strategies, "parameters": {"text": "a", "list": "1"}}
    second = {"parameters": {"text": "b", "list": "2"}}
    assert merged(first, second)["parameters"] == {"text": "ab", "list": "2"}


def test_strategies_that_contradict_each_other_are_refused():
    first = {"parameter_merge_strategies": {"text": "merge"}, "parameters": {"text": "a"}}
    second = {"parameter_merge_strategies": {"text": "deep_merge"}, "parameters": {"text": "b"}}
    text = (
        "env1.yaml.parameters.text: the merge strategy deep_merge is in conflict with merge of a file before"
    )
    assert failure(first, second).startswith(text)


@pytest.mark.parametrize(
    ("name", "merged_values", "words"),
    [
        ("number", [1, 2], "a value of type number cannot be merged; its strategy must be overwrite"),
        ("flag", [True, False], "a value of type boolean cannot be merged; its strategy must be overwrite"),
        ("text", ["a", 1], "only strings can be merged to a string"),
        ("list", ["a", {"b": 1}], "cannot be merged: a value is not a comma_delimited_list"),
        ("map", [{"a": 1}, "{"], "cannot be merged: a value is not a json"),
        ("map", [{"a": 1}, ["b"]], "a map and a list cannot be merged"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_file_and_parameter(name, merged_values, words):
    with pytest.raises(TemplateError) as caught:
        values("merge", name, *merged_values)
    assert str(caught.value) == f"env1.yaml.parameters.{name}: {words}"


def test_an_error_of_merging_does_not_contain_the_values():
    with pytest.raises(TemplateError) as caught:
        values("merge", "map", "hush {", "hush }")
    error = caught.value
    assert "hush" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            {"parameter_merge_strategies": {"text": "append"}},
            'parameter_merge_strategies.text: must be one of: overwrite, merge, deep_merge; not "append"',
        ),
        (
            {"paramters": {}},
            'env0.yaml: "paramters" is not a section of an environment; did you mean "parameters"?',
        ),
        ({"resource_registry": {"A": 1}}, "env0.yaml.resource_registry.A: must be the name of a type"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(document, words):
    assert words in failure(document)
    assert failure(document).startswith("env0.yaml")


def test_a_file_that_was_not_sent_is_named():
    with pytest.raises(
        TemplateError, match=r'^environment_files: the environment file "b.yaml" is not among'
    ):
        merge_environments(Named({"a.yaml": "{}"}, ["b.yaml"]), None, DECLARATIONS)


def test_what_is_no_yaml_is_named_with_its_line():
    with pytest.raises(TemplateError, match=r'environment file "a.yaml" is not valid YAML in line 2'):
        merge_environments(Named({"a.yaml": "parameters:\n\t- x"}, ["a.yaml"]), None, DECLARATIONS)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n# nothing\n", "{}"])
def test_a_file_with_nothing_in_it_changes_nothing(text):
    files = {"a.yaml": "parameters: {text: a}", "b.yaml": text}
    environment = merge_environments(Named(files, list(files)), None, DECLARATIONS)
    assert environment == {"parameters": {"text": "a"}}


def test_registries_are_laid_over_each_other():
    first = {
        "resource_registry": {
            "A": "a",
            "B": "b",
            "resources": {"r": {"hooks": "pre-create"}, "s": {"X": "x"}},
        }
    }
    second = {"resource_registry": {"A": "c", "resources": {"r": {"hooks": "pre-update", "Y": "y"}}}}
    resource_registry = merged(first, second)["resource_registry"]
    assert resource_registry == {
        "A": "c",
        "B": "b",
        "resources": {"r": {"hooks": "pre-update", "Y": "y"}, "s": {"X": "x"}},
    }
    # What was replaced is last: a null with a wildcard removes only what is before it.
    assert list(resource_registry) == ["B", "A", "resources"]


def test_event_sinks_of_all_files_count():
    sinks = [{"type": "zaqar-queue", "target": str(number)} for number in range(3)]
    environment = merged({"event_sinks": sinks[:1]}, {"event_sinks": sinks[1:]}, {"event_sinks": None})
    assert environment["event_sinks"] == sinks


def test_an_environment_goes_over_one_that_exists_but_not_over_files_of_the_client() -> None:
    files = {"old": json.dumps({"parameters": {"a": 1, "b": 1}}), "new": json.dumps({"parameters": {"a": 2}})}
    environment = {"parameters": {"a": 3, "c": None}}
    environment_alone = merge_environments(Named(files, ["old"], base="old"), environment, {})
    assert environment_alone["parameters"] == {"a": 3, "b": 1}
    sent = merge_environments(Named(files, ["old", "new"], base="old"), environment, {})
    assert sent["parameters"] == {"a": 2, "b": 1}
    assert parameter_names(Named(files, ["new"]), {"parameters": {"b": 1, "c": None}}) == {"a", "b"}
