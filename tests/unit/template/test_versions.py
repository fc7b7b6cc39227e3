"""Sections and functions of each version of HOT.

The tables are Heat's (heat/engine/hot/template.py and its setup.cfg).
"""

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.errors import InvalidTemplateVersion, TemplateError
from stoker.template.functions import table
from stoker.template.functions.table import VERSIONS
from stoker.template.language import HOT_KEY as VERSION_KEY
from stoker.template.versions import find_version, list_functions, list_versions

CFN = "2012-12-12"
AWS = "2010-09-09"
OLD = {"Ref", "Fn::GetAZs", "Fn::Join", "Fn::Split", "Fn::Replace", "Fn::Base64", "Fn::MemberListToMap"}
OLD |= {"Fn::ResourceFacade", "Fn::Select"}
CFN_BASE = {*OLD, "Fn::FindInMap", "Fn::GetAtt"}
BASE = {"get_param", "get_resource", "get_attr", "get_file", "list_join", "str_replace", "resource_facade"}
LIBERTY = {*BASE, "repeat", "digest", "str_split"}
NEWTON = {*LIBERTY, "map_merge", "yaql", "map_replace", "if"}
OCATA = {*NEWTON, "filter", "str_replace_strict"}
PIKE = {*OCATA, "make_url", "list_concat", "list_concat_unique", "str_replace_vstrict", "contains"}
FUNCTIONS = {
    "2013-05-23": {*BASE, *OLD},
    "2014-10-16": {*BASE, "Fn::Select"},
    "2015-04-30": {*BASE, "Fn::Select", "repeat", "digest"},
    "2015-10-15": LIBERTY,
    "2016-04-08": {*LIBERTY, "map_merge"},
    "2016-10-14": NEWTON,
    "2017-02-24": OCATA,
    "2017-09-01": PIKE,
    "2018-03-02": PIKE,
    "2018-08-31": PIKE,
    "2021-04-16": PIKE,
}
LOGIC = {"get_param", "equals", "not", "and", "or"}
CONDITIONS = {date: set() for date in FUNCTIONS if date < "2016-10-14"}
CONDITIONS |= dict.fromkeys(("2016-10-14", "2017-02-24"), LOGIC)
CONDITIONS |= {date: {*LOGIC, "yaql", "contains"} for date in FUNCTIONS if date >= "2017-09-01"}
ALIASES = {
    "newton": "2016-10-14",
    "ocata": "2017-02-24",
    "pike": "2017-09-01",
    "queens": "2018-03-02",
    "rocky": "2018-08-31",
    "wallaby": "2021-04-16",
}


def compiled(version, value, **sections):
    template = {VERSION_KEY: version, "outputs": {"out": {"value": value}}, **sections}
    identity = Identity("stack", "id", "project")
    return compile_template(Source(template), identity=identity, limits=Limits(), seal=str)


def out(version, value, **sections):
    return compiled(version, value, **sections).outputs["out"].value


def test_every_version_of_heat_is_known_and_no_other():
    assert set(VERSIONS) == {*FUNCTIONS, *ALIASES, CFN, AWS}


@pytest.mark.parametrize(
    ("key", "date", "functions", "conditions"),
    [
        ("HeatTemplateFormatVersion", CFN, CFN_BASE, set()),
        (
            "AWSTemplateFormatVersion",
            AWS,
            {*CFN_BASE, "Fn::If"},
            {"Fn::Equals", "Ref", "Fn::FindInMap", "Fn::Not", "Fn::And", "Fn::Or"},
        ),
    ],
)
def test_the_functions_of_cloudformations_format_are_heats(key, date, functions, conditions):
    version = find_version({key: date})
    assert (version.functions, version.condition_functions) == (functions, conditions)
    assert {row["functions"] for row in list_functions(f"{key}.{date}")} == functions
    both = list_functions(f"{key}.{date}", conditions=True)
    assert {row["functions"] for row in both} == functions | conditions
    assert all(row["description"] for row in both)


@pytest.mark.parametrize(
    "template",
    [
        {VERSION_KEY: AWS},
        {"AWSTemplateFormatVersion": CFN},
        {"HeatTemplateFormatVersion": AWS},
        {"AWSTemplateFormatVersion": "2013-05-23"},
        {"AWSTemplateFormatVersion": AWS, VERSION_KEY: "2013-05-23"},
    ],
)
def test_each_format_has_its_own_versions(template):
    with pytest.raises(InvalidTemplateVersion):
        find_version(template)


@pytest.mark.parametrize("date", FUNCTIONS)
def test_the_functions_of_a_version_are_heats(date):
    assert VERSIONS[date].functions == FUNCTIONS[date]
    assert VERSIONS[date].condition_functions == CONDITIONS[date]
    assert [row["functions"] for row in list_functions(date)] == sorted(FUNCTIONS[date])
    both = list_functions(f"{VERSION_KEY}.{date}", conditions=True)
    assert [row["functions"] for row in both] == sorted(FUNCTIONS[date] | CONDITIONS[date])
    assert all(row["description"] == table.FUNCTIONS[row["functions"]].description for row in both)


@pytest.mark.parametrize(("alias", "date"), ALIASES.items())
def test_a_release_name_means_its_date(alias, date):
    assert find_version({VERSION_KEY: alias}) is VERSIONS[date]
    assert compiled(alias, 1).version == date


def test_versions_are_listed_oldest_first_with_their_aliases():
    listed = list_versions()
    assert listed[:2] == [
        {"version": f"AWSTemplateFormatVersion.{AWS}", "type": "cfn", "aliases": []},
        {"version": f"HeatTemplateFormatVersion.{CFN}", "type": "cfn", "aliases": []},
    ]
    assert [row["version"] for row in listed[2:]] == [f"{VERSION_KEY}.{date}" for date in FUNCTIONS]
    assert listed[2]["aliases"] == []
    assert listed[-1] == {
        "version": f"{VERSION_KEY}.2021-04-16",
        "type": "hot",
        "aliases": [f"{VERSION_KEY}.wallaby"],
    }


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({}, ["no heat_template_version", "2013-05-23", "wallaby"]),
        ({VERSION_KEY: "2013-05-24"}, ['"heat_template_version" should', '"2013-05-24"', "2013-05-23"]),
        ({VERSION_KEY: None}, ['"null"', "2013-05-23"]),
        ({"AWSTemplateFormatVersion": "2010-09-10"}, ['"AWSTemplateFormatVersion" should', "be 2010-09-09"]),
        ({"HeatTemplateFormatVersion": "2012"}, ['"HeatTemplateFormatVersion" should', "be 2012-12-12"]),
    ],
)
def test_an_unknown_version_is_refused_with_the_known_ones(template, words):
    with pytest.raises(InvalidTemplateVersion) as caught:
        find_version(template)
    assert all(word in str(caught.value) for word in words)


CALLS = {
    "repeat": {"for_each": {"x": ["a"]}, "template": "x"},
    "digest": ["md5", "x"],
    "str_split": [",", "a,b"],
    "map_merge": [{"a": 1}],
    "yaql": {"expression": "$.data"},
    "map_replace": [{"a": 1}, {}],
    "if": ["c", 1, 2],
    "filter": [["a"], ["a"]],
    "str_replace_strict": {"template": "x", "params": {"x": "y"}},
    "make_url": {"host": "x"},
    "list_concat": [["a"]],
    "list_concat_unique": [["a"]],
    "str_replace_vstrict": {"template": "x", "params": {"x": "y"}},
    "contains": ["a", ["a"]],
}
TOO_EARLY = [(date, name) for date, functions in FUNCTIONS.items() for name in CALLS if name not in functions]
TOO_LATE = [(date, name) for date, functions in FUNCTIONS.items() for name in OLD if name not in functions]


def test_a_function_of_a_later_version_is_refused_with_the_version_that_has_it(subtests):
    for date, name in TOO_EARLY:
        first = min(version for version, functions in FUNCTIONS.items() if name in functions)
        with subtests.test(name, date=date):
            with pytest.raises(InvalidTemplateVersion) as caught:
                out(date, {"deep": [{name: CALLS[name]}]})
            assert str(caught.value).startswith("outputs.out.value.deep.0: ")
            assert f'"{name}" needs version {first} or later' in str(caught.value)
            assert date in str(caught.value)


def test_all_calls_of_the_table_are_right_where_the_function_exists():
    for name, argument in CALLS.items():
        assert out("2021-04-16", {name: argument}, conditions={"c": True}) != {name: argument}


@pytest.mark.parametrize(
    "tree",
    [{"filter": "*.log"}, {"repeat": 3}, {"digest": "abc"}, {"if": "x"}, {"contains": ["a"]}, {"yaql": {}}],
)
def test_a_word_that_is_a_function_later_is_a_key_where_it_has_not_its_form(tree):
    assert out("2013-05-23", tree) == tree


def test_functions_of_cloudformation_are_refused_where_hot_has_them_no_more(subtests):
    for date, name in TOO_LATE:
        with subtests.test(name, date=date):
            with pytest.raises(InvalidTemplateVersion) as caught:
                out(date, [{name: "x"}])
            place = f'outputs.out.value.0: the function "{name}"'
            assert str(caught.value).startswith(
                f"{place} is not in version {date} of HOT, only in older ones; "
            )


@pytest.mark.parametrize("name", ["Ref", "Fn::Join"])
def test_functions_of_cloudformation_are_refused_in_conditions(name):
    with pytest.raises(InvalidTemplateVersion) as caught:
        out("2021-04-16", 1, conditions={"c": {"equals": [{name: "x"}, 1]}})
    assert str(caught.value).startswith("conditions.c.equals.0: ")


@pytest.mark.parametrize("name", ["contains", "yaql"])
def test_a_condition_function_of_a_later_version_is_refused(name):
    with pytest.raises(InvalidTemplateVersion) as caught:
        out("2016-10-14", 1, conditions={"c": {name: CALLS[name]}})
    assert str(caught.value).startswith(f'conditions.c: the function "{name}" needs version 2017-09-01')


@pytest.mark.parametrize("name", ["get_resource", "get_attr", "list_join", "if", "filter"])
def test_functions_that_conditions_cannot_use_are_refused(name):
    with pytest.raises(TemplateError) as caught:
        out("2021-04-16", 1, conditions={"c": {"equals": [{name: ["a", ["b"]]}, 1]}})
    assert str(caught.value).startswith(f'conditions.c.equals.0: the function "{name}" cannot be used in')
    assert "and, contains, equals, get_param, not, or, yaql" in str(caught.value)


RESOURCE = {"type": "OS::Heat::None"}
NEEDS_NEWTON = [
    {"conditions": {}},
    {"resources": {"r": {**RESOURCE, "condition": True}}},
    {"resources": {"r": {**RESOURCE, "external_id": "x"}}},
    {"resources": {"r": {**RESOURCE, "deletion_policy": "retain"}}},
    {"outputs": {"o": {"value": 1, "condition": True}}},
]


@pytest.mark.parametrize("sections", NEEDS_NEWTON)
def test_sections_and_keys_of_2016_10_14(sections):
    for date in FUNCTIONS:
        if date >= "2016-10-14":
            assert compiled(date, 1, **sections)
        else:
            with pytest.raises(
                TemplateError, match=r'2016-10-14|"retain": it must be one of: Delete, Retain, Snapshot$'
            ):
                compiled(date, 1, **sections)


@pytest.mark.parametrize(
    ("since", "parameter"),
    [
        ("2018-03-02", {"type": "string", "default": "", "tags": ["a"]}),
        (
            "2017-02-24",
            {"type": "number", "default": 4, "constraints": [{"modulo": {"step": 2, "offset": 0}}]},
        ),
    ],
)
def test_keys_of_parameters_by_version(since, parameter):
    for date in FUNCTIONS:
        if date >= since:
            assert compiled(date, 1, parameters={"p": parameter})
        else:
            with pytest.raises(TemplateError, match=r"parameters\.p"):
                compiled(date, 1, parameters={"p": parameter})


MEANINGS = [
    ("2015-10-15", {"list_join": [",", ["a"], ["b"]]}, "a,b"),
    ("2015-10-15", {"list_join": [",", [{"a": 1}]]}, '{"a": 1}'),
    ("2015-10-15", {"str_replace": {"template": "x", "params": {"x": [1]}}}, "[1]"),
    ("2016-10-14", {"repeat": {"for_each": {"x": {"k": 1}}, "template": "x"}}, ["k"]),
    ("2021-04-16", [1, {"if": [False, 2]}], [1]),
]


@pytest.mark.parametrize(("since", "tree", "value"), MEANINGS)
def test_functions_grow_with_the_versions(since, tree, value):
    name = next(iter(tree)) if isinstance(tree, dict) else "if"
    for date in FUNCTIONS:
        if date >= since:
            assert out(date, tree) == value
        elif name in FUNCTIONS[date]:
            with pytest.raises(TemplateError, match=rf"^outputs\.out\.value\.(1\.)?{name}"):
                out(date, tree)


def test_repeat_goes_side_by_side_only_since_2017_09_01():
    tree = {
        "repeat": {"for_each": {"x": ["1", "2"], "y": ["a", "b"]}, "template": "xy", "permutations": False}
    }
    assert out("2017-09-01", tree) == ["1a", "2b"]
    # As in Heat keys that a version does not know are passed over.
    assert out("2017-02-24", tree) == ["1a", "1b", "2a", "2b"]
