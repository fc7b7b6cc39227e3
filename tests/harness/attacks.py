"""Requests that ask for much more than they send, each with how it must end.

Run as a program it carries out each attack in a process of its own, and prints a line of JSON for each:
processor time, memory, how much slower than the reference machine the host was meanwhile, and the end.
"""

import json
import os
import resource
import sys
import time
import typing
from collections.abc import Callable

from harness.resource_types import types_of
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Identity, Limits
from stoker.template.errors import TemplateError
from stoker.template.load import load_template
from stoker.template.sandbox.pool import install

from .pace import measure

RESOURCE_TYPES = types_of("heat")

Json = typing.Any
VERSION = "2018-08-31"
ACCEPTED = ""
_ATTACKS: dict[str, tuple[str, Callable[[], None]]] = {}
MEMORY = 3 << 30
"""Bytes of address space: an attack that succeeds shall not fell the machine."""


def attack(expected: str) -> Callable[[Callable[[], None]], None]:
    """Register an attack.

    :param expected: beginning of the error's text, its path; ACCEPTED: no error.
    """

    def register(run: Callable[[], None]) -> None:
        _ATTACKS[run.__name__] = (expected, run)

    return register


def names() -> list[str]:
    """Return the attacks."""
    return list(_ATTACKS)


def expected(name: str) -> str:
    """Return how the attack must end."""
    return _ATTACKS[name][0]


_SEALER = Sealer([Sealer.generate_key()]).of_stack("project", "stack")
_COMPILER = GoalCompiler(ResourceRegistry(RESOURCE_TYPES), Limits())
_RECORDS: list[list[Json]] = []
"""Lists that take the bodies of the attacks; while there is one, they are not carried out."""


def send(template: Json, **goal: Json) -> None:
    """Compile what a request holds, as the API does."""
    if isinstance(template, dict):
        template = {"heat_template_version": VERSION, **template}
    if _RECORDS:
        _RECORDS[-1].append({"template": template, **goal})
        return
    _COMPILER.compile(Goal(template, **goal), Identity("stack", "stack", "project"), _SEALER)


def load(text: str) -> None:
    """Read a template, as the API does."""
    if _RECORDS:
        _RECORDS[-1].append({"template": text})
        return
    load_template(text)


def requests() -> list[Json]:
    """Return the body of each attack as a request to create a stack has it, but for the stack's name."""
    bodies: list[Json] = []
    _RECORDS.append(bodies)
    try:
        for _, run in _ATTACKS.values():
            run()
    finally:
        _RECORDS.pop()
    return bodies


def value(tree: Json, times: int = 1) -> Json:
    """Return resources that hold the value."""
    body = {"type": "OS::Heat::Value", "properties": {"value": tree}}
    return {"resources": {f"r{index}": body for index in range(times)}}


def with_param(kind: str = "string") -> Json:
    """Return the declaration of the parameter p."""
    return {"parameters": {"p": {"type": kind}}}


P = {"get_param": "p"}
HERE = "resources.r0.properties.value"

# -- functions -------------------------------------------------------------------------------------


@attack("resources.r3.properties.value.list_join: the request computes more than")
def list_join_of_a_long_parameter() -> None:
    send({**with_param(), **value({"list_join": ["", [P] * 60]}, 100)}, parameters={"p": "y" * 117_000})


@attack("resources.r3.properties.value.str_replace")
def str_replace_of_16_mb_80_times() -> None:
    replaced = {"str_replace": {"template": "a" * 16, "params": {"a": P}}}
    send({**with_param(), **value(replaced, 80)}, parameters={"p": "y" * 1_000_000})


@attack("resources.r49.properties.value.get_param: the request computes more than")
def a_parameter_of_1_mb_in_1000_resources() -> None:
    send({**with_param(), **value(P, 1000)}, parameters={"p": "y" * 1_040_000})


@attack("resources.r")
def a_file_of_1_mb_in_1000_resources() -> None:
    send(value({"get_file": "f"}, 1000), files={"f": "y" * 1_000_000})


@attack(f"{HERE}.str_split: the request computes more than")
def str_split_of_2_mb() -> None:
    send({**with_param(), **value({"str_split": [",", P, 0]}, 100)}, parameters={"p": "," * 2_000_000})


@attack("resources.r")
def filter_of_30000_lists_by_30000_lists() -> None:
    lists = {"p": [[index] for index in range(30_000)]}
    send({**with_param("json"), **value({"filter": [P, P]}, 20)}, parameters=lists)


@attack(f"{HERE}.repeat: ")
def repeat_over_six_lists() -> None:
    loops = {f"%{index}%": list(range(10)) for index in range(6)}
    send(value({"repeat": {"for_each": loops, "template": "%0%"}}))


@attack(f"{HERE}.repeat: ")
def repeat_with_8000_variables() -> None:
    loops = {f"%{index}%": [1] for index in range(8000)}
    send(value({"repeat": {"for_each": loops, "template": ["x"] * 50_000}}))


@attack(f"{HERE}.repeat")
def repeat_that_multiplies_a_parameter() -> None:
    loops = {"%a%": [P] * 20, "%b%": list(range(100))}
    parameters = {"p": list(range(50_000))}
    send(
        {**with_param("json"), **value({"repeat": {"for_each": loops, "template": "%a%"}})},
        parameters=parameters,
    )


@attack(f"{HERE}.repeat")
def repeat_that_makes_a_value_1000_levels_deep() -> None:
    tree: Json = "x"
    for number in range(19):
        inner: Json = f"%{number}%"
        for _ in range(4 * number):
            inner = [inner]
        tree = {"repeat": {"for_each": {f"%{number}%": [tree]}, "template": inner}}
    send(value(tree))


@attack(f"{HERE}.list_concat")
def list_concat_of_a_long_list_90_levels_deep() -> None:
    tree: Json = ["x"] * 100_000
    for _ in range(45):
        tree = {"list_concat": [tree]}
    send(value(tree))


@attack("resources.r")
def map_replace_by_a_large_value() -> None:
    original = {f"k{index}": "x" for index in range(1000)}
    tree = {"map_replace": [original, {"values": {"x": P}}]}
    send({**with_param("json"), **value(tree, 3)}, parameters={"p": list(range(50_000))})


@attack(f"{HERE}.str_replace: ")
def str_replace_of_20000_words_in_a_long_text() -> None:
    words = {f"w{index}": "" for index in range(20_000)}
    tree = {"str_replace": {"template": P, "params": words}}
    send({**with_param(), **value(tree)}, parameters={"p": "y" * 7_000_000})


@attack(f"{HERE}.str_replace: ")
def str_replace_that_makes_a_piece_of_each_character() -> None:
    tree = {"str_replace": {"template": P, "params": {"y": ""}}}
    send({**with_param(), **value(tree)}, parameters={"p": "y" * 7_000_000})


@attack("resources.r")
def digest_of_7_mb_5000_times() -> None:
    send({**with_param(), **value({"digest": ["md5", P]}, 5000)}, parameters={"p": "y" * 7_000_000})


@attack("resources.r")
def make_url_of_3_mb_4000_times() -> None:
    send({**with_param(), **value({"make_url": {"path": P}}, 4000)}, parameters={"p": "ü" * 3_000_000})


@attack("resources.r")
def json_that_is_six_times_as_long_as_its_value() -> None:
    tree = {"list_join": ["", [P] * 3]}
    send({**with_param("json"), **value(tree, 9)}, parameters={"p": ["\1" * 7_000_000]})


# -- conditions, parameters, names -----------------------------------------------------------------


@attack("conditions.c")
def conditions_that_compare_long_lists() -> None:
    compared = {"equals": [P, {"get_param": "q"}]}
    conditions = {f"c{index}": compared for index in range(5000)}
    items = list(range(100_000))
    declared = {"parameters": {"p": {"type": "json"}, "q": {"type": "json"}}}
    send({**declared, "conditions": conditions}, parameters={"p": items, "q": [*items]})


@attack(ACCEPTED)
def a_chain_of_5000_conditions() -> None:
    chain = {f"c{index}": {"not": f"c{index + 1}"} for index in range(5000)}
    send({"conditions": {**chain, "c5000": True}})


@attack(ACCEPTED)
def allowed_values_of_40000() -> None:
    values = [f"v{index}" for index in range(30_000)]
    declared = {"type": "comma_delimited_list", "constraints": [{"allowed_values": values}]}
    send({"parameters": {"p": declared}}, parameters={"p": values})


@attack(ACCEPTED)
def a_parameter_group_of_10000() -> None:
    declared = {f"p{index}": {"type": "string", "default": ""} for index in range(8000)}
    send({"parameters": declared, "parameter_groups": [{"parameters": [*declared]}]})


@attack("The specified reference")
def a_name_like_2000_long_ones() -> None:
    bodies = {f"{'a' * 190}{index}": {"type": "OS::Heat::None"} for index in range(1900)}
    send({"resources": {**bodies, "z": {"type": "OS::Heat::None", "depends_on": "a" * 190 + "b"}}})


@attack("The specified reference")
def a_name_like_9000_others() -> None:
    bodies = {f"group_member_{index}": {"type": "OS::Heat::None"} for index in range(7000)}
    send({"resources": {**bodies, "z": {"type": "OS::Heat::None", "depends_on": "group_memver_1"}}})


@attack("resources.")
def dependencies_by_an_alias() -> None:
    every = [f"r{index}" for index in range(640)]
    first = "".join(f"  {name}: {{type: N}}\n" for name in every)
    listed = f"  s0: {{type: N, depends_on: &a [{', '.join(every)}]}}\n"
    dependents = "".join(f"  s{index}: {{type: N, depends_on: *a}}\n" for index in range(1, 755))
    send(f"heat_template_version: {VERSION}\nresources:\n{first}{listed}{dependents}")


# -- environments ----------------------------------------------------------------------------------


def _values(count: int) -> Json:
    body = {"type": "OS::Heat::None"}
    return {"resources": {f"r{index}": body for index in range(count)}}


@attack(ACCEPTED)
def a_registry_that_removes_again_and_again() -> None:
    entries: Json = {}
    for index in range(40_000):
        entries[f"a{index}"] = "b"
        entries[f"c{index}*"] = None
    send(_values(1), environment={"resource_registry": entries})


@attack("resources.r")
def a_registry_of_20000_wildcards() -> None:
    entries = {f"a{index}*": "b" for index in range(20_000)}
    send(_values(9000), environment={"resource_registry": entries})


@attack("resources.r")
def a_registry_of_20000_patterns_of_names() -> None:
    entries = {f"a{index}*": {"hooks": "pre-create"} for index in range(20_000)}
    send(_values(9000), environment={"resource_registry": {"resources": entries}})


@attack("resources.r0: ")
def a_registry_of_patterns_that_take_long_to_read() -> None:
    entries = {f"{'[' * 900}{index}": {"hooks": "pre-create"} for index in range(6000)}
    send(_values(1), environment={"resource_registry": {"resources": entries}})


@attack("resources.r")
def a_registry_that_maps_a_type_to_ever_longer_ones() -> None:
    entries = {"OS*": "OS" + "y" * 100_000 + "*"}
    send(_values(9000), environment={"resource_registry": entries})


@attack("e.yaml: ")
def an_environment_file_named_5000_times() -> None:
    text = "parameters:\n" + "".join(f"  p{index}: [a, b]\n" for index in range(10_000))
    send(_values(1), files={"e.yaml": text}, environment_files=["e.yaml"] * 5000)


@attack("e.yaml: ")
def an_environment_file_that_appends_to_itself() -> None:
    text = f"parameter_merge_strategies: {{p: merge}}\nparameters: {{p: {'x' * 200_000}}}"
    send(_values(1), files={"e.yaml": text}, environment_files=["e.yaml"] * 5000)


@attack("e.yaml: ")
def an_environment_file_of_6_mb() -> None:
    text = "parameters: {a: [" + "1," * 3_000_000 + "]}"
    send(_values(1), files={"e.yaml": text}, environment_files=["e.yaml"])


# -- documents -------------------------------------------------------------------------------------


@attack("the template has more than 10 lines that begin with %")
def many_lines_of_tag() -> None:
    load("".join(f"%TAG !a{index}! x\n" for index in range(30_000)) + "--- {a: 1}")


@attack("the template is not valid YAML")
def a_number_to_the_base_of_sixty() -> None:
    load("a: 1" + ":1" * 250_000)


@attack("the template expands to more than")
def an_alias_of_a_long_text() -> None:
    load("a: &a " + "x" * 400_000 + "\nb: [" + "*a," * 60_000 + "]")


@attack("the template expands to more than")
def merge_keys_that_multiply() -> None:
    entries = ",".join(f"k{index}: 1" for index in range(5000))
    load(f"a: &a {{{entries}}}\nb: [" + "{<<: *a}," * 5000 + "]")


@attack("the template ")
def merge_keys_in_a_long_chain() -> None:
    chain = "".join(f"  a{index}: &a{index} {{<<: *a{index - 1}}}\n" for index in range(1, 900))
    load("x:\n  a0: &a0 {}\n" + chain + "z: {<<: *a899}\n")


@attack("the template is deeper than 100 levels")
def half_a_million_brackets() -> None:
    load("[" * 500_000)


# -- nested stacks ---------------------------------------------------------------------------------


def _nested(body: Json, times: int, properties: Json = None) -> Json:
    text = json.dumps({"heat_template_version": VERSION, **body})
    resources = {
        f"n{index}": {"type": "child.yaml", "properties": {} if properties is None else properties(index)}
        for index in range(times)
    }
    return {"resources": resources}, {"child.yaml": text}


@attack(ACCEPTED)
def a_nested_template_of_226_kib_400_times() -> None:
    parameters = {f"p{index}": {"type": "string", "default": "x" * 50} for index in range(2400)}
    template, files = _nested({"parameters": parameters, **_values(1)}, 400)
    send(template, files=files)


@attack("resources.n")
def a_nested_template_with_a_long_text_5000_times() -> None:
    template, files = _nested(value("x" * 400_000), 3000)
    send(template, files=files)


@attack("resources.n")
def a_nested_template_with_other_parameters_each_time() -> None:
    conditions = {f"c{index}": {"equals": [P, "x"]} for index in range(3000)}
    child = {**with_param(), "conditions": conditions, **_values(1)}
    template, files = _nested(child, 2000, lambda index: {"p": str(index)})
    send(template, files=files)


@attack("resources.g")
def a_group_of_10000_members_with_a_long_text() -> None:
    body = {"type": "OS::Heat::Value", "properties": {"value": "x" * 20_000}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 9000, "resource_def": body}}
    send({"resources": {"g": group}})


@attack("resources.g")
def a_chain_of_5000_members_of_which_5000_attributes_are_asked() -> None:
    chain = {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["OS::Heat::None"] * 5000}}
    outputs = {f"o{index}": {"value": {"get_attr": ["g", f"a{index}"]}} for index in range(5000)}
    send({"resources": {"g": chain}, "outputs": outputs})


# -- as a program ----------------------------------------------------------------------------------


def _carry_out(name: str) -> dict[str, Json]:
    pace = measure()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    since = time.process_time()
    try:
        _ATTACKS[name][1]()
        ended = ""
    except TemplateError as error:
        ended = str(error)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    used = time.process_time() - since
    slower = pace.worse(measure()).processor
    return {"name": name, "seconds": used, "slower": slower, "mib": grown / 1024, "ended": ended[:300]}


def main() -> None:
    """Carry out the attacks that the arguments name, or all."""
    install()
    send(_values(1))  # What is loaded when first needed is no part of an attack.
    for name in sys.argv[1:] or names():
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            print(json.dumps(_carry_out(name)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
