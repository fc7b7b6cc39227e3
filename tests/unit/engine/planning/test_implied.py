"""Implied dependencies: what a template's resources have in common orders them, without a reference.

The types are like those of a network service.  In the table ``port: subnet`` means that port waits for subnet
because the types say so; what a template says itself is not repeated.
"""

import sys
import types
import typing
from dataclasses import dataclass, field, replace

import pytest
import yaml
from stoker.db.id_source import EPOCH, IdSource
from stoker.db.ids import ResourceId, StackId, TraversalId
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.implied import with_implied_dependencies
from stoker.engine.planning.nested_contents import NestedContents
from stoker.engine.planning.plan import Plan, TraversalScope, plan_create, plan_delete
from stoker.engine.planning.requests import Goal
from stoker.engine.planning.update import TypeFacts, UpdatePlanner
from stoker.resources.contract.implied import ImpliedDependency
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import ANY_NAME, Attribute, Property
from stoker.resources.heat.resource_group import ResourceGroup
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.budget import Budget
from stoker.template.compile import Identity, Limits
from stoker.template.environment import Environment
from stoker.template.errors import CircularDependency, LimitExceeded, TemplateError
from stoker.template.language import CompiledTemplate
from stoker.template.load import LoadedTemplates

Json = typing.Any


class Thing(ResourceType):
    properties_schema = {
        name: Property(kind, update_allowed=True)
        for kind, names in {
            "string": "network network_id subnet subnet_id router router_id port port_id floating value",
            "list": "networks fixed_ips",
            "map": "gateway",
        }.items()
        for name in names.split()
    }
    attributes_schema = {ANY_NAME: Attribute()}


class Port(Thing):
    implied_dependencies = (ImpliedDependency("network|network_id", "Subnet", "network|network_id"),)


class Server(Thing):
    implied_dependencies = (ImpliedDependency("networks.*.network|uuid", "Subnet", "network|network_id"),)


class Router(Thing):
    implied_dependencies = (ImpliedDependency("gateway.network", "Subnet", "network|network_id"),)


class Floating(Thing):
    implied_dependencies = (
        ImpliedDependency("floating", "Router", "gateway.network"),
        ImpliedDependency(
            "port_id > network|network_id", "Interface", "subnet|subnet_id > network|network_id"
        ),
        ImpliedDependency("port_id > fixed_ips.*.subnet|subnet_id", "Interface", "subnet|subnet_id"),
    )


class Far(Thing):
    implied_dependencies = (ImpliedDependency("port_id > subnet > network", "Interface", "subnet > network"),)


class Watcher(Thing):
    implied_dependencies = (ImpliedDependency("value", "Net", "value"),)


TYPES: dict[str, type[ResourceType]] = {
    "Net": Thing,
    "Subnet": Thing,
    "Port": Port,
    "Server": Server,
    "Router": Router,
    "Interface": Thing,
    "Floating": Floating,
    "Far": Far,
    "Watcher": Watcher,
    "OS::Heat::ResourceGroup": ResourceGroup,
}
REGISTRY = ResourceRegistry(TYPES)
SEALER = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
PROVIDER = yaml.safe_dump(
    {"heat_template_version": "2018-08-31", "parameters": {"network": {"type": "string", "default": ""}}}
)


def provider(resources: str, outputs: Json = None) -> str:
    """A template with the parameters ``network``, ``router``, ``subnet`` and ``port``."""
    names = ("network", "router", "subnet", "port")
    return yaml.safe_dump(
        {
            "heat_template_version": "2018-08-31",
            "parameters": {name: {"type": "string", "default": ""} for name in names},
            "resources": yaml.safe_load(resources),
            "outputs": {name: {"value": {"get_resource": name}} for name in outputs or ()},
        }
    )


INSIDE = {
    "makes.yaml": provider("s: {type: Subnet, properties: {network: {get_param: network}}}", ["s"]),
    "uses.yaml": provider("p: {type: Port, properties: {network: {get_param: network}}}", ["p"]),
    "both.yaml": provider(
        "s: {type: Subnet, properties: {network: {get_param: network}}}\n"
        "p: {type: Port, properties: {network: {get_param: network}}}"
    ),
    "own.yaml": provider(
        "n: {type: Net}\ns: {type: Subnet, properties: {network: {get_resource: n}}}\n"
        "p: {type: Port, properties: {network: {get_param: network}}}"
    ),
    "way.yaml": provider(
        "s: {type: Subnet, properties: {network: {get_param: network}}}\n"
        "w: {type: Interface, properties: {router: {get_param: router}, subnet: {get_resource: s}}}"
    ),
    "named.yaml": provider("n: {type: Net, properties: {value: {get_param: network}}}"),
    "link.yaml": provider("w: {type: Interface, properties: {subnet: {get_param: subnet}}}"),
    "other.yaml": provider("s: {type: Acme::Range, properties: {network: {get_param: network}}}"),
    "deep.yaml": provider(
        "d: {type: makes.yaml, properties: {network: {get_param: network}, port: {get_param: port}}}"
    ),
    "two.yaml": provider(
        "s: {type: Subnet, properties: {network: {get_param: network}}}\n"
        "t: {type: Subnet, properties: {network: {get_param: router}}}"
    ),
    "group.yaml": provider(
        "g:\n  type: OS::Heat::ResourceGroup\n  properties:\n"
        "    resource_def: {type: Subnet, properties: {network: {get_param: network}}}"
    ),
}


def compiled(
    resources: str | Json,
    *,
    environment: Json = None,
    parameters: Json = None,
    files: Json = None,
    limits: Limits | None = None,
) -> CompiledTemplate:
    goal = Goal(
        template={
            "heat_template_version": "2018-08-31",
            "parameters": {name: {"type": "string"} for name in parameters or {}},
            "resources": yaml.safe_load(resources) if isinstance(resources, str) else resources,
        },
        environment=environment or {},
        parameters=parameters or {},
        files={"subnet.yaml": PROVIDER, **INSIDE, **(files or {})},
    )
    compiler = GoalCompiler(REGISTRY, limits or Limits())
    return compiler.compile(goal, Identity("s", "i", "p"), SEALER).plan


@dataclass(frozen=True)
class Case:
    name: str
    resources: str
    implied: str
    environment: Json = field(default_factory=dict)
    parameters: Json = field(default_factory=dict)


NET = """
net: {type: Net}
a: {type: Subnet, properties: {network: {get_resource: net}}}
b: {type: Subnet, properties: {network_id: {get_resource: net}}}
"""
CASES = [
    Case(
        "a port waits for all subnets of its network",
        NET + "port: {type: Port, properties: {network: {get_resource: net}}}",
        "port: a b",
    ),
    Case("another network's subnets do not matter", NET + "port: {type: Port, properties: {network: x}}", ""),
    Case(
        "a name stands for a thing outside, not for a resource",
        NET + "port: {type: Port, properties: {network: net}}",
        "",
    ),
    Case(
        "a network outside, named in the same way",
        "a: {type: Subnet, properties: {network: x}}\nport: {type: Port, properties: {network_id: x}}",
        "port: a",
    ),
    Case(
        "a parameter's value counts, whatever it is called",
        "a: {type: Subnet, properties: {network: {get_param: one}}}\n"
        "port: {type: Port, properties: {network: {get_param: other}}}",
        "port: a",
        parameters={"one": "x", "other": "x"},
    ),
    Case(
        "the same function of the same arguments is the same",
        "o: {type: Net}\n"
        "a: {type: Subnet, properties: {network: {get_attr: [o, net]}}}\n"
        "b: {type: Subnet, properties: {network: {get_attr: [o, other]}}}\n"
        "port: {type: Port, properties: {network: {get_attr: [o, net]}}}",
        "port: a",
    ),
    Case(
        "what has no network waits for nothing",
        "a: {type: Subnet}\nb: {type: Subnet, properties: {network: null}}\nc: {type: Port}\n"
        "d: {type: Port, properties: {network: null}}\ne: {type: Port, properties: {network: ''}}\n"
        "f: {type: Subnet, properties: {network: ''}}",
        "",
    ),
    Case(
        "the items of a list",
        NET + "s: {type: Server, properties: {networks: [{port: x}, {network: {get_resource: net}}]}}\n"
        "t: {type: Server, properties: {networks: [{uuid: {get_resource: net}}]}}\n"
        "u: {type: Server, properties: {networks: {get_attr: [net, networks]}}}",
        "s: a b\n t: a b",
    ),
    Case(
        "a key of a map",
        NET + "r: {type: Router, properties: {gateway: {network: {get_resource: net}}}}",
        "r: a b",
    ),
    Case(
        "a floating address waits for the router to its network, and for the way to its port",
        NET
        + """
        out: {type: Net}
        r: {type: Router, properties: {gateway: {network: {get_resource: out}}}}
        way: {type: Interface, properties: {router: {get_resource: r}, subnet: {get_resource: a}}}
        other: {type: Interface, properties: {router: {get_resource: r}, subnet: x}}
        port: {type: Port, properties: {network: {get_resource: net}}}
        f: {type: Floating, properties: {floating: {get_resource: out}, port_id: {get_resource: port}}}
        g: {type: Floating, properties: {floating: {get_resource: out}}}
        """.replace("\n        ", "\n"),
        "port: a b\n f: r way\n g: r",
    ),
    Case(
        "a way to the subnet of a port, on a network outside",
        """
        way: {type: Interface, properties: {subnet_id: x}}
        port: {type: Port, properties: {network: n, fixed_ips: [{ip_address: y}, {subnet: x}]}}
        f: {type: Floating, properties: {port_id: {get_resource: port}}}
        g: {type: Floating, properties: {port_id: port}}
        """.replace("\n        ", "\n"),
        "f: way",
    ),
    Case(
        "another name of a type, and a template in its place",
        "a: {type: My::Subnet, properties: {network: x}}\n"
        "b: {type: Subnet, properties: {network: x}}\n"
        "port: {type: Port, properties: {network: x}}",
        "port: a b\nb: a",
        environment={
            "resource_registry": {"My::Subnet": "Subnet", "resources": {"b": {"Subnet": "subnet.yaml"}}}
        },
    ),
    Case(
        "a nested stack that gets a network waits for its subnets and for the ways to it",
        NET
        + """
        out: {type: Net}
        r: {type: Router, properties: {gateway: {network: {get_resource: out}}}}
        way: {type: Interface, properties: {router: {get_resource: r}, subnet: {get_resource: a}}}
        n: {type: subnet.yaml, properties: {network: {get_resource: net}}}
        m: {type: subnet.yaml, properties: {network: {get_resource: out}}}
        o: {type: subnet.yaml, properties: {network: elsewhere}}
        """.replace("\n        ", "\n"),
        "n: a b way\nm: r",
    ),
    Case(
        "a nested stack that gets a port waits for the ways to its network",
        NET
        + """
        way: {type: Interface, properties: {subnet: {get_resource: a}}}
        port: {type: Port, properties: {network: {get_resource: net}}}
        n: {type: subnet.yaml, properties: {network: {get_resource: port}}}
        """.replace("\n        ", "\n"),
        "port: a b\nn: way",
    ),
    Case(
        "a group whose members get a network, anywhere in their properties",
        NET
        + """
        g:
          type: OS::Heat::ResourceGroup
          properties:
            resource_def: {type: Port, properties: {value: {list_join: ["", ["x", {get_resource: net}]]}}}
        """.replace("\n        ", "\n"),
        "g: a b",
    ),
    Case(
        "a nested stack does not wait for what waits for it",
        """
        net: {type: Net}
        n: {type: subnet.yaml, properties: {network: {get_resource: net}}}
        a: {type: Subnet, properties: {network: {get_resource: net}, value: {get_resource: n}}}
        b: {type: Subnet, properties: {network: {get_resource: net}}, depends_on: a}
        c: {type: Subnet, properties: {network: {get_resource: net}}}
        """.replace("\n        ", "\n"),
        "n: c",
    ),
    Case(
        "resources wait for a nested stack that makes a subnet of their network, on any level",
        """
        net: {type: Net}
        other: {type: Net}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        d: {type: deep.yaml, properties: {network: {get_resource: other}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        b: {type: Port, properties: {network: {get_resource: other}}}
        c: {type: Port, properties: {network: elsewhere}}
        """.replace("\n        ", "\n"),
        "a: n\nb: d",
    ),
    Case(
        "a nested stack waits for the one beside it that makes the subnet, unless both do",
        """
        net: {type: Net}
        u: {type: uses.yaml, properties: {network: {get_resource: net}}}
        m: {type: makes.yaml, properties: {network: {get_resource: net}}}
        x: {type: both.yaml, properties: {network: elsewhere}}
        y: {type: both.yaml, properties: {network: elsewhere}}
        """.replace("\n        ", "\n"),
        "u: m",
    ),
    Case(
        "a subnet of the nested stack's own network is nobody else's",
        """
        net: {type: Net}
        n: {type: own.yaml, properties: {network: {get_resource: net}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        """.replace("\n        ", "\n"),
        "",
    ),
    Case(
        "a nested stack that needs the resource comes after it",
        """
        net: {type: Net}
        a: {type: Port, properties: {network: {get_resource: net}}}
        n: {type: makes.yaml, properties: {network: {get_resource: net}, port: {get_resource: a}}}
        """.replace("\n        ", "\n"),
        "",
    ),
    Case(
        "a floating address waits for a way that a nested stack makes",
        """
        net: {type: Net}
        r: {type: Router}
        n: {type: way.yaml, properties: {network: {get_resource: net}, router: {get_resource: r}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        f: {type: Floating, properties: {port_id: {get_resource: a}}}
        """.replace("\n        ", "\n"),
        "a: n\nf: n",
    ),
    Case(
        "a floating address of a port inside of a nested stack waits for the way to its network",
        """
        net: {type: Net}
        s: {type: Subnet, properties: {network: {get_resource: net}}}
        way: {type: Interface, properties: {subnet: {get_resource: s}}}
        n: {type: uses.yaml, properties: {network: {get_resource: net}}}
        f: {type: Floating, properties: {port_id: {get_attr: [n, p]}}}
        """.replace("\n        ", "\n"),
        "n: s way\nf: way",
    ),
    Case(
        "a nested stack does not wait for what waits for something inside of it",
        """
        net: {type: Net}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        r: {type: Router, properties: {gateway: {network: {get_resource: net}}}}
        """.replace("\n        ", "\n"),
        "r: n",
    ),
    Case(
        "a floating address waits for the way to a subnet that a nested stack makes",
        """
        net: {type: Net}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        way: {type: Interface, properties: {subnet: {get_attr: [n, s]}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        f: {type: Floating, properties: {port_id: {get_resource: a}}}
        """.replace("\n        ", "\n"),
        "a: n\nf: way",
    ),
    Case(
        "a floating address of a port inside waits for the way to a subnet inside of another nested stack",
        """
        net: {type: Net}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        way: {type: Interface, properties: {subnet: {get_attr: [n, s]}}}
        u: {type: uses.yaml, properties: {network: {get_resource: net}}}
        f: {type: Floating, properties: {port_id: {get_attr: [u, p]}}}
        """.replace("\n        ", "\n"),
        "u: n\nf: way",
    ),
    Case(
        "a path leaves the stack where a resource on its way names one inside",
        """
        net: {type: Net}
        s: {type: Subnet, properties: {network: {get_resource: net}}}
        way: {type: Interface, properties: {subnet: {get_resource: s}}}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        a: {type: Port, properties: {subnet: {get_attr: [n, s]}}}
        f: {type: Far, properties: {port_id: {get_resource: a}}}
        """.replace("\n        ", "\n"),
        "n: s way\nf: way",
    ),
    Case(
        "an attribute of a resource on the way is not the resource",
        """
        net: {type: Net}
        s: {type: Subnet, properties: {network: {get_resource: net}}}
        way: {type: Interface, properties: {subnet: {get_resource: s}}}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        a: {type: Port, properties: {subnet: {get_attr: [n, s]}}}
        f: {type: Far, properties: {port_id: {get_attr: [a, show]}}}
        """.replace("\n        ", "\n"),
        "n: s way",
    ),
    Case(
        "a way inside of a nested stack, to a subnet that it gets",
        """
        net: {type: Net}
        s: {type: Subnet, properties: {network: {get_resource: net}}}
        n: {type: link.yaml, properties: {subnet: {get_resource: s}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        f: {type: Floating, properties: {port_id: {get_resource: a}}}
        """.replace("\n        ", "\n"),
        "a: s\nf: n",
    ),
    Case(
        "a declaration behind types that all declare the same",
        "n: {type: named.yaml, properties: {network: x}}\nw: {type: Watcher, properties: {value: x}}",
        "w: n",
    ),
    Case(
        "another name of a type inside of a nested stack",
        """
        net: {type: Net}
        n: {type: other.yaml, properties: {network: {get_resource: net}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        """.replace("\n        ", "\n"),
        "a: n",
        environment={"resource_registry": {"Acme::Range": "Subnet"}},
    ),
    Case(
        "a type inside of a nested stack that is mapped to another one",
        """
        net: {type: Net}
        n: {type: makes.yaml, properties: {network: {get_resource: net}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        """.replace("\n        ", "\n"),
        "a: n",
        environment={"resource_registry": {"Subnet": "Net"}},
    ),
    Case(
        "what a nested stack gets for other things than its subnets is not their network",
        """
        net: {type: Net}
        out: {type: Net}
        n: {type: deep.yaml, properties: {network: {get_resource: net}, port: {get_resource: out}}}
        g:
          type: OS::Heat::ResourceGroup
          properties:
            resource_def:
              type: makes.yaml
              properties: {network: {get_resource: net}, port: {get_resource: out}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        b: {type: Port, properties: {network: {get_resource: out}}}
        """.replace("\n        ", "\n"),
        "a: g n",
    ),
    Case(
        "a nested stack makes subnets of two networks, or by a group",
        """
        net: {type: Net}
        out: {type: Net}
        other: {type: Net}
        n: {type: two.yaml, properties: {network: {get_resource: net}, router: {get_resource: out}}}
        g: {type: group.yaml, properties: {network: {get_resource: other}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        b: {type: Port, properties: {network: {get_resource: out}}}
        c: {type: Port, properties: {network: {get_resource: other}}}
        """.replace("\n        ", "\n"),
        "a: n\nb: n\nc: g",
    ),
    Case(
        "members of a group make the subnet",
        """
        net: {type: Net}
        g:
          type: OS::Heat::ResourceGroup
          properties: {resource_def: {type: Subnet, properties: {network: {get_resource: net}}}}
        a: {type: Port, properties: {network: {get_resource: net}}}
        """.replace("\n        ", "\n"),
        "a: g",
    ),
    Case(
        "what the template says already",
        NET + "port: {type: Port, depends_on: b, properties: {network: {get_resource: net}}}",
        "port: a",
    ),
    Case(
        "a resource whose condition is false is none",
        NET + "c: {type: Subnet, condition: {equals: [1, 2]}, properties: {network: {get_resource: net}}}\n"
        "port: {type: Port, properties: {network: {get_resource: net}}}",
        "port: a b",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_implied(case: Case) -> None:
    plan = compiled(case.resources, environment=case.environment, parameters=case.parameters)
    implied = {}
    for name, item in plan.resources.items():
        declared = {*item.depends_on, *(reference.resource for reference in item.references)}
        assert declared <= set(item.requires)
        if undeclared := sorted(set(item.requires) - declared):
            implied[name] = undeclared
    expected = dict(line.strip().split(": ") for line in case.implied.splitlines())
    assert implied == {name: names.split() for name, names in expected.items()}
    before: set[str] = set()
    for name, item in plan.resources.items():
        assert set(item.requires) <= before, f"{name} comes too early"
        before.add(name)


def test_a_circle_is_refused_and_the_implied_dependency_named() -> None:
    with pytest.raises(CircularDependency) as caught:
        compiled(
            "a: {type: Subnet, depends_on: port, properties: {network: x}}\n"
            "port: {type: Port, properties: {network: x}}"
        )
    assert "in a circle" in str(caught.value)
    assert "port for a" in str(caught.value)
    assert "a for port" not in str(caught.value)


@pytest.mark.parametrize("copies", [1, 3])
def test_templates_that_contain_themselves_or_each_other_are_refused_as_too_deep(copies: int) -> None:
    levels = 400
    names = [f"level{n}.yaml" for n in range(levels)]
    for following in ([*names[1:], names[0]], names):
        files = {
            name: provider("\n".join(f"r{n}: {{type: {other}}}" for n in range(copies)))
            for name, other in zip(names, following, strict=True)
        }
        with pytest.raises(LimitExceeded, match="levels deep"):
            compiled({"a": {"type": names[0]}, "b": {"type": "Port"}}, files=files)


WRONG = {
    "is no template": ("{Subnet: [", "resources.n"),
    "has a circle": (
        provider(
            "a: {type: Subnet, properties: {value: {get_resource: b}}}\n"
            "b: {type: Net, properties: {value: {get_resource: a}}}"
        ),
        "Circular",
    ),
    "is too deep": (f"Subnet: {'[' * 500}{']' * 500}", "resources.n"),
    "is too long": (f"{INSIDE['makes.yaml']}# {'x' * 4000}", "resources.n: the template has"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_nested_template_is_reported_by_its_own_check(name: str) -> None:
    text, told = WRONG[name]
    with pytest.raises(TemplateError, match=told):
        compiled(
            {"n": {"type": "wrong.yaml"}, "b": {"type": "Port"}},
            files={"wrong.yaml": text},
            limits=Limits(template_bytes=4000),
        )


def test_a_template_that_is_too_long_has_its_path_on_any_level() -> None:
    files = {"outer.yaml": provider("d: {type: wrong.yaml}"), "wrong.yaml": WRONG["is too long"][0]}
    resources = {"n": {"type": "outer.yaml"}, "b": {"type": "Port"}}
    with pytest.raises(LimitExceeded, match=r"^resources\.n\.resources\.d: the template has"):
        compiled(resources, files=files, limits=Limits(template_bytes=4000))


class SearchedText(str):
    """A text that counts how often it is searched."""

    searches = 0

    def __contains__(self, part: object) -> bool:
        self.searches += 1
        return super().__contains__(str(part))


def test_a_template_is_searched_once_however_many_resources_have_it() -> None:
    text = SearchedText(PROVIDER)
    budget = Budget()
    plan = compiled({f"n{n}": {"type": "subnet.yaml"} for n in range(9)})
    contents = NestedContents(REGISTRY, {"subnet.yaml": text}, LoadedTemplates(budget), budget, {"Subnet"})
    first, *others = plan.resources.values()
    contents.values(first, Environment())
    searches = text.searches
    assert searches > 0
    for definition in others:
        contents.values(definition, Environment())
    assert text.searches == searches


def test_a_registry_is_charged_with_each_resource_that_has_it() -> None:
    budget = Budget()
    plan = compiled({f"n{n}": {"type": "subnet.yaml"} for n in range(9)})
    contents = NestedContents(
        REGISTRY, {"subnet.yaml": PROVIDER}, LoadedTemplates(budget), budget, {"Subnet"}
    )
    for definition in plan.resources.values():
        steps = budget.steps
        contents.values(definition, Environment(registry={"X": "y" * 500_000}))
        assert budget.steps - steps > 1000


SCOPE = TraversalScope(StackId("s"), TraversalId("t"), shard=0, ids=IdSource(lambda: EPOCH), now=0.0)


def edges(plan: Plan, names: dict[ResourceId, str]) -> set[str]:
    label = {t.id: f"{t.kind} {names[ResourceId(t.resource_id or 0)]}" for t in plan.tasks}
    return {f"{label[task.id]} -> {label[then]}" for task in plan.tasks for then in task.successors}


WITHOUT = "net: {type: Net}\na: {type: Subnet, properties: {network: {get_resource: net}}}\n"
WITH = WITHOUT + "port: {type: Port, properties: {network: {get_resource: net}}}"


def test_plans_have_edges_for_what_is_implied() -> None:
    creation = plan_create(compiled(WITH), SCOPE)
    names = {row.id: row.name for row in creation.resources}
    assert "create a -> create port" in edges(creation, names)
    requires = {row.name: {names[i] for i in row.requires} for row in creation.resources}
    assert requires == {"net": set(), "a": {"net"}, "port": {"net", "a"}}

    rows = [replace(row, action="CREATE", physical_id=row.name, properties={}) for row in creation.resources]
    deletion = plan_delete(rows, {}, SCOPE)
    assert edges(deletion, names) == {
        "delete port -> delete a",
        "delete port -> delete net",
        "delete a -> delete net",
    }


def test_an_update_orders_new_and_existing_resources() -> None:
    creation = plan_create(compiled(WITH), SCOPE)
    rows = {
        r.name: replace(r, action="CREATE", physical_id=r.name, properties={}) for r in creation.resources
    }
    more = WITH + "\nb: {type: Subnet, properties: {network: {get_resource: net}}}\n"
    more += "late: {type: Port, properties: {network: {get_resource: net}, value: x}}\n"
    facts = TypeFacts(REGISTRY)
    plan = UpdatePlanner(list(rows.values()), compiled(more), {}, SCOPE, facts).plan()
    names = {**{row.id: row.name for row in rows.values()}, **{row.id: row.name for row in plan.resources}}
    assert edges(plan, names) == {"create b -> create late"}
    new = {row.name: row.id for row in plan.resources}
    assert set(plan.changes[rows["port"].id]["requires"]) >= {new["b"], rows["a"].id}

    less = UpdatePlanner(list(rows.values()), compiled("net: {type: Net}"), {}, SCOPE, facts).plan()
    assert edges(less, names) == {"delete port -> delete a"}


def calls(resources: int) -> int:
    """How many calls of functions it takes to find what is implied."""
    resources_by_name: Json = {}
    for n in range(resources // 4):
        net = {"network": {"get_resource": f"net{n}"}}
        resources_by_name[f"net{n}"] = {"type": "Net"}
        resources_by_name[f"subnet{n}"] = {"type": "Subnet", "properties": net}
        resources_by_name[f"port{n}"] = {"type": "Port", "properties": net}
        resources_by_name[f"server{n}"] = {"type": "Server", "properties": {"networks": [net]}}
    plan = compiled(resources_by_name, limits=Limits(resources=0))
    counted = 0
    declared = {name: TYPES[item.type].implied_dependencies for name, item in plan.resources.items()}

    def count(frame: types.FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with_implied_dependencies(plan, declared, Budget())
    finally:
        sys.setprofile(None)
    return counted


def test_each_of_many_resources_costs_as_much_as_each_of_a_few() -> None:
    assert calls(4000) <= 10 * calls(400) * 1.1


def test_very_many_of_them_are_refused() -> None:
    ports = {f"p{n}": {"type": "Port", "properties": {"network": "x"}} for n in range(900)}
    subnets = {f"s{n}": {"type": "Subnet", "properties": {"network": "x"}} for n in range(900)}
    with pytest.raises(LimitExceeded):
        compiled({**ports, **subnets}, limits=Limits(resources=0))
