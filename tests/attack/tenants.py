"""Attacks of a user on another project."""

import typing
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping

import requests
from attack.cases import case
from attack.target import Party, Skip, Target, Unexpected, expect
from fuzz.laws import CANARY
from harness.route_bodies import right_body

Json = typing.Any
FORGED = {
    "X-Identity-Status": "Confirmed",
    "X-Roles": "admin",
    "X-User-Id": "x",
    "X-User-Name": "x",
    "X-Is-Admin-Project": "True",
}


def _operations(target: Target, *methods: str) -> Iterator[tuple[str, str, Json]]:
    """Yield method, path and description of the operations that the installation describes."""
    description = target.send("GET", "/v1/openapi.json").json()
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if method.upper() in methods:
                yield method.upper(), path, operation


def _filled(target: Target, path: str, project: str) -> str:
    return _with(path, {**target.names, "tenant_id": project})


def _with(path: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", urllib.parse.quote(value, safe=""))
    return path


def _is_stacks(path: str) -> bool:
    return "{stack_id}" in path or "{config_id}" in path or "{deployment_id}" in path


@case("tenant", "GET of all that a foreign stack has, by its ids below the own project", "403 or 404")
def reads_by_foreign_ids(target: Target) -> None:
    for _, path, _ in _operations(target, "GET"):
        if _is_stacks(path):
            expect(target.send("GET", _filled(target, path, target.attacker.project)), 403, 404)


@case(
    "tenant", "POST, PUT, PATCH, DELETE on a foreign stack by its ids below the own project", "400, 403, 404"
)
def changes_by_foreign_ids(target: Target) -> None:
    for method, path, _ in _operations(target, "POST", "PUT", "PATCH", "DELETE"):
        if _is_stacks(path):
            body = right_body(method, path)
            answer = target.send(method, _filled(target, path, target.attacker.project), body)
            expect(answer, 400, 403, 404)
            if answer.status_code == 400 and "{row}" not in path:
                raise Unexpected(f"{method} {path}: the body was refused, so no id was searched")
    target.check_victim()


IDS = ("stack_id", "event_id", "snapshot_id", "config_id", "deployment_id", "server_id")


@case("tenant", "each foreign id in each place of a path, beside one nobody has", "403, 404; equal")
def foreign_ids_as_nobodys(target: Target) -> None:
    own = target.own_names()
    nobodys = str(uuid.uuid4())
    for method, path, _ in _operations(target, "GET", "POST", "PUT", "PATCH", "DELETE"):
        for name in IDS:
            if f"{{{name}}}" not in path or "{row}" in path:
                continue
            answers = []
            for value in (target.names[name], nobodys):
                filled = _with(path, {**own, name: value})
                answer = target.send(method, filled, right_body(method, path))
                # The deployments of a server that nobody has are an empty list.
                expect(answer, 403, 404, *([200] if name == "server_id" else []))
                answers.append((answer.status_code, answer.text.replace(value, "ID")))
            if answers[0] != answers[1]:
                raise Unexpected(f"{method} {path}: {name} is answered by {answers}")


@case("tenant", "each request with the own token and the path of a foreign project", "403")
def foreign_project_in_the_path(target: Target) -> None:
    target.needs_keystone()
    for method, path, operation in _operations(target, "GET", "POST", "PUT", "PATCH", "DELETE"):
        if "{tenant_id}" in path and operation["security"] == [{"token": []}]:
            expect(target.send(method, _filled(target, path, target.victim.project)), 403)


@case("tenant", "each request of the description that needs a token, without one", "401")
def nobody(target: Target) -> None:
    target.needs_keystone()
    anonymous = Party(target.victim.project)
    for method, path, operation in _operations(target, "GET", "POST", "PUT", "PATCH", "DELETE"):
        if operation["security"] == [{"token": []}]:
            expect(target.send(method, _filled(target, path, target.victim.project), party=anonymous), 401)


@case("tenant", "the headers by which Keystone's middleware names an admin, without a token", "401; 403")
def forged_identity(target: Target) -> None:
    headers = {**FORGED, "X-Project-Id": target.victim.project, "X-Tenant-Id": target.victim.project}
    anonymous = Party(target.victim.project)
    if target.has_keystone:
        expect(target.send("GET", target.stacks["theirs"], party=anonymous, headers=headers), 401)
    # Without Keystone such a header must at least fit the path.
    expect(target.send("GET", target.stacks["mine"], party=anonymous, headers=headers), 401, 403)


@case("tenant", "each operators' request, by a user", "403")
def operators_requests(target: Target) -> None:
    target.needs_keystone()
    for method, path, _ in _operations(target, "GET", "POST", "PUT", "DELETE"):
        if "/v1/admin/" in path:
            expect(target.send(method, _filled(target, path, target.attacker.project)), 403)


@case("tenant", "a foreign stack by its id, name or ARN in the place of a name", "404; 302 without data")
def foreign_names(target: Target) -> None:
    names = target.names
    for name in (names["stack_id"], names["stack_name"]):
        expect(target.send("GET", target.path(target.attacker, "stacks", name)), 404)
    arn = names["arn"].partition("/resources/")[0]
    expect(target.send("GET", target.path(target.attacker, "stacks", arn)), 302, 403, 404)


MENTIONED = ("stack_id", "config_id", "deployment_id", "server_id", "event_id", "snapshot_id")
"""The victim's ids that no list of the attacker names."""
WIDER: tuple[dict[str, str], ...] = (
    {},
    {"global_tenant": "true"},
    {"global_tenant": "true", "show_nested": "1", "show_deleted": "1"},
)
"""Queries that name nobody."""
NAMES_OF = {"tenant": "project_id", "stack_user_project_id": "project_id", "name": "stack_name"}
"""Parameters of queries that take no id, with the name of what they take; the others take each id."""


@case("tenant", "each list with foreign projects, names, markers and ids", "as for nobody's; nothing foreign")
def lists_of_foreign_things(target: Target) -> None:
    own = target.own_names()
    nobodys = str(uuid.uuid4())
    for path, parameters in _lists(target):
        filled = _with(path, own)
        for query in WIDER:
            _own_list(target, filled, query)
        for parameter in sorted(parameters):
            for name in {NAMES_OF[parameter]} if parameter in NAMES_OF else MENTIONED:
                value = target.names[name]
                answers = [_own_list(target, filled, {parameter: each}) for each in (value, nobodys)]
                texts = [answer.text.replace(value, "ID").replace(nobodys, "ID") for answer in answers]
                if answers[0].status_code != answers[1].status_code or texts[0] != texts[1]:
                    raise Unexpected(f"{filled}: {parameter}={name} is answered by {texts}")


def _lists(target: Target) -> Iterator[tuple[str, set[str]]]:
    """Yield the paths of lists of what projects have, each with the parameters that name something."""
    for _, path, operation in _operations(target, "GET"):
        last = path.rpartition("/")[2]
        if "{tenant_id}" not in path or "/admin/" in path or "{row}" in path:
            continue
        if last in LISTS:
            names = {item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"}
            yield path, names & NAMING


LISTS = {
    *("stacks", "detail", "software_configs", "software_deployments", "events", "resources", "snapshots"),
    *("outputs", "stack_counts"),
}
"""The last segments of the paths of lists."""
NAMING = {
    *("tenant", "stack_user_project_id", "name", "marker", "owner_id", "id", "server_id", "parent"),
    *("physical_resource_id", "stack_name"),
}
"""Parameters of queries that name a thing or a project."""


def _own_list(target: Target, path: str, query: Mapping[str, str]) -> requests.Response:
    """Return the answer of a list of the attacker: nothing of the victim may be in it but the query."""
    answer = target.send("GET", path, params=query)
    expect(answer, 200, 400, 403, 404)
    sent = set(query.values())
    foreign = [name for name in MENTIONED if target.names[name] not in sent]
    foreign = [name for name in foreign if target.names[name] in answer.text]
    if foreign or (answer.status_code == 200 and any(value in answer.text for value in sent & _ids(target))):
        raise Unexpected(f"{path} with {query} lists what is the victim's: {foreign or sorted(sent)}")
    return answer


def _ids(target: Target) -> set[str]:
    return {target.names[name] for name in MENTIONED}


@case("tenant", "the deployments of a foreign server, by its id", "an empty list")
def deployments_of_a_foreign_server(target: Target) -> None:
    path = target.path(target.attacker, "software_deployments", "metadata", target.names["server_id"])
    answer = target.send("GET", path)
    expect(answer, 200)
    if answer.json()["metadata"]:
        raise Unexpected(answer.text[:200])


@case("tenant", "a deployment of a foreign config", "400")
def foreign_config(target: Target) -> None:
    body = {"config_id": target.names["config_id"], "server_id": target.names["server_id"]}
    expect(target.send("POST", target.path(target.attacker, "software_deployments"), body), 400, 404)


@case("reader", "a hidden parameter in each view of the own stack", "shown nowhere but in outputs")
def hidden_values(target: Target) -> None:
    stack = target.stacks["theirs"]
    for below in ("/environment", "/template", "/files", "/events", "/resources?with_detail=true"):
        answer = target.send("GET", f"{stack}{below}", party=target.victim)
        if answer.status_code != 200:
            raise Unexpected(f"{below}: {answer.status_code}")
        views = answer.json()
        if below == "/environment" and views["parameters"]["secret"] == CANARY:
            raise Unexpected("the environment shows it")
        for resource in views.get("resources", ()) if below.startswith("/resources") else ():
            if resource["resource_name"] == "value" and CANARY in str(resource["properties"]):
                raise Unexpected("the properties of a resource show it")


@case("tenant", "paths that leave a segment: dots, encoded slashes, NUL, an empty one", "4xx or a redirect")
def path_traversal(target: Target) -> None:
    foreign = target.stacks["theirs"].removeprefix("/v1/")
    for path in (
        f"/v1/{target.attacker.project}/../{foreign}",
        f"/v1/{target.attacker.project}/%2e%2e/{foreign}",
        f"/v1/{target.attacker.project}%2f..%2f{foreign}",
        f"/v1/{target.attacker.project}/stacks/..%2f..%2f{foreign.replace('/', '%2f')}",
        f"/v1//{foreign}",
        f"/v1/{target.attacker.project}/stacks/%00",
        "/console/..%2f..%2f..%2fetc%2fpasswd",
        "/console/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
    ):
        target.needs_plain()
        token = target.attacker.headers.get("X-Auth-Token", "")
        lines = (
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: {token}\r\nConnection: close\r\n\r\n"
        )
        reply = target.raw(lines.encode())
        if CANARY.encode() in reply or b"root:" in reply or not reply or reply.split()[1][:1] not in b"34":
            raise Unexpected(f"{path}: {reply[:200]!r}")


@case("tenant", "GET of the victim's guest address with the own signature", "403")
def foreign_guest_address(target: Target) -> None:
    config = target.outputs["mine"]["polled"]
    url = urllib.parse.urlsplit(config["request"]["metadata_url"])
    path = target.stacks["theirs"]
    if "/stacks/" not in url.path:
        raise Skip("the address of guests has another form")
    row = url.path.rpartition("/")[2]
    foreign = f"{path}/resources/polled/guest/{row}"
    expect(target.send("GET", foreign, party=Party(""), params=dict(urllib.parse.parse_qsl(url.query))), 403)
