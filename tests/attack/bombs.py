"""Requests that ask for much more than they send, or for something inside of the installation."""

import time
import typing
from collections.abc import Mapping

from attack.cases import case
from attack.target import Party, Target, Unexpected, expect
from harness import attacks

Json = typing.Any
SECONDS = 30.0
"""Seconds after which an answer is too late; the budget of a request ends it long before."""
VERSION = "2021-04-16"


def _preview(target: Target, body: Json) -> int:
    """Send a preview of a stack, and return the status of its answer.

    :raises Unexpected: it is late, or an error of the server.
    """
    body = {"stack_name": f"attack-bomb-{target.run}", **body}
    began = time.monotonic()
    answer = target.send("POST", target.path(target.attacker, "stacks", "preview"), body)
    expect(answer, 200, 400, 404, 413, 429, 503)
    if (seconds := time.monotonic() - began) > SECONDS:
        raise Unexpected(f"it took {seconds:.0f} s")
    expect(target.send("GET", "/healthcheck"), 200)
    return answer.status_code


def _refused(target: Target, body: Json) -> None:
    if (status := _preview(target, body)) == 200:
        raise Unexpected("it was accepted")
    if status == 503:
        raise Unexpected("it was not refused, but the service is busy")


def _value(value: Json, **sections: Json) -> Json:
    resource = {"type": "OS::Heat::Value", "properties": {"value": value}}
    return {"template": {"heat_template_version": VERSION, "resources": {"r": resource}, **sections}}


@case(
    "bomb",
    "each template that multiplies: functions, conditions, registries, aliases, nested stacks",
    "no 5xx",
)
def templates_that_multiply(target: Target) -> None:
    for body in attacks.requests():
        _preview(target, body)


@case("bomb", "a billion laughs in YAML, as template, environment and file", "400")
def yaml_bomb(target: Target) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 12)]
    text = "\n".join([f"heat_template_version: {VERSION}", *lines])
    _refused(target, {"template": text})
    _refused(target, {**_value("x"), "environment": "\n".join(lines)})
    _refused(target, {**_value("x"), "files": {"e.yaml": text}, "environment_files": ["e.yaml"]})


@case("bomb", "YAML tags that make Python objects", "400")
def yaml_tags(target: Target) -> None:
    for tag in ("!!python/object/apply:os.system ['true']", "!!python/name:os.system", "!!python/module:os"):
        _refused(target, {"template": f"heat_template_version: {VERSION}\nresources: {tag}\n"})


@case("bomb", "YAQL that counts without end, or reads what is not its data", "400")
def yaql(target: Target) -> None:
    for expression in (
        "generate(0, true, $ + 1).sum()",
        "range(100000000).toList().len()",
        "range(1000000).select(range(1000000).sum()).sum()",
        "$.__class__.__mro__",
        "'x' * 1000000000",
    ):
        _refused(target, _value({"yaql": {"expression": expression, "data": {}}}))


@case("bomb", "a pattern of a parameter that backtracks for years", "400, or judged in time")
def regular_expression(target: Target) -> None:
    declared = {"type": "string", "constraints": [{"allowed_pattern": "(a|a|aa)+$"}]}
    body = _value("x", parameters={"p": declared})
    _refused(target, {**body, "parameters": {"p": "a" * 5000 + "!"}})


INSIDE = (
    "http://127.0.0.1:22/",
    "http://169.254.169.254/latest/meta-data/",
    "https://127.0.0.1/x.yaml",
    "https://[::1]/x.yaml",
    "https://localhost/x.yaml",
    "https://0x7f000001/x.yaml",
    "file:///etc/passwd",
    "ftp://127.0.0.1/x",
)
"""Addresses inside of the installation."""


@case(
    "bomb", "addresses inside of the installation as template_url, type, environment and file", "400 or 404"
)
def server_side_requests(target: Target) -> None:
    for url in INSIDE:
        _refused(target, {"template_url": url})
        nested = {"heat_template_version": VERSION, "resources": {"r": {"type": f"{url}x.yaml"}}}
        _refused(target, {"template": nested})
        _refused(target, _value({"get_file": url}))
        registry: Mapping[str, Json] = {"resource_registry": {"A::B": f"{url}x.yaml"}}
        mapped = {"heat_template_version": VERSION, "resources": {"r": {"type": "A::B"}}}
        _refused(target, {"template": mapped, "environment": registry})


@case("bomb", "files of the host by get_file, type and environment_files", "400 or 404")
def files_of_the_host(target: Target) -> None:
    for path in ("/etc/passwd", "../../../../etc/passwd", "/etc/stoker/stoker.conf"):
        _refused(target, _value({"get_file": path}))
        nested = {"heat_template_version": VERSION, "resources": {"r": {"type": f"{path}.yaml"}}}
        _refused(target, {"template": nested})
        _refused(target, {**_value("x"), "environment_files": [path]})


@case("bomb", "a stack whose steps compute lists that multiply, beside a small one", "others do not wait")
def steps_that_multiply(target: Target) -> None:
    """Make lists that are known in steps only, and meanwhile a stack of another project."""
    lists = {"get_attr": ["a", "value"]}
    product = {"repeat": {"for_each": {"%a%": lists, "%b%": lists}, "template": "%a%-%b%"}}
    resources = {"a": _heat_value([f"item{number}" for number in range(200)])}
    resources |= {f"r{number}": _heat_value(product) for number in range(40)}
    described = {**_heat_value("x"), "metadata": {"all": product}}
    resources |= {f"m{number}": described for number in range(40)}
    large = _create(target, target.attacker, "large", resources)
    try:
        began = time.monotonic()
        resources = {"a": _heat_value("x"), "b": _heat_value({"get_attr": ["a", "value"]})}
        small = _create(target, target.victim, "small", resources)
        try:
            target.ended(small, target.victim)
            if (seconds := time.monotonic() - began) > SECONDS:
                raise Unexpected(f"the other project's stack took {seconds:.0f} s")
        finally:
            target.send("DELETE", small, party=target.victim)
    finally:
        target.send("DELETE", large, party=target.attacker)


def _heat_value(value: Json) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"value": value}}


def _create(target: Target, party: Party, name: str, resources: Json) -> str:
    """Create a stack, and return its path."""
    stack_name = f"attack-{name}-{target.run}"
    template = {"heat_template_version": VERSION, "resources": resources}
    body = {"stack_name": stack_name, "template": template}
    answer = target.send("POST", target.path(party, "stacks"), body, party)
    expect(answer, 201)
    return target.path(party, "stacks", stack_name, answer.json()["stack"]["id"])


@case("bomb", "8 MB of a form, signal, wait condition or login, from nobody that is known", "413")
def large_bodies_of_strangers(target: Target) -> None:
    key = "AWSAccessKeyId=00000000-0000-4000-8000-000000000000.1"
    form = f"Action=DescribeStackResource&{key}&SignatureVersion=2&SignatureMethod=HmacSHA256&Signature=x&a="
    data = form.encode() + b"%F0%9F" * 1_300_000
    arn = "arn:openstack:heat::p:stacks/s/1/resources/r"
    for method, path in (
        ("POST", "/v1"),
        ("POST", f"/v1/signal/{arn}"),
        ("PUT", f"/v1/waitcondition/{arn}"),
        ("POST", "/v1/identity/v3/auth/tokens"),
    ):
        began = time.monotonic()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        expect(target.send(method, path, data=data, headers=headers), 413)
        if (seconds := time.monotonic() - began) > SECONDS:
            raise Unexpected(f"it took {seconds:.0f} s")


@case("bomb", "a body above the limit, too deep, no JSON, with NUL or half a character", "400, 413, 415")
def broken_bodies(target: Target) -> None:
    path = target.path(target.attacker, "stacks", "preview")
    json_type = {"Content-Type": "application/json"}
    for data in (
        b"x" * 9_000_000,
        b"[" * 200_000,
        b'{"stack_name": ' + b"9" * 5000 + b"}",
        b'{"stack_name": NaN}',
        b'{"stack_name": "a\\u0000"}',
        b'{"stack_name": "a", "template": "\\ud800"}',
        b'{"files": ' + b'{"a": ' * 400 + b"1" + b"}" * 401,
        b"\xff\xfe{",
    ):
        expect(target.send("POST", path, data=data, headers=json_type), 400, 413)
    expect(target.send("POST", path, data=b"a=b", headers={"Content-Type": "text/html"}), 415)
