"""Graphs, documents and parameters: laws against deliberately simple second implementations."""

import json

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.conversion import convert
from stoker.template.environment import nested_environment, parse_environment, settings_for
from stoker.template.errors import CircularDependency, TemplateError
from stoker.template.load import load_document
from stoker.template.parameters import parameter_strings
from stoker.template.residual import select

NAMES = "abcdefgh"
WAYS = {
    "depends": lambda name: {"depends_on": [name]},
    "id": lambda name: {"properties": {"p": [{"get_resource": name}]}},
    "attribute": lambda name: {"metadata": {"m": {"list_join": [",", [{"get_attr": [name, "x"]}]]}}},
}


def compiled(document, parameters=None):
    identity = Identity("s", "i", "p")
    return compile_template(
        Source(document, parameters=parameters or {}), identity=identity, limits=Limits(), seal=str
    )


def body(needs):
    resource = {"type": "X"}
    for name, way in needs.items():
        for key, value in WAYS[way](name).items():
            before = resource.get(key)
            if isinstance(value, list):
                resource[key] = [*(before or []), *value]
            else:
                resource[key] = {**(before or {}), **{f"{item}_{name}": part for item, part in value.items()}}
    return resource


edges = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(WAYS)), max_size=3)
graphs = st.dictionaries(st.sampled_from(NAMES), edges, min_size=1)
forward = st.lists(edges, min_size=len(NAMES), max_size=len(NAMES)).map(
    lambda needs_of_each: {
        name: {need: way for need, way in needs.items() if need < name}
        for name, needs in zip(NAMES, needs_of_each, strict=True)
    }
)


def reaches(graph, start, goal):
    """Twin: whether one can walk from one resource to another, at least one step."""
    visited = set()
    todo = list(graph[start])
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        if name not in visited:
            visited.add(name)
            todo.extend(graph[name])
    return False


def document_of(graph):
    return {
        "heat_template_version": "wallaby",
        "resources": {name: body(needs) for name, needs in graph.items()},
    }


@settings(deadline=None)
@given(graphs | forward)
def test_resources_are_in_order_or_the_cycle_is_shown(graph):
    graph = {
        name: {need: way for need, way in needs.items() if need in graph} for name, needs in graph.items()
    }
    circular = any(reaches(graph, name, name) for name in graph)
    try:
        resources = compiled(document_of(graph)).resources
    except CircularDependency as error:
        assert circular
        members = error.message.rpartition(": ")[2].split(" -> ")
        assert members[0] == members[-1]
        assert len(set(members)) == len(members) - 1
        assert all(need in graph[name] for name, need in zip(members, members[1:], strict=False))
        return
    assert not circular
    assert set(resources) == set(graph)
    place = {name: index for index, name in enumerate(resources)}
    for name, needs in graph.items():
        assert set(resources[name].requires) == set(needs)
        assert all(place[need] < place[name] for need in needs)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8) | st.sampled_from(
    ["2016-10-14", "yes", "~", "1e3", "<<", "=", "0x1", "12:30:45", "- a", "{", "*a", "&a", "# no"]
)
trees = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(words, trees, max_size=4), st.booleans())
def test_a_document_that_was_written_is_read_again(tree, flow):
    assert load_document(yaml.safe_dump(tree, default_flow_style=flow)) == tree
    assert load_document(json.dumps(tree)) == tree


@settings(deadline=None)
@given(forward)
def test_yaml_json_and_the_parsed_template_compile_to_the_same(graph):
    document = document_of(graph)
    assert compiled(load_document(yaml.safe_dump(document, sort_keys=False))) == compiled(document)
    assert compiled(load_document(json.dumps(document))) == compiled(document)


KINDS = ("string", "number", "boolean", "comma_delimited_list", "json")
written = (
    scalars
    | words
    | st.lists(words | st.integers(), max_size=3)
    | st.dictionaries(words, scalars, max_size=2)
)


@settings(deadline=None)
@given(st.sampled_from(KINDS), written)
def test_converting_twice_is_converting_once(kind, value):
    try:
        once = convert(value, kind)
    except ValueError:
        return
    assert convert(once, kind) == once
    assert type(convert(once, kind)) is type(once)


@settings(deadline=None)
@given(st.sampled_from(KINDS), written)
def test_the_shown_value_of_a_parameter_can_be_passed_again(kind, value):
    document = {"heat_template_version": "wallaby", "parameters": {"p": {"type": kind}}}
    try:
        parameters = compiled(document, {"p": value}).parameters
    except TemplateError:
        return
    if kind == "comma_delimited_list" and (
        parameters["p"].value == [""] or any("," in v for v in parameters["p"].value)
    ):
        return
    again = compiled(document, parameter_strings(parameters)).parameters
    assert again["p"].value == parameters["p"].value


def walk(value, path):
    """Twin of select, one step at a time."""
    if not path:
        return value
    step, *further = path
    if isinstance(value, dict):
        return walk(value[str(step)], further) if str(step) in value else "missing"
    if isinstance(value, list | str) and str(step).lstrip("-").isdecimal() and str(step).isascii():
        index = int(step)
        return walk(value[index], further) if -len(value) <= index < len(value) else "missing"
    return "missing"


steps = st.integers(-3, 3) | st.sampled_from(["a", "b", "0", "-1", ""])
selectable = st.recursive(
    scalars | st.sampled_from(["", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(selectable, st.lists(steps, max_size=4))
def test_select_is_its_twin(value, path):
    assert select(value, path, "missing") == walk(value, path)


patterns = st.sampled_from(["a", "a*", "?", "*"])
entries = st.fixed_dictionaries(
    {"timeout": st.integers(1, 9)},
    optional={
        "hooks": st.sampled_from(["pre-create", ["post-update", "pre-delete"], []]),
        "restricted_actions": st.sampled_from(["update", ["replace"]]),
        "retries": st.integers(0, 9),
    },
)


def above(inner):
    """Settings of a resource, and of those in its nested stack."""
    below = st.dictionaries(patterns, inner, min_size=1, max_size=3)
    return st.builds(lambda entry, members: {**entry, **members}, entries, below)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(patterns, above(above(entries)), min_size=1), st.sampled_from(["aa", "aaa", "ab", "ba"])
)
def test_a_nested_stack_sees_the_settings_that_its_path_has(resources, path):
    env = parse_environment({"resource_registry": {"resources": resources}})
    below = env
    for name in path[:-1]:
        below = nested_environment(below, name, "OS::Heat::Stack")
    assert settings_for(below, [path[-1]]) == settings_for(env, list(path))
