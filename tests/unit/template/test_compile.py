"""Compiling a template to definitions: keys of resources and outputs, the graph, limits."""

import pytest
from stoker.template.compile import Identity, Limits, Source, compile_template, describe
from stoker.template.errors import CircularDependency, InvalidReference, LimitExceeded, TemplateError
from stoker.template.language import Reference
from stoker.template.residual import is_deferred
from stoker.template.sections import MAX_NAME

NEW = "2021-04-16"
TYPE = {"type": "OS::Heat::None"}


def compiled(resources=None, version=NEW, limits=None, **sections):
    template = {"heat_template_version": version, "resources": resources, **sections}
    identity = Identity("stack", "id", "project")
    source = Source(template)
    return compile_template(source, identity=identity, limits=limits or Limits(), seal=str)


def resource(**keys):
    return compiled({"r": {**TYPE, **keys}, "other": TYPE}).resources["r"]


def failure(*args, error=TemplateError, **sections):
    with pytest.raises(error) as caught:
        compiled(*args, **sections)
    return str(caught.value)


def test_an_empty_template_is_a_stack_of_nothing():
    plan = compiled()
    assert (plan.version, plan.description, plan.resources, plan.outputs) == (NEW, "", {}, {})
    assert (plan.parameters, plan.parameter_groups) == ({}, ())


def test_a_resource_with_only_a_type_has_the_defaults():
    definition = resource()
    assert (definition.name, definition.type, definition.declared_type) == (
        "r",
        "OS::Heat::None",
        "OS::Heat::None",
    )
    assert (definition.properties, definition.metadata, definition.update_policy, definition.external_id) == (
        {},
        {},
        {},
        None,
    )
    assert (definition.depends_on, definition.references, definition.requires) == ((), (), ())
    assert (definition.deletion_policy, definition.description) == ("Delete", "")


def test_all_keys_of_a_resource():
    definition = resource(
        properties={"a": {"get_param": "OS::stack_name"}, "b": {"get_attr": ["other", "x"]}},
        metadata={"m": {"get_resource": "other"}},
        update_policy={"u": {"get_param": "OS::project_id"}},
        depends_on="other",
        description="d",
        condition=True,
    )
    assert definition.properties["a"] == "stack"
    assert is_deferred(definition.properties["b"])
    assert definition.update_policy == {"u": "project"}
    assert definition.references == (Reference("other", "x"), Reference("other"))
    assert (definition.depends_on, definition.requires, definition.description) == (
        ("other",),
        ("other",),
        "d",
    )


@pytest.mark.parametrize("key", ["properties", "metadata", "update_policy", "depends_on", "deletion_policy"])
def test_an_empty_key_counts_as_absent(key):
    assert resource(**{key: None}) == resource()


def test_properties_may_be_a_function_of_another_resource():
    definition = resource(properties={"map_merge": [{"get_attr": ["other", "show"]}, {"a": 1}]})
    assert is_deferred(definition.properties)
    assert definition.requires == ("other",)


@pytest.mark.parametrize("spelling", ["Delete", "Retain", "Snapshot", "delete", "retain", "snapshot"])
def test_deletion_policies(spelling):
    assert resource(deletion_policy=spelling).deletion_policy == spelling.title()
    assert resource(deletion_policy={"if": [True, spelling, "x"]}).deletion_policy == spelling.title()


def test_an_external_resource_is_never_deleted():
    definition = resource(external_id={"get_param": "OS::stack_id"}, deletion_policy="Delete")
    assert (definition.external_id, definition.deletion_policy) == ("id", "Retain")
    later = resource(external_id={"get_resource": "other"})
    assert (later.requires, later.deletion_policy) == (("other",), "Retain")
    assert resource(external_id=None, deletion_policy="Delete").deletion_policy == "Delete"


WRONG = [
    ("text", "must be a map, not a string"),
    (None, "must be a map, not null"),
    ({}, "Each resource must contain a type key. (resources.r.type)"),
    ({"type": ""}, 'Resource "r" type is not a string. (resources.r.type)'),
    ({"type": {"get_param": "x"}}, 'Resource "r" type is not a string. (resources.r.type)'),
    (
        {**TYPE, "propreties": {}},
        '"propreties" is not a valid keyword inside a resource definition; did you mean "properties"? (res',
    ),
    ({**TYPE, "properties": ["a"]}, "properties: must be a map, not a list"),
    ({**TYPE, "metadata": "a"}, "metadata: must be a map, not a string"),
    ({**TYPE, "update_policy": 1}, "update_policy: must be a map, not a number"),
    ({**TYPE, "depends_on": 1}, "depends_on: must be the name of a resource, or a list of names"),
    ({**TYPE, "depends_on": [1]}, "depends_on: must be the name of a resource, or a list of names"),
    (
        {**TYPE, "depends_on": "othre"},
        'The specified reference "othre" (in r.DependsOn) is incorrect. '
        'depends_on names "othre", which the template does not have; did you mean "other"? '
        "(resources.r.depends_on)",
    ),
    (
        {**TYPE, "deletion_policy": "Keep"},
        'deletion_policy: Invalid deletion policy "Keep": it must be one of: Delete, Retain, Snapshot',
    ),
    ({**TYPE, "deletion_policy": ["Retain"]}, "deletion_policy: Invalid deletion policy "),
    (
        {**TYPE, "deletion_policy": {"get_resource": "other"}},
        "deletion_policy: Invalid deletion policy ",
    ),
    ({**TYPE, "external_id": 1}, "external_id: must be a string, not 1"),
    (
        {**TYPE, "properties": {"a": [{"get_resource": "x"}]}},
        'The specified reference "x" (in r.Properties.a[0]) is incorrect. The template has no resource "x"',
    ),
    (
        {**TYPE, "metadata": {"a": {"get_param": "x"}}},
        'metadata.a.get_param: The Parameter (x) was not provided. The template has no parameter "x"',
    ),
]


@pytest.mark.parametrize(("body", "words"), WRONG)
def test_a_wrong_resource_is_refused_with_its_place(body, words):
    message = failure({"r": body, "other": TYPE})
    assert message.removeprefix("resources.r").lstrip(".: ").startswith(words)
    assert "resources.r" in message


@pytest.mark.parametrize("name", ["", "a/b", "x" * (MAX_NAME + 1)])
def test_a_name_that_no_resource_can_have(name):
    message = failure({name: TYPE})
    assert f"must have 1 to {MAX_NAME} characters, and no slash among them (resources." in message
    assert message.startswith('Resource name may not contain "/"') == ("/" in name)
    assert compiled({"x" * MAX_NAME: TYPE})


@pytest.mark.parametrize(
    ("section", "body", "words"),
    [
        (
            "resuorces",
            {},
            'The template section is invalid: resuorces. "resuorces" is not a section of a',
        ),
        ("mappings", {}, 'The template section is invalid: mappings. "mappings" is not'),
        ("resources", ["r"], "resources: must be a map, not a list"),
        ("outputs", "o", "outputs: must be a map, not a string"),
        ("outputs", {"o": 1}, "outputs.o: must be a map, not a number"),
        ("outputs", {"o": {}}, "Each output must contain a value key. (outputs.o)"),
        (
            "outputs",
            {"o": {"vlaue": 1}},
            '"vlaue" is not a valid keyword inside a output definition; did you mean "value"? (outputs.o)',
        ),
        (
            "outputs",
            {"o": {"value": {"get_attr": ["x", "y"]}}},
            'The specified reference "x" (in unknown) is incorrect. The template has no resource "x"',
        ),
    ],
)
def test_a_wrong_section_is_refused_with_its_place(section, body, words):
    assert failure(**{section: body}).startswith(words)


def test_outputs_know_what_they_need():
    outputs = {
        "o": {"value": [{"get_attr": ["r", "x"]}, {"get_resource": "r"}], "description": "d"},
        "n": {"value": None},
    }
    outputs_by_name = compiled({"r": TYPE}, outputs=outputs).outputs
    assert outputs_by_name["o"].references == (Reference("r", "x"), Reference("r"))
    assert (outputs_by_name["o"].name, outputs_by_name["o"].description, outputs_by_name["n"].value) == (
        "o",
        "d",
        None,
    )


def test_names_that_are_numbers_are_names():
    plan = compiled({1: TYPE, 2: {**TYPE, "depends_on": ["1"]}}, outputs={3: {"value": 1}})
    assert (list(plan.resources), list(plan.outputs)) == (["1", "2"], ["3"])


def test_each_resource_follows_those_it_requires():
    chain = {f"r{n}": {**TYPE, "depends_on": [f"r{n + 1}"]} for n in range(50)}
    assert list(compiled({**chain, "r50": TYPE}).resources) == [f"r{n}" for n in range(50, -1, -1)]


@pytest.mark.parametrize(
    ("resources", "circle"),
    [
        ({"a": {**TYPE, "depends_on": "a"}}, ["a"]),
        ({"a": {**TYPE, "depends_on": "b"}, "b": {**TYPE, "depends_on": "a"}}, ["a", "b"]),
        (
            {
                "a": {**TYPE, "depends_on": ["b", "x"]},
                "b": {**TYPE, "properties": {"p": {"get_attr": ["c", "y"]}}},
                "c": {**TYPE, "metadata": {"p": {"get_resource": "a"}}},
                "x": TYPE,
                "y": {**TYPE, "depends_on": "a"},
            },
            ["a", "b", "c"],
        ),
    ],
)
def test_a_circle_is_refused_with_its_members_in_order(resources, circle):
    message = failure(resources, error=CircularDependency)
    words = "Circular Dependency Found: resources: resources wait for each other in a circle: "
    assert message.startswith(words)
    members = message.removeprefix(words).split(" -> ")
    assert members[0] == members[-1]
    assert sorted(members[1:]) == circle
    for name, needed in zip(members, members[1:], strict=False):
        body = str(resources[name])
        assert f"'{needed}'" in body


def test_parameter_groups():
    parameters = {name: {"type": "string", "default": ""} for name in "abc"}
    groups = [
        {"label": "l", "description": "d", "parameters": ["a", "b"]},
        {"parameters": ["c"]},
        {"parameters": []},
    ]
    assert compiled(parameters=parameters, parameter_groups=groups).parameter_groups == tuple(groups)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({}, "Parameter Groups error: parameter_groups: must be a list of groups"),
        (["a"], "Parameter Groups error: parameter_groups[0]: must be a map, not a string"),
        ([{}], "Parameter Groups error: parameter_groups[0].parameters: must be a list of parameters' names"),
        (
            [{"parameters": "a"}],
            "Parameter Groups error: parameter_groups[0].parameters: must be a list of parameters' names",
        ),
        (
            [{"parameters": ["colour"]}],
            'Parameter Groups error: parameter_groups[0].parameters: the template has no parameter "colour"',
        ),
        (
            [{"parameters": [{}]}],
            'Parameter Groups error: parameter_groups[0].parameters: the template has no parameter "{}"',
        ),
        (
            [{"parameters": ["color"]}, {"parameters": ["color"]}],
            'Parameter Groups error: parameter_groups[1].parameters: the parameter "color"',
        ),
    ],
)
def test_wrong_parameter_groups_are_refused_with_their_place(groups, words):
    parameters = {"color": {"type": "string", "default": ""}}
    assert failure(parameters=parameters, parameter_groups=groups).startswith(words)
    with pytest.raises(TemplateError):
        describe({"heat_template_version": NEW, "parameters": parameters, "parameter_groups": groups})


def test_the_number_of_resources_is_limited():
    resources = {f"r{n}": TYPE for n in range(11)}
    text = "resources: 11 resources are above the limit of 10 ([stacks] max_resources)"
    assert failure(resources, limits=Limits(resources=10), error=LimitExceeded) == text
    for limit in (11, 0):
        assert len(compiled(resources, limits=Limits(resources=limit)).resources) == 11


def test_the_limits_of_a_service_that_sets_none():
    assert Limits() == Limits(template_bytes=524_288, resources=10_000, depth=30)


def test_a_disabled_resource_does_not_close_a_circle():
    resources = {"a": {**TYPE, "depends_on": "b"}, "b": {**TYPE, "depends_on": "a", "condition": False}}
    assert compiled(resources).resources["a"].requires == ()


def test_errors_have_the_codes_of_heat():
    with pytest.raises(InvalidReference) as caught:
        compiled({"r": {**TYPE, "depends_on": "x"}})
    assert (caught.value.code, caught.value.path) == (
        "InvalidTemplateReference",
        ("resources", "r", "depends_on"),
    )
    assert (CircularDependency.code, LimitExceeded.code) == (
        "CircularDependencyException",
        "RequestLimitExceeded",
    )


def test_a_resource_must_not_have_the_name_of_a_parameter():
    sections = {"parameters": {"a": {"type": "string", "default": ""}}, "resources": {"a": {"type": "T"}}}
    with pytest.raises(TemplateError, match=r"^Duplicate names {'a'}: a parameter .* \(resources.a\)$"):
        compile_template(
            Source({"heat_template_version": "2018-08-31", **sections}),
            identity=Identity("s", "", "p"),
            limits=Limits(),
            seal=str,
        )
