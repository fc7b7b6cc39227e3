"""Checks of a compiled template against types, the caller's rights and services, and the installation."""

import typing
from dataclasses import replace

import pytest
from stoker.engine.planning.requests import AdoptedResource, StoredData, TypeForbidden, TypeUnavailable
from stoker.engine.planning.template_check import (
    check_allowed,
    check_available,
    check_config_sizes,
    check_needs_no_cloud,
    check_stack_rules,
    check_storable,
    check_types,
    without_unavailable,
)
from stoker.resources.contract.errors import PropertyError
from stoker.resources.contract.known_stack import BrokenRule, KnownStack
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Property
from stoker.resources.heat.stack import REMOTE_STACK
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.stored import StoredLookup
from stoker.template.budget import Budget, json_size
from stoker.template.errors import ErrorList, UnavailableType, WordedByHeat, dotted
from stoker.template.language import CompiledTemplate, OutputDefinition, Reference, ResourceDefinition
from stoker.template.residual import node, sealed

Json = typing.Any
REGISTRY = ResourceRegistry.installed()


class Local(ResourceType):
    pass


class Calling(ResourceType):
    service = "compute"
    uses_credentials = True


class Signing(ResourceType):
    service = "compute"


class Optional(Calling):
    works_without_cloud = True


class Credited(ResourceType):
    uses_credentials = True


SMALL = ResourceRegistry({each.__name__: each for each in (Local, Calling, Signing, Optional, Credited)})


def plan_of(*names: str, uncertain: typing.Iterable[str] = (), **types: str) -> CompiledTemplate:
    """A template whose resources have the names of their types, or others where these are given."""
    all_types = {**{name: name for name in names}, **types}
    resources = {name: ResourceDefinition(name, kind, kind) for name, kind in all_types.items()}
    return CompiledTemplate(
        "2021-04-16", "", parameters={}, resources=resources, outputs={}, uncertain=frozenset(uncertain)
    )


def with_parts(type_name: str, **parts: Json) -> CompiledTemplate:
    plan = plan_of(r=type_name)
    return replace(plan, resources={"r": replace(plan.resources["r"], **parts)})


def errors_of(plan: CompiledTemplate) -> list[str]:
    errors = ErrorList()
    check_types(plan, REGISTRY, StoredLookup(str), Budget(), errors)
    return paths_of(errors)


def paths_of(errors: ErrorList) -> list[str]:
    return [dotted(error.path) for error in errors]


def test_a_request_uses_the_types_that_it_may_use() -> None:
    plan = plan_of("Local", "Calling", uncertain=["Calling"])
    check_allowed(plan, lambda name: name == "Local")
    with pytest.raises(TypeForbidden, match="You are not authorized to use Local."):
        check_allowed(plan, lambda name: name != "Local")


def test_the_callers_cloud_has_the_services_of_the_types() -> None:
    plan = plan_of("Local", "Calling")
    check_available(plan, SMALL, lambda service: service == "compute")
    check_available(plan_of("Calling", uncertain=["Calling"]), SMALL, lambda service: False)
    with pytest.raises(TypeUnavailable, match="nova is not available for resource type Calling, reason: n"):
        check_available(plan, SMALL, lambda service: False)


def test_a_resource_of_a_type_that_is_not_available_need_not_exist() -> None:
    kinds = {"gone": "OS::Heat::HARestarter", "mine": "My::Own::Type"}
    plan = plan_of("Local", "Calling", uncertain=["Local"], **kinds)
    assert without_unavailable(plan, SMALL, lambda service: True).uncertain == {"Local", "gone"}
    assert without_unavailable(plan, SMALL, lambda service: False).uncertain == {"Local", "gone", "Calling"}
    brought = ResourceRegistry({"OS::Heat::HARestarter": Local})
    here = plan_of("OS::Heat::HARestarter")
    assert without_unavailable(here, brought, lambda service: False).uncertain == frozenset()


@pytest.mark.parametrize(
    ("type_name", "needed"),
    [("Local", False), ("Calling", True), ("Signing", False), ("Optional", False), ("Credited", False)],
)
def test_a_type_that_calls_a_service_needs_a_cloud(type_name: str, *, needed: bool) -> None:
    if needed:
        with pytest.raises(TypeUnavailable, match="this Stoker has no access to a cloud"):
            check_needs_no_cloud(plan_of("Local", type_name), SMALL)
    else:
        check_needs_no_cloud(plan_of("Local", type_name), SMALL)


class One(Local):
    properties_schema = {
        "shared": Property("string"),
        "map": Property("map", schema={"inner": Property("string")}),
    }


class Ruled(Local):
    has_rules_in_stack = True
    properties_schema = {"shared": Property("string")}

    def validate_in_stack(self, resource: Json, resources: Json) -> None:
        if len(resources) > 1:
            raise PropertyError("alone only", ("shared",))


class Watched(Local):
    seen: typing.ClassVar[list[tuple[list[str], bool]]] = []

    @staticmethod
    def rule(stack: KnownStack) -> list[BrokenRule]:
        Watched.seen.append((sorted(stack.resources), stack.is_new))
        return []

    stack_rules = (rule,)


SERVICES = {"A::S::One": One, "A::S::Two": Ruled, "A::S::None": Local, "A::T::One": One, "W": Watched}


def messages(plan: CompiledTemplate, types: dict[str, type[ResourceType]]) -> list[str]:
    errors = ErrorList()
    check_types(plan, ResourceRegistry(types), StoredLookup(str), Budget(), errors)
    return [f"{dotted(each.path)}: {each.message}" for each in errors]


def test_an_unknown_property_is_shown_where_it_is_known() -> None:
    def hint(types: dict[str, type[ResourceType]], **properties: Json) -> str:
        plan = plan_of(r="A::S::None" if "shared" in properties else "A::S::One")
        plan = replace(plan, resources={"r": replace(plan.resources["r"], properties=properties)})
        [message] = messages(plan, types)
        return message.partition("; it is")[2].partition(" (")[0]

    assert hint(SERVICES, shared="x") == " a property of A::S::One and A::S::Two"
    one = {name: kind for name, kind in SERVICES.items() if name != "A::S::Two"}
    assert hint(one, shared="x") == " a property of A::S::One"
    assert hint({**SERVICES, "A::S::Three": One}, shared="x") == "", "too many have it"
    assert hint({"A::S::None": Local, "A::T::One": One}, shared="x") == ""
    assert hint(SERVICES, map={"shared": "x"}) == "", "it is unknown inside of another one"


def test_a_resource_is_checked_with_those_beside_it() -> None:
    assert messages(plan_of(a="A::S::Two"), SERVICES) == []
    together = messages(plan_of(a="A::S::Two", b="A::S::None"), SERVICES)
    assert together == ["resources.a.properties.shared: alone only"]


def test_a_resource_with_errors_is_not_in_the_plan() -> None:
    plan = plan_of(a="No::Type", b="A::S::None", c="No::Type", uncertain=["c"])
    errors = ErrorList()
    checked = check_types(plan, ResourceRegistry(SERVICES), StoredLookup(str), Budget(), errors)
    assert (list(checked.resources), paths_of(errors)) == (["b"], ["resources.a.type"])
    right = plan_of(b="A::S::None")
    assert check_types(right, ResourceRegistry(SERVICES), StoredLookup(str), Budget()) is right


def test_a_type_of_heat_that_is_not_installed_is_said_to_be_unavailable() -> None:
    errors = ErrorList()
    plan = plan_of(a="OS::Heat::HARestarter", b="OS::Heat::Nothing", c=REMOTE_STACK)
    check_types(plan, REGISTRY, StoredLookup(str), Budget(), errors)
    assert [type(error) for error in errors] == [UnavailableType, WordedByHeat, WordedByHeat]


@pytest.mark.parametrize(
    ("uncertain", "external_id", "is_new", "seen"),
    [
        ([], None, True, (["a", "w"], True)),
        ([], None, False, (["a", "w"], False)),
        (["a"], None, True, (["w"], False)),
        ([], "x", True, (["w"], False)),
    ],
)
def test_a_rule_sees_what_is_certain_and_whether_that_is_all(
    uncertain: list[str], external_id: str | None, seen: Json, *, is_new: bool
) -> None:
    plan = plan_of(a="A::S::One", w="W", uncertain=uncertain)
    other = replace(plan.resources["a"], external_id=external_id)
    plan = replace(plan, resources={**plan.resources, "a": other})
    types = {"a": One(), "w": Watched()}
    Watched.seen.clear()
    check_stack_rules(plan, types, ErrorList(), is_new=is_new)
    assert Watched.seen == [seen]


CONFIG = {"config": "x" * 100, "name": "n" * 50, "group": "g" * 50, "options": {"o": 1}}
CONFIG_SIZE = json_size(CONFIG["config"]) + json_size(CONFIG["options"])


@pytest.mark.parametrize(
    ("type_name", "properties", "most", "paths"),
    [
        ("OS::Heat::SoftwareConfig", CONFIG, CONFIG_SIZE, []),
        ("OS::Heat::SoftwareConfig", CONFIG, CONFIG_SIZE - 1, ["resources.r.properties"]),
        ("OS::Heat::SoftwareConfig", CONFIG, 0, []),
        ("OS::Heat::SoftwareConfig", {**CONFIG, "inputs": node("get_attr", "o", "x" * 99)}, CONFIG_SIZE, []),
        ("OS::Heat::Value", CONFIG, 1, []),
    ],
)
def test_a_config_is_as_large_as_its_known_parts(
    type_name: str, properties: Json, most: int, paths: list[str]
) -> None:
    plan = with_parts(type_name, properties=properties)
    before = plan_of(first="OS::Heat::None")
    plan = replace(plan, resources={**before.resources, **plan.resources})
    types = {name: REGISTRY.get(each.type) for name, each in plan.resources.items()}
    errors = ErrorList()
    check_config_sizes(plan, types, most, errors)
    assert paths_of(errors) == paths


@pytest.mark.parametrize(
    ("plan", "paths"),
    [
        (plan_of(r="OS::Heat::Nothing"), ["resources.r.type"]),
        (plan_of(r="OS::Heat::HARestarter"), ["resources.r.type"]),
        (with_parts("OS::Heat::None", deletion_policy="Retain"), []),
        (with_parts("OS::Heat::None", deletion_policy="Snapshot"), ["resources.r.deletion_policy"]),
        (with_parts("OS::Cinder::Volume", deletion_policy="Snapshot", properties={"size": 1}), []),
        (
            with_parts("OS::Heat::ResourceGroup", update_policy={"rolling_update": {"no": 1}}),
            ["resources.r.properties", "resources.r.update_policy.rolling_update"],
        ),
        (with_parts("OS::Heat::None", update_policy={"no": 1}), ["resources.r.update_policy"]),
        (
            with_parts("OS::Heat::Stack", properties={"template": sealed("token")}),
            ["resources.r.properties.template"],
        ),
        (
            with_parts("OS::Heat::Value", properties={"value": 1, "template": sealed("token")}),
            ["resources.r.properties"],
        ),
        (with_parts("OS::Heat::None", references=(Reference("r"), Reference("r", "no"))), []),
        (with_parts("OS::Heat::ResourceGroup", external_id="x"), ["resources.r.external_id"]),
        (with_parts("OS::Heat::None", external_id="x", properties={"no": 1}, deletion_policy="Snapshot"), []),
    ],
)
def test_a_resource_is_checked_against_its_type(plan: CompiledTemplate, paths: list[str]) -> None:
    assert errors_of(plan) == paths


class Reviewed(ResourceType):
    update_policy_schema: typing.ClassVar = {"by": Property("string", required=True)}


@pytest.mark.parametrize(("policy", "paths"), [({}, ["resources.r.update_policy"]), ({"by": "me"}, [])])
def test_a_type_may_need_an_update_policy(policy: Json, paths: list[str]) -> None:
    errors = ErrorList()
    registry = ResourceRegistry({"Reviewed": Reviewed})
    check_types(with_parts("Reviewed", update_policy=policy), registry, StoredLookup(str), Budget(), errors)
    assert paths_of(errors) == paths


def test_a_type_that_has_another_name_now_is_made_by_that() -> None:
    properties = {"config": "c", "servers": {}}
    plan = with_parts("OS::Heat::SoftwareDeployments", properties=properties)
    checked = check_types(plan, REGISTRY, StoredLookup(str), Budget()).resources["r"]
    assert (checked.type, checked.declared_type) == (
        "OS::Heat::SoftwareDeploymentGroup",
        "OS::Heat::SoftwareDeployments",
    )


@pytest.mark.parametrize(
    ("reference", "is_wrong"),
    [
        (Reference("value", "value"), False),
        (Reference("value", "no"), True),
        (Reference("value", ""), False),
        (Reference("value"), False),
        (Reference("unknown", "no"), False),
        (Reference("wrong", "no"), False),
    ],
)
def test_a_reference_names_an_attribute_of_the_type(reference: Reference, *, is_wrong: bool) -> None:
    plan = plan_of(value="OS::Heat::Value", wrong="No::Type", last="OS::Heat::Value")
    value = replace(plan.resources["value"], properties={"value": 1})
    last = replace(plan.resources["last"], properties={"value": 1})
    uses = (Reference("last"), Reference("wrong", "x"), reference)
    outputs = {"o": OutputDefinition("", None, references=uses)}
    resources = {**plan.resources, "value": value, "last": last}
    found = errors_of(replace(plan, resources=resources, outputs=outputs))
    user = {"value": replace(value, references=uses)}
    of_resource = errors_of(replace(plan, resources={**resources, **user}))
    assert of_resource == [*(["resources.value"] if is_wrong else []), "resources.wrong.type"]
    assert found == ["resources.wrong.type", *(["outputs.o"] if is_wrong else [])]


@pytest.mark.parametrize(
    ("plan", "paths"),
    [
        (replace(plan_of("a"), description="\0"), ["description"]),
        (plan_of("a\0"), ["resources", "resources.a\0.type"]),
        (plan_of(a="t\ud800"), ["resources.a.type"]),
        (plan_of(b="t\udfff"), ["resources.b.type"]),
        (replace(plan_of(a="t\ue000\ud7ff"), description="ä"), []),
    ],
)
def test_no_text_is_stored_that_a_database_refuses(plan: CompiledTemplate, paths: list[str]) -> None:
    errors = ErrorList()
    check_storable(plan, errors)
    assert paths_of(errors) == paths


def test_a_document_of_an_adoption_has_the_facts_of_its_resources() -> None:
    entry = {"resource_id": "x", "metadata": {"m": 1}, "resource_data": {"d": 1}}
    assert AdoptedResource.of(entry) == AdoptedResource("x", {"m": 1}, {"d": 1})
    assert AdoptedResource.of({"resource_data": None}) == AdoptedResource()
    nested = {"resources": {}, "template": {}}
    assert AdoptedResource.of(nested) == AdoptedResource(nested=nested)


def test_stored_data_are_found_by_the_path_and_below_it() -> None:
    data = {("a",): {"k": 1}, ("a", "b", "c"): {"k": 2}, ("a", "d"): {"k": 3}, ("e",): {}}
    stored = StoredData(lambda: data)
    assert (stored.of(("a", "d")), stored.of(("x",))) == ({"k": 3}, {})
    assert stored.below(("a",)) == [(("b", "c"), {"k": 2}), (("d",), {"k": 3})]
    assert stored.below(("a", "b")) == [(("c",), {"k": 2})]
    assert stored.below(("a", "d")) == ()
    assert [path for path, _ in stored.below(())] == sorted(data)
