"""Rules that every registered resource type keeps, ours and those of the test harness.

Each rule is one test over all types, which reports each type that breaks it.
"""

import inspect
import itertools
import json
import re

import pytest
from harness import plugins
from harness.fake_context import FakeContext, after, target_of
from stoker import resources
from stoker.resources.contract.children import ChildState
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.polled import PolledAlike
from stoker.resources.contract.properties import resolve_properties, validate_properties
from stoker.resources.contract.schema import ANY_NAME, Property
from stoker.resources.contract.software import ConfigSpec, DeploymentSpec
from stoker.resources.contract.steps import Done, Park, Poll
from stoker.resources.contract.views import ReferencedResource, ResourceView, Sibling, StackFacts
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema, resource_type_template
from stoker.template.compile import Identity, Limits, Source, compile_template

INSTALLED = ResourceRegistry.installed()
TYPES = {name: INSTALLED.get(name) for name in INSTALLED.names()}
TYPES |= {name: declared() for name, declared in plugins.RESOURCE_TYPES.items()}
OFFLINE = {name: plugin for name, plugin in TYPES.items() if plugin.service is None}
"""Types that call no service; the others are tested on a real one, in tests/cloud."""
ACTIONS = (
    "create", "update", "delete", "suspend", "resume", "check", "snapshot", "delete_snapshot", "adopt",
)  # fmt: skip


def test_the_names_for_authors_of_plugins_are_listed():
    assert sorted(resources.__all__) == resources.__all__
    assert all(hasattr(resources, name) for name in resources.__all__)
    assert resources.ResourceType is ResourceType


def fake_context():
    context = FakeContext()
    context.children.files["https://templates.test/inner.yaml"] = "heat_template_version: 2018-08-31"
    context.siblings["handle"] = Sibling(id=7, name="handle", physical_id="h", metadata={}, generation=0)
    context.referred["user"] = ReferencedResource("AWS::IAM::User")
    return context


def sample(plugin, tmp_path, context):
    """Properties with which a resource of the type can be made."""
    samples = {
        "directory": str(tmp_path),
        "until": str(tmp_path),
        "handle": context.signal_url("handle"),
        "Handle": context.signal_url("handle"),
        "timeout": 60,
        "Timeout": 60,
        "value": "text",
        "times": 0,
        "seconds": 0,
        "template": "heat_template_version: 2018-08-31",
        "resource_def": {"type": "OS::Heat::None"},
        "resources": ["OS::Heat::None"],
        "resource": {"type": "OS::Heat::None"},
        "min_size": 0,
        "max_size": 2,
        "auto_scaling_group_id": "group",
        "scaling_adjustment": 1,
        "adjustment_type": "change_in_capacity",
        "AutoScalingGroupName": "group",
        "ScalingAdjustment": 1,
        "AdjustmentType": "ChangeInCapacity",
        "TemplateURL": "https://templates.test/inner.yaml",
        "server": "server",
        "servers": {"one": "server"},
        "configs": [{"tool": "script"}],
        "AllowedResources": [],
        "UserName": "user",
    }
    return {name: value for name, value in samples.items() if name in plugin.properties_schema}


def of_each_type(rule):
    """Turn a rule about a type into a test of all types."""

    def test(subtests):
        for name, plugin in TYPES.items():
            with subtests.test(name):
                rule(plugin)

    test.__name__ = rule.__name__
    return test


def of_each_offline_type(rule):
    """Turn a rule about a type, a conductor's side and a resource's properties into a test of all types."""

    def test(subtests, tmp_path):
        for name, plugin in OFFLINE.items():
            with subtests.test(name):
                context = fake_context()
                rule(plugin, context, sample(plugin, tmp_path, context))

    test.__name__ = rule.__name__
    return test


def walk(schema):
    for name, prop in schema.items():
        yield name, prop
        if isinstance(prop.schema, Property):
            yield from walk({f"{name}.*": prop.schema})
        elif prop.schema is not None:
            yield from walk({f"{name}.{key}": member for key, member in prop.schema.items()})


@of_each_type
def test_each_default_fits_its_own_schema(plugin):
    for name, prop in walk(plugin.properties_schema):
        if prop.default is not None:
            assert not prop.required, name
            assert resolve_properties({"x": prop}, {})["x"] is not None
            assert resolve_properties({"x": prop}, {"x": prop.default}) == resolve_properties({"x": prop}, {})


@of_each_type
def test_support_statuses_are_of_heat(plugin):
    statuses = [prop.support_status.status for _, prop in walk(plugin.properties_schema)]
    statuses += [attribute.support_status.status for attribute in plugin.attributes_schema.values()]
    assert {*statuses, plugin.support_status.status} <= {"SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN"}


@of_each_type
def test_our_types_describe_themselves(plugin):
    if type(plugin).__module__.startswith("stoker."):
        assert plugin.description
        assert all(prop.description for name, prop in plugin.properties_schema.items() if name != ANY_NAME)
        version = plugin.support_status.version  # Heat's oldest types have none.
        assert re.fullmatch(r"\d+(\.\d+)+", version) if version else plugin.service is not None


@of_each_type
def test_it_can_be_shown(plugin):
    json.dumps(resource_type_schema("x", plugin, with_description=True), allow_nan=False)
    for template_type in ("hot", "cfn"):
        json.dumps(resource_type_template("x", plugin, template_type), allow_nan=False)


@of_each_type
def test_its_methods_have_the_signatures_of_the_contract(plugin):
    for name, method in inspect.getmembers(ResourceType, inspect.isfunction):
        parameters = list(inspect.signature(method).parameters)
        assert list(inspect.signature(getattr(type(plugin), name)).parameters) == parameters, name


@of_each_type
def test_each_action_that_is_begun_can_be_looked_at(plugin):
    for action in ACTIONS:
        begins = getattr(type(plugin), f"handle_{action}")
        looks = getattr(type(plugin), f"check_{action}_complete")
        if looks not in {getattr(base, f"check_{action}_complete") for base in (ResourceType, PolledAlike)}:
            assert begins is not getattr(ResourceType, f"handle_{action}")


@of_each_offline_type
def test_an_instance_keeps_no_state(plugin, context, properties):
    configured = dict(vars(plugin))
    plugin.handle_create(target_of(plugin, properties), context)
    assert vars(plugin) == configured


@of_each_offline_type
def test_plan_time_accepts_what_run_time_accepts(plugin, context, properties):
    plugin.validate(validate_properties(plugin.properties_schema, properties))
    plugin.validate(resolve_properties(plugin.properties_schema, properties))


@of_each_type
def test_its_validation_lives_with_nothing_known(plugin):
    plugin.validate({})


def test_steps_are_steps_that_can_be_stored(subtests, tmp_path):
    for (name, plugin), action in itertools.product(OFFLINE.items(), ACTIONS):
        with subtests.test(name, action=action):
            context = fake_context()
            context.children.states["there"] = ChildState("CREATE", "COMPLETE", "")
            context.software.configs["there"] = ConfigSpec()
            context.software.deployments["there"] = DeploymentSpec("server", "CREATE", "key", ConfigSpec())
            target = target_of(plugin, sample(plugin, tmp_path, context), physical_id="there")
            begin = getattr(plugin, f"handle_{action}")
            step = begin(target, frozenset(), context) if action == "update" else begin(target, context)
            assert_storable(step)
            if not isinstance(step, Done):
                assert step.progress is not None
                look = getattr(plugin, f"check_{action}_complete")
                assert_storable(look(target, json.loads(json.dumps(step.progress)), context))


def assert_storable(step):
    assert isinstance(step, Done | Poll | Park)
    json.dumps([getattr(step, name) for name in step.__dataclass_fields__], allow_nan=False)
    assert step.physical_id is None or len(step.physical_id) <= 255


@of_each_offline_type
def test_a_creation_repeated_with_the_same_key_makes_the_same_thing(plugin, context, properties):
    target = target_of(plugin, properties)
    first = plugin.handle_create(target, context)
    again = plugin.handle_create(target, context)
    resumed = plugin.handle_create(after(target, first), context)
    assert first.physical_id == again.physical_id == resumed.physical_id
    context.row += 1
    another = plugin.handle_create(target_of(plugin, properties, key="another-key"), context)
    assert first.physical_id is None or another.physical_id != first.physical_id


@of_each_offline_type
def test_a_deletion_can_be_repeated_and_needs_nothing_to_be_there(plugin, context, properties):
    target = target_of(plugin, properties)
    assert isinstance(plugin.handle_delete(target, context), Done)
    created = after(target, plugin.handle_create(target, context))
    for _ in range(2):
        step = plugin.handle_delete(created, context)
        if isinstance(step, Park):
            context.children.end(step.progress["child"])
            step = plugin.check_delete_complete(created, step.progress, context)
        assert isinstance(step, Done)


@of_each_offline_type
def test_what_one_stack_made_another_can_adopt(plugin, context, properties):
    target = target_of(plugin, properties)
    step = plugin.handle_create(target, context)
    created = after(target, step)
    if isinstance(step, Poll):
        plugin.check_create_complete(created, step.progress, context)
    stored = {"physical_id": created.physical_id, "data": json.loads(json.dumps(dict(created.data)))}
    again = target_of(plugin, properties, key="another-key", **stored)
    adopted = after(again, plugin.handle_adopt(again, context))
    assert adopted.physical_id == created.physical_id
    assert plugin.attribute_values(adopted) == plugin.attribute_values(created)
    assert plugin.reference_id(adopted) == plugin.reference_id(created)


@of_each_offline_type
def test_nothing_is_adopted_without_an_id_but_what_has_none(plugin, context, properties):
    target = target_of(plugin, properties)
    if plugin.handle_create(target, context).physical_id is None:
        assert isinstance(plugin.handle_adopt(target, context), Done)
    else:
        context.row += 1
        with pytest.raises(PermanentError, match="Resource ID was not provided|says nothing of the stack"):
            plugin.handle_adopt(target, context)


@of_each_offline_type
def test_a_snapshot_that_made_nothing_is_restored_and_deleted(plugin, context, properties):
    target = target_of(plugin, properties, physical_id="there")
    assert plugin.handle_restore(target.properties, target.data) == {}
    assert isinstance(plugin.handle_delete_snapshot(target, context), Done)


@of_each_offline_type
def test_its_attributes_are_those_of_its_schema(plugin, context, properties):
    target = target_of(plugin, properties)
    created = after(target, plugin.handle_create(target, context))
    values = plugin.attribute_values(created)
    assert set(values) <= set(plugin.attributes_schema)
    json.dumps(dict(values), allow_nan=False)
    json.dumps(plugin.reference_id(created), allow_nan=False)


@of_each_type
def test_before_it_exists_the_reference_is_the_name(plugin):
    properties = {name: None for name in plugin.properties_schema if name != ANY_NAME}
    target = ResourceView(
        id=1, name="web", type="x", stack=StackFacts("s", "demo", "t"), properties=properties, key="k"
    )
    assert plugin.reference_id(target) == "web"


@pytest.mark.parametrize(("stack", "name"), [("s" * 255, "r" * 10), ("s", "r" * 255), ("s" * 255, "r" * 255)])
def test_a_physical_name_is_never_too_long(stack, name):
    target = ResourceView(
        id=1, name=name, type="x", stack=StackFacts("s", stack, "t"), properties={}, key="12345678-1234"
    )
    assert len(target.physical_name) <= 255
    assert target.physical_name.endswith("r-123456781234")


@of_each_type
def test_its_hot_template_compiles(plugin):
    template = resource_type_template("Acme::Thing", plugin, "hot")
    values = {"string": "x", "number": 1, "boolean": True, "json": {}, "comma_delimited_list": ["x"]}
    parameters = {}
    for name, declared in template["parameters"].items():
        if "default" not in declared:
            declared.pop("constraints", None)
            parameters[name] = values[declared["type"]]
    compiled = compile_template(
        Source(template, parameters=parameters),
        identity=Identity("demo", "5ca1ab1e-0000-4000-8000-000000000001", "acme"),
        limits=Limits(),
        seal=str,
    )
    (resource,) = compiled.resources.values()
    assert resource.type == "Acme::Thing"
    assert set(resource.properties) == set(template["parameters"])
