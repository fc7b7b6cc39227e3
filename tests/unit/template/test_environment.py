"""Environments: their sections, and what the registry says of types and single resources."""

import random

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.environment import (
    as_document,
    map_type,
    nested_environment,
    parse_environment,
    settings_for,
)
from stoker.template.errors import TemplateError
from stoker.template.language import TEMPLATE, ResourceSettings, is_template_name
from stoker.template.resource_settings import HOOKS


def registry(**entries):
    return parse_environment({"resource_registry": entries})


def of_resources(resources):
    return parse_environment({"resource_registry": {"resources": resources}})


@pytest.mark.parametrize(
    "document", [None, {}, {"parameters": None, "resource_registry": None, "event_sinks": None}]
)
def test_an_empty_environment_has_no_content(document):
    environment = parse_environment(document)
    assert as_document(environment) == {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {"resources": {}},
        "event_sinks": [],
        "encrypted_param_names": [],
    }
    assert settings_for(environment, ["r"]) == ResourceSettings()
    assert map_type(environment, ["r"], "OS::Nova::Server").name == "OS::Nova::Server"


def test_what_is_shown_can_be_read_again():
    document = {
        "parameters": {"a": 1},
        "parameter_defaults": {"b": [2]},
        "resource_registry": {"A": "b.yaml", "resources": {"r": {"hooks": "pre-create"}}},
        "event_sinks": [{"type": "zaqar-queue", "target": "q"}],
        "encrypted_param_names": ["a"],
    }
    assert as_document(parse_environment(document)) == document
    assert parse_environment(as_document(parse_environment(document))) == parse_environment(document)


REGISTRY = "environment.resource_registry"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "environment: must be a map, not a list"),
        (
            {"paramters": {}},
            'environment: "paramters" is not a section of an environment; did you mean "parameters"?',
        ),
        ({"parameters": ["a"]}, "environment.parameters: must be a map, not a list"),
        ({"parameter_defaults": "a"}, "environment.parameter_defaults: must be a map, not a string"),
        ({"parameter_merge_strategies": "merge"}, "environment.parameter_merge_strategies: must be a map"),
        ({"event_sinks": {}}, "environment.event_sinks: must be a list, not a map"),
        ({"event_sinks": [{"target": "q"}]}, "environment.event_sinks.0: must be a map with a type"),
        ({"encrypted_param_names": [1]}, "environment.encrypted_param_names: must be a list of names"),
        ({"resource_registry": "x.yaml"}, f"{REGISTRY}: must be a map, not a string"),
        (
            {"resource_registry": {"A": 1}},
            f"{REGISTRY}.A: must be the name of a type or of a template, not 1",
        ),
        ({"resource_registry": {"resources": {"r": "x"}}}, f'{REGISTRY}.resources.r: must be a map, not "x"'),
        (
            {"resource_registry": {"resources": {"r": {"hooks": "pre-creat"}}}},
            f'Invalid hook type "pre-creat" for resource breakpoint, acceptable hook types are: {HOOKS[0]}, ',
        ),
        (
            {"resource_registry": {"resources": {"r": {"hooks": ["pre-create", {}]}}}},
            'Invalid hook type "{}" for resource breakpoint, ',
        ),
        (
            {"resource_registry": {"resources": {"r": {"restricted_actions": "delete"}}}},
            'Invalid restricted_action type "delete" for resource, acceptable restricted_action types are',
        ),
        (
            {"resource_registry": {"resources": {"a": {"b": {"timeout": 0}}}}},
            f"{REGISTRY}.resources.a.b.timeout: must be a number of seconds above 0, not 0",
        ),
        (
            {"resource_registry": {"resources": {"a": {"stoker": {"drift": {"heall": True}}}}}},
            f'{REGISTRY}.resources.a.stoker.drift: "heall" is not one of: heal, allow_replace, ignore'
            '; did you mean "heal"?',
        ),
        (
            {"resource_registry": {"resources": {"a": {"stoker": {"drift": {"ignore": "tags"}}}}}},
            f"{REGISTRY}.resources.a.stoker.drift.ignore: must be a list of names of properties, "
            'such as [tags]; not "tags"',
        ),
        (
            {"resource_registry": {"resources": {"a": {"stoker": {"drift": {"heal": "yes"}}}}}},
            f'{REGISTRY}.resources.a.stoker.drift.heal: must be true or false, not "yes"',
        ),
        (
            {"resource_registry": {"resources": {"a": {"retries": -1}}}},
            f"{REGISTRY}.resources.a.retries: must be a whole number, 0 or more, not -1",
        ),
        (
            {"resource_registry": {"resources": {"a": {"OS::X": 1}}}},
            f"{REGISTRY}.resources.a.OS::X: must be the name of a type, a map, or one of: hooks,",
        ),
    ],
)
def test_a_wrong_environment_is_refused_with_its_place(document, words):
    with pytest.raises(TemplateError) as caught:
        parse_environment(document)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("entries", "type_name", "mapped_name"),
    [
        ({"A": "B"}, "A", "B"),
        ({"A": "B", "B": "C"}, "A", "C"),
        ({"A": "my.yaml", "my.yaml": "other.yaml"}, "A", "my.yaml"),
        ({"A": "http://x/t.template"}, "A", "http://x/t.template"),
        ({"OS::Net::*": "OS::Neutron::*"}, "OS::Net::Port", "OS::Neutron::Port"),
        ({"OS::*": "OS::Heat::None"}, "OS::Nova::Server", "OS::Heat::None"),
        ({"OS::*": "OS::Heat::None"}, "OS::Heat::None", "OS::Heat::None"),
        ({"OS::*": "X", "OS::Nova::*": "Y"}, "OS::Nova::Server", "Y"),
        ({"OS::*": "X", "OS::Nova::Server": "Z"}, "OS::Nova::Server", "Z"),
        ({"A": "A"}, "A", "A"),
        ({"A": "B", "B": "A"}, "A", "A"),
        ({"A": None}, "A", "A"),
        ({"A": "B"}, "AA", "AA"),
    ],
)
def test_what_a_type_means(entries, type_name, mapped_name):
    assert map_type(registry(**entries), ["r"], type_name).name == mapped_name


def test_a_mapping_without_end_is_refused():
    with pytest.raises(
        TemplateError, match=r"^environment\.resource_registry: the mapping of the type \"A\""
    ):
        map_type(registry(**{"A*": "AA*"}), ["r"], "A")


@pytest.mark.parametrize(
    ("entries", "mapped_name"),
    [
        ({"A1": "B", "A*": None}, "A1"),
        ({"A*": None, "A1": "B"}, "B"),
        ({"A1": "B", "A1x": "C", "A1*": None}, "A1"),
        ({"A1": "B", "B*": None}, "B"),
    ],
)
def test_null_with_a_wildcard_removes_earlier_mappings(entries, mapped_name):
    assert map_type(registry(**entries), ["r"], "A1").name == mapped_name


def test_removals_leave_what_they_leave_one_by_one():
    chosen = random.Random(7)
    for _ in range(500):
        count = chosen.randrange(1, 12)
        names = ["".join(chosen.choices("ab*", k=chosen.randrange(1, 4))) for _ in range(count)]
        entries = {name: chosen.choice(["c", None]) for name in names}
        remaining = {}
        for name, target in entries.items():
            if target is not None:
                remaining[name] = target
            elif name.endswith("*"):
                remaining = {key: to for key, to in remaining.items() if not key.startswith(name[:-1])}
        assert list(registry(**entries).registry.items()) == list(remaining.items()), entries


def test_a_mapping_for_one_resource_wins_over_the_general_one():
    env = registry(A="general.yaml", resources={"r": {"A": "B"}, "s*": {"A": "C"}, "s1": {"A": "D"}})
    names = ("r", "s2", "s1", "other")
    assert [map_type(env, [name], "A").name for name in names] == ["B", "C", "D", "general.yaml"]


def test_a_mapping_for_a_nested_resource_needs_its_whole_path():
    env = registry(resources={"group": {"member": {"A": "B"}}})
    assert map_type(env, ["group", "member"], "A").name == "B"
    assert map_type(env, ["member"], "A").name == "A"
    assert map_type(env, ["group"], "A").name == "A"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a.yaml", True), ("http://x/a.template", True), ("OS::Nova::Server", False), ("a.yml", False)],
)
def test_which_types_are_templates(name, is_one):
    assert is_template_name(name) is is_one


@pytest.mark.parametrize(
    ("path", "hooks", "restricted", "timeout", "retries"),
    [
        (["web"], {"pre-create"}, {"update", "replace"}, 60, 2),
        (["web1"], {"pre-create", "post-update"}, {"replace"}, 30, 2),
        (["group", "a"], {"pre-delete"}, set(), None, None),
        (["group", "b"], set(), set(), None, None),
        (["other"], set(), set(), None, None),
    ],
)
def test_settings_of_a_resource(path, hooks, restricted, timeout, retries):
    env = of_resources(
        {
            "web*": {"hooks": "pre-create", "restricted_actions": ["replace"], "timeout": 60, "retries": 2},
            "web": {"restricted_actions": "update"},
            "web?": {"hooks": ["post-update"], "timeout": 30},
            "group": {"[ac]": {"hooks": "pre-delete"}},
        }
    )
    settings = settings_for(env, path)
    assert settings == ResourceSettings(frozenset(hooks), frozenset(restricted), timeout, retries)


def test_a_nested_stack_gets_the_types_the_defaults_and_what_is_below_its_resource():
    env = parse_environment(
        {
            "parameters": {"p": 1},
            "parameter_defaults": {"d": 2},
            "event_sinks": [{"type": "zaqar-queue", "target": "q"}],
            "resource_registry": {
                "A": "B",
                "resources": {
                    "group": {"hooks": "pre-create", "m": {"hooks": "pre-update"}},
                    "g*": {"m": {"hooks": ["pre-delete"], "timeout": 5}},
                    "other": {"m": {"hooks": "post-create"}},
                },
            },
        }
    )
    below = nested_environment(env, "group", "OS::Heat::Stack")
    assert (below.parameters, below.parameter_defaults, list(below.event_sinks)) == (
        {},
        {"d": 2},
        [{"type": "zaqar-queue", "target": "q"}],
    )
    assert below.registry["A"] == "B"
    assert settings_for(below, ["m"]) == settings_for(env, ["group", "m"])
    assert settings_for(below, ["m"]).hooks == {"pre-update", "pre-delete"}
    assert settings_for(below, ["group"]).hooks == frozenset()


def test_a_compiled_resource_has_its_mapped_type_and_its_settings():
    env = registry(A="my.yaml", resources={"r": {"hooks": "pre-create"}, "up": {"r": {"retries": 3}}})
    template = {"heat_template_version": "2021-04-16", "resources": {"r": {"type": "A"}}}

    def compiled(path):
        source = Source(template, environment=env, path=path)
        identity = Identity("stack", "id", "project")
        return compile_template(source, identity=identity, limits=Limits(), seal=str).resources["r"]

    root = compiled(())
    nested = compiled(("up",))
    assert (root.type, root.template, root.declared_type) == (TEMPLATE, "my.yaml", "A")
    assert (root.settings.hooks, root.settings.retries) == ({"pre-create"}, None)
    assert (nested.settings.hooks, nested.settings.retries) == (frozenset(), 3)


def test_names_that_yaml_reads_as_numbers_are_names():
    assert settings_for(of_resources({1: {"hooks": "pre-create"}}), ["1"]).hooks == {"pre-create"}


@pytest.mark.parametrize(
    ("entries", "declared", "remaining"),
    [
        ({"A": "mine.yaml"}, "A", set()),
        ({"A": "mine.yaml", "B": "other.yaml"}, "A", {"B"}),
        ({"A": "B", "B": "mine.yaml"}, "A", {"A"}),
        ({"A*": "mine.yaml", "AB": "other.yaml"}, "AC", {"AB"}),
        ({"A": "B"}, "A", {"A"}),
        ({"A": "mine.yaml"}, "mine.yaml", {"A"}),
        ({"A": "mine.yaml", "resources": {"r": {"A": "own.yaml"}}}, "A", {"A"}),
    ],
)
def test_a_mapping_to_a_template_does_not_apply_below_it(entries, declared, remaining):
    below = nested_environment(registry(**entries), "r", declared)
    assert set(below.registry) == remaining
