"""References, which stay in a definition until its resources exist: get_resource, get_attr, secrets."""

import hashlib
import json

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template
from stoker.template.errors import InvalidReference, TemplateError
from stoker.template.language import Reference
from stoker.template.residual import ResidualError, evaluate, is_deferred, partial

NEW = "2021-04-16"
RESOURCES = {"server": {"type": "OS::Nova::Server"}, "net": {"type": "OS::Neutron::Net"}}
PARAMETERS = {
    "plain": {"type": "json", "default": {"a": {"b": [1, None]}, "$fn": "x", "1": "one"}},
    "text": {"type": "string", "default": "text"},
    "names": {"type": "json", "default": ["plain", "a", "b"]},
    "secret": {"type": "json", "default": {"k": "hush", "l": ["x", "y"]}, "hidden": True},
}
SECRETS = {"token-1": {"k": "hush", "l": ["x", "y"]}}
ATTRIBUTES = {
    "show": {"id": 1, "ips": [{"addr": "10.0.0.1"}], "$fn": "get_file"},
    "name": "web",
    "none": None,
    "list": ["a", "b"],
    "": {"name": "web"},
}


class Answers:
    def reference_id(self, resource):
        return f"id-of-{resource}"

    def attribute(self, resource, name):
        return ATTRIBUTES[name]

    def unseal(self, token):
        return SECRETS[token]


def compiled(value, version=NEW, **options):
    template = {
        "heat_template_version": version,
        "parameters": PARAMETERS,
        "resources": RESOURCES,
        "outputs": {"out": {"value": value}},
    }
    return compile_template(
        Source(template, **options),
        identity=Identity("stack", "id", "project"),
        limits=Limits(),
        seal=lambda value: "token-1",
    ).outputs["out"]


def value_of(tree, version=NEW):
    return evaluate(compiled(tree, version).value, Answers())


def failure(tree, version=NEW):
    with pytest.raises(TemplateError) as caught:
        compiled(tree, version)
    return str(caught.value)


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        ({"get_param": "text"}, "text"),
        ({"get_param": ["text"]}, "text"),
        ({"get_param": ["plain", "a", "b", 0]}, 1),
        ({"get_param": ["plain", "a", "b", "0"]}, 1),
        ({"get_param": ["plain", "a", "b", 1]}, None),
        ({"get_param": ["plain", "a", "b", 2]}, ""),
        ({"get_param": ["plain", "nope"]}, ""),
        ({"get_param": ["plain", 1]}, "one"),
        ({"get_param": ["text", 0]}, "t"),
        ({"get_param": ["text", "x"]}, ""),
        ({"get_param": {"get_param": "names"}}, [1, None]),
        ({"get_param": ["plain", {"get_param": ["names", 1]}, "b", 0]}, 1),
        ({"get_param": "OS::stack_name"}, "stack"),
        ({"get_param": "OS::stack_id"}, "id"),
        ({"get_param": "OS::project_id"}, "project"),
        ({"get_param": ["OS::stack_name", "x"]}, ""),
    ],
)
def test_get_param_is_folded(tree, value):
    assert compiled(tree).value == value


def test_a_parameter_that_looks_like_a_node_stays_what_it_is():
    output = compiled({"get_param": "plain"})
    assert not is_deferred(output.value)
    assert evaluate(output.value, Answers()) == PARAMETERS["plain"]["default"]
    assert value_of({"$fn": {"get_attr": ["server", "name"]}, "args": 1}) == {"$fn": "web", "args": 1}


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"get_param": 1}, "the parameter's name must be a string, not 1"),
        ({"get_param": []}, "the parameter's name must be a string, not []"),
        ({"get_param": {"a": "b"}}, 'the parameter\'s name must be a string, not {"a": "b"}'),
        (
            {"get_param": {"get_attr": ["server", "name"]}},
            "the parameter's name must be known before any resource",
        ),
        ({"get_resource": ["server"]}, 'the resource\'s name must be a string, not ["server"]'),
        ({"get_attr": "server"}, "must be of the form [resource, attribute, key or index, …]"),
        ({"get_attr": []}, "must be of the form [resource, attribute, key or index, …]"),
        ({"get_attr": ["server", 1]}, "the attribute's name must be a string, not 1"),
        ({"get_attr": ["server", {"get_resource": "net"}]}, "the attribute's name must be known before"),
        ({"resource_facade": "metadata"}, "can be used in the template of a nested stack only"),
        ({"resource_facade": "name"}, 'must be one of: metadata, deletion_policy, update_policy; not "name"'),
        ({"resource_facade": ["metadata"]}, "must be one of: metadata, deletion_policy, update_policy; not "),
    ],
)
def test_references_that_lead_nowhere_are_refused_with_their_paths(tree, words):
    name = next(iter(tree))
    assert failure({"deep": [tree]}).startswith(f"outputs.out.value.deep.0.{name}: {words}")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sever", '"sever"; did you mean "server"?'),
        ({"get_param": "OS::stack_name"}, '"stack"; there are: net, server'),
    ],
)
def test_an_attribute_of_a_resource_that_does_not_exist_is_refused_also_in_an_output(name, hint):
    resource = "sever" if name == "sever" else "stack"
    beginning = f'The specified reference "{resource}" (in unknown) is incorrect.'
    text = f"{beginning} The template has no resource {hint}"
    assert failure({"deep": [{"get_attr": [name, "x"]}]}) == f"{text} (outputs.out.value.deep.0.get_attr)"


UNRESOLVABLE = [
    ({"get_param": "txet"}, "The Parameter (txet) was not provided."),
    ({"get_param": ["txet", 0]}, "The Parameter (txet) was not provided."),
    ({"get_resource": "sever"}, 'The specified reference "sever" (in unknown) is incorrect.'),
    ({"get_file": "b.sh"}, 'No content found in the "files" section for get_file path: b.sh.'),
]


@pytest.mark.parametrize(("tree", "text"), UNRESOLVABLE)
@pytest.mark.parametrize("around", [lambda tree: tree, lambda tree: {"list_join": ["", ["a", tree]]}])
def test_an_output_that_cannot_be_computed_has_heats_error_for_who_reads_it(tree, text, around):
    output = compiled(around(tree))
    with pytest.raises(ResidualError) as caught:
        evaluate(output.value, Answers())
    assert str(caught.value) == text


@pytest.mark.parametrize(("tree", "text"), UNRESOLVABLE)
def test_a_property_that_cannot_be_computed_is_refused_in_heats_words(tree, text):
    properties = {"list": [{"k": {"list_join": ["", ["a", tree]]}}]}
    template = {"heat_template_version": NEW, "resources": {"r": {"type": "T", "properties": properties}}}
    with pytest.raises(TemplateError) as caught:
        compile_template(Source(template), identity=Identity("s", "i", "p"), limits=Limits(), seal=str)
    begins = f"Property error: resources.r.properties.list[0].k: {text}"
    if "get_resource" in tree:
        begins = 'The specified reference "sever" (in r.Properties.list[0].k.list_join[1][1]) is incorrect.'
    assert str(caught.value).startswith(begins)


def test_all_attributes_need_2015_10_15():
    tree = {"get_attr": ["server"]}
    assert failure(tree, "2015-04-30").endswith(
        "must name an attribute: [resource, attribute, …]; all attributes need 2015-10-15"
    )
    assert value_of(tree, "2015-10-15") == {"name": "web"}


@pytest.mark.parametrize(
    ("tree", "value", "references"),
    [
        ({"get_resource": "server"}, "id-of-server", [Reference("server")]),
        ({"get_attr": ["server"]}, {"name": "web"}, [Reference("server", "")]),
        ({"get_attr": ["server", "name"]}, "web", [Reference("server", "name")]),
        ({"get_attr": ["server", "name", 0]}, "w", [Reference("server", "name", (0,))]),
        ({"get_attr": ["server", "list", 1]}, "b", [Reference("server", "list", (1,))]),
        ({"get_attr": ["server", "list", "1"]}, "b", [Reference("server", "list", ("1",))]),
        ({"get_attr": ["server", "list", 2]}, None, [Reference("server", "list", (2,))]),
        ({"get_attr": ["server", "none", "x"]}, None, [Reference("server", "none", ("x",))]),
        (
            {"get_attr": ["server", "show", "ips", 0, "addr"]},
            "10.0.0.1",
            [Reference("server", "show", ("ips", 0, "addr"))],
        ),
        (
            {"get_attr": ["server", "show", {"get_attr": ["net", "name"]}]},
            None,
            [Reference("server", "show"), Reference("net", "name")],
        ),
        ({"get_attr": ["server", "show"]}, ATTRIBUTES["show"], [Reference("server", "show")]),
    ],
)
def test_references_wait_for_the_resources(tree, value, references):
    output = compiled(tree)
    assert is_deferred(output.value)
    assert json.loads(json.dumps(output.value)) == output.value
    assert list(output.references) == references
    assert evaluate(output.value, Answers()) == value
    assert evaluate(partial(output.value, Answers()), Answers()) == value


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        ({"list_join": ["-", [{"get_attr": ["server", "name"]}, "x"]]}, "web-x"),
        ({"str_replace": {"template": "$n", "params": {"$n": {"get_attr": ["server", "none"]}}}}, ""),
        (
            {"repeat": {"for_each": {"%": {"get_attr": ["server", "list"]}}, "template": "<%>"}},
            ["<a>", "<b>"],
        ),
        (
            {"repeat": {"for_each": {"%": ["a"]}, "template": {"%": {"get_attr": ["server", "name"]}}}},
            [{"a": "web"}],
        ),
        (
            {"map_merge": [{"get_attr": ["server", "show"]}, {"$fn": 1, "ips": []}]},
            {"id": 1, "ips": [], "$fn": 1},
        ),
        ({"digest": ["md5", {"get_resource": "server"}]}, hashlib.md5(b"id-of-server").hexdigest()),
        ({"yaql": {"expression": "$.data.len()", "data": {"get_attr": ["server", "list"]}}}, 2),
        ({"if": [True, {"get_resource": "net"}, {"get_resource": "server"}]}, "id-of-net"),
        ({"contains": ["a", {"get_attr": ["server", "list"]}]}, True),
        ({"get_param": ["plain", {"get_attr": ["server", "name"]}]}, ""),
    ],
)
def test_functions_of_references_wait_too(tree, value):
    output = compiled(tree)
    assert is_deferred(output.value)
    assert evaluate(output.value, Answers()) == value
    assert evaluate(partial(output.value, Answers()), Answers()) == value


LATER = {"get_attr": ["server", "name"]}


@pytest.mark.parametrize(
    ("name", "argument", "words"),
    [
        ("list_join", [LATER], "must be of the form [delimiter, list, …]"),
        ("str_split", [",", LATER, 0, 0], "must be of the form [delimiter, string, index]"),
        ("str_replace", {"tmpl": LATER, "params": {}}, "must be a map with the keys template and params"),
        ("digest", ["md5", LATER, 1], "must be of the form [algorithm, string]"),
        ("map_replace", [LATER], "must be of the form [map, {keys: {old: new}, values: {old: new}}]"),
        ("repeat", {"for_each": LATER}, "must be a map with the keys for_each and template"),
        ("yaql", {"data": LATER}, "must be a map with the keys expression"),
        ("make_url", [LATER], "must be a map"),
        ("filter", [LATER], "must be of the form [[value, …], [item, …]]"),
    ],
)
def test_a_wrong_form_is_refused_before_the_resources_exist(name, argument, words):
    assert failure({name: argument}) == f"outputs.out.value.{name}: {words}"


def test_an_error_of_evaluation_names_the_function_and_what_would_be_right():
    output = compiled({"list_join": [",", {"get_attr": ["server", "name"]}]})
    with pytest.raises(ResidualError, match='^list_join: must join lists, not "web"$'):
        evaluate(output.value, Answers())


def test_the_version_goes_with_a_function_that_waits():
    tree = {"list_join": [",", [{"get_attr": ["server", "list"]}]]}
    assert value_of(tree, NEW) == '["a", "b"]'
    with pytest.raises(ResidualError, match=r"^list_join: items to join must be strings, not"):
        value_of(tree, "2013-05-23")


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        ({"get_param": "secret"}, SECRETS["token-1"]),
        ({"get_param": ["secret", "k"]}, "hush"),
        ({"get_param": ["secret", "l", {"get_param": ["plain", "a", "b", 0]}]}, "y"),
        ({"get_param": ["secret", "nope"]}, ""),
        ({"list_join": ["-", [{"get_param": ["secret", "k"]}, {"get_resource": "net"}]]}, "hush-id-of-net"),
        ({"repeat": {"for_each": {"%": {"get_param": ["secret", "l"]}}, "template": "<%>"}}, ["<x>", "<y>"]),
    ],
)
def test_secrets_stay_sealed_until_the_last_moment(tree, value):
    residual = compiled(tree).value
    later = partial(residual, Answers())
    for tree_with_secret in (residual, later):
        assert "hush" not in json.dumps(tree_with_secret)
        assert is_deferred(tree_with_secret)
        assert evaluate(tree_with_secret, Answers()) == value


@pytest.mark.parametrize(
    "tree",
    [
        {"list_join": [",", {"get_param": ["secret", "k"]}]},
        {"str_split": [",", {"get_param": ["secret", "k"]}, 7]},
        {"yaql": {"expression": "$.data.nope()", "data": {"get_param": "secret"}}},
        {"map_merge": [{"list_join": ["", [{"get_param": ["secret", "k"]}]]}]},
    ],
)
def test_an_error_about_a_secret_does_not_contain_it(tree):
    residual = compiled(tree).value
    with pytest.raises(
        ResidualError, match="cannot be evaluated with the value of a hidden parameter"
    ) as caught:
        evaluate(residual, Answers())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("part", ["metadata", "deletion_policy", "update_policy"])
def test_the_facade_is_the_parents_definition_of_the_resource(part):
    facade = {"metadata": {"a": 1}, "deletion_policy": "Retain", "update_policy": {"b": 2}}
    assert compiled({"resource_facade": part}, facade=facade).value == facade[part]


def test_a_name_that_is_near_no_other_is_answered_with_all():
    with pytest.raises(InvalidReference) as caught:
        compiled({"get_attr": ["zzz", "x"]})
    assert 'The template has no resource "zzz"; there are: net, server' in str(caught.value)
