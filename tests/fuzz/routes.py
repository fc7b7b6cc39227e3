"""Requests on every route that the description of the API names, of several callers of one project."""

import json
import pathlib
import typing
import urllib.parse
from collections.abc import Sequence

import falcon.testing
from fuzz import templates
from fuzz.installation import Installation, Renewed
from fuzz.laws import check_status, check_text
from fuzz.mutation import MOST_BYTES, NAMES, SCALARS, Choices, Mutations, donors_of
from hypothesis import strategies as st
from stoker.api.app import BELOW_A_NAME
from stoker.api.openapi import describe
from stoker.cli.wiring.policy import RULES
from stoker.cli.wiring.routes import ROUTES

Json = typing.Any
CALLERS = (*["member"] * 12, "reader", "guest", "nobody", "operator")
OPERATORS = (*["operator"] * 3, "member")


def _mostly(usual: str, *others: str) -> Sequence[str]:
    """Return the words of a choice of which most are the usual one."""
    return (*[usual] * (7 * len(others) + 7), *others)


PATHS: dict[str, Sequence[str]] = {
    "tenant_id": _mostly("tenant", "other", "admin"),
    "stack_name": _mostly("mine", "victim", "$mine.stack_id", "$victim.arn"),
    "stack_id": _mostly("$mine.stack_id", "$victim.stack_id", "resources"),
    "resource_name": ("r", "server", "handle", "child", "config", "nothing"),
    "config_id": _mostly("$mine.config_id", "$victim.config_id", "$nil"),
    "deployment_id": _mostly("$mine.deployment_id", "$victim.deployment_id", "$nil"),
    "snapshot_id": _mostly("$mine.snapshot_id", "$victim.snapshot_id", "$nil"),
    "event_id": _mostly("$mine.event_id", "$victim.event_id", "$nil"),
    "row": ("$mine.server.row", "$mine.handle.row", "$victim.server.row", "0"),
    "server_id": ("$server", "$nil"),
    "type_name": ("OS::Heat::RandomString", "OS::Nova::Server", "child.yaml", "OS::Heat::"),
    "template_version": ("heat_template_version.2021-04-16", "AWSTemplateFormatVersion.2010-09-09", "x"),
    "output_key": ("o", "nothing"),
    "host": ("host0", "nothing"),
    "project_id": ("tenant", "other"),
    "arn": ("$mine.arn", "$victim.arn", "x"),
}
"""Usual values of the variables of paths."""
QUERIES: Sequence[str] = (
    *(
        "$mine.stack_id",
        "$victim.stack_id",
        "$mine.server.metadata",
        "$mine.server.signal",
        "$victim.server.signal",
    ),
    *(
        "$victim.event_id",
        "$victim.config_id",
        "other",
        "name",
        "asc",
        "desc",
        "CREATE_FAILED",
        "COMPLETE",
        "cfn",
        "hot",
    ),
    *(
        "true",
        "1",
        "0",
        "-1",
        "99999999999999999999",
        ",".join(["name", "id"] * 300),
        "$server",
        "%",
        "victim",
    ),
)
HEADERS: Sequence[tuple[str, str]] = (
    ("Cache-Control", "max-age=1"),
    ("Cache-Control", "max-age=1, max-age=x"),
    ("If-None-Match", "*"),
    ("If-Modified-Since", "Mon, 99 Foo 10000 25:61:61 +9999"),
    ("Content-Type", "text/plain"),
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Content-Type", "application/json; charset=utf-16"),
    ("X-Auth-Token", "$mine.server.metadata"),
    ("X-Auth-Token", "\xfc"),
    ("X-Project-Id", "other"),
    ("X-Roles", "admin"),
    ("Host", "other.example:99999"),
    ("Accept", "application/xml"),
)
_FILE = "heat_template_version: 2021-04-16\nresources: {a: {type: OS::Heat::Value, properties: {value: b}}}\n"


def _of_schema(schema: Json) -> Json:
    """Return a value that fits a schema, with all of its parts."""
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        return {name: _of_schema(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_of_schema(schema.get("items", {}))]
    return {"boolean": True, "integer": 1, "number": 1.5, "null": None}.get(kind, "x")


def _bodies(schema: Json) -> list[Json]:
    """Return bodies that fit a schema: with all of its parts, and with real templates where it has one."""
    properties = schema.get("properties", {})
    whole = _of_schema(schema)
    singles = [{name: value} for name, value in whole.items()]
    if "template" not in properties:
        more: list[Json] = [
            {"unset_hook": "pre-update"},
            {"id": "1", "status": "SUCCESS", "data": "d"},
            {"check": None},
        ]
        return [whole, *singles, *more, {"suspend": None}, {"resume": None}, {"cancel_update": None}]
    named = {"stack_name": "mine", "tags": "a,b", "timeout_mins": 5}
    fields = {name: value for name, value in named.items() if name in properties}
    document = {"template": {"heat_template_version": "rocky"}, "resources": {"r": {"resource_id": "x"}}}
    bodies = [{**fields, **body} for body in templates.corpus()]
    bodies += [{**fields, "template": _FILE, "environment": "parameters: {}", "files": {"a": _FILE}}]
    if "adopt_stack_data" in properties:
        bodies += [
            {**fields, "adopt_stack_data": document},
            {**fields, "adopt_stack_data": json.dumps(document)},
        ]
    return [*bodies, {**fields, "existing": True, "clear_parameters": ["p"], "converge": True}]


class Routes:
    """The subject.

    :param folder: an empty folder.
    """

    name = "routes"
    cost = 1

    def __init__(self, folder: pathlib.Path) -> None:
        paths = describe(ROUTES, RULES)["paths"]
        self._operations = {
            f"{method.upper()} {path}": paths[path][method] for path in paths for method in paths[path]
        }
        self._keys = list(self._operations)
        self._renewed = Renewed(folder)
        self._bodies: dict[str, Mutations] = {}
        self._donors = donors_of(templates.corpus())

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return requests."""
        return st.binary(min_size=4, max_size=MOST_BYTES).map(self.of_bytes)

    def of_bytes(self, data: bytes) -> Json:
        """Return the request that some bytes choose."""
        choices = Choices(data)
        key = choices.one(self._keys)
        operation = self._operations[key]
        names = [item["name"] for item in operation["parameters"] if item["in"] == "path"]
        queries = [item["name"] for item in operation["parameters"] if item["in"] == "query"]
        request: dict[str, Json] = {
            "operation": key,
            "caller": choices.one(OPERATORS if "/v1/admin/" in key else CALLERS),
            "path": {name: self._word(choices, PATHS[name]) for name in names},
            "query": [self._pair(choices, queries) for _ in range(choices.below(4))],
            "headers": [choices.one(HEADERS)] if choices.below(4) == 3 else [],
        }
        if "requestBody" in operation:
            request["body"] = self._mutations(key, operation).of_bytes(data[len(names) + 4 :])
        elif choices.below(8) == 7:
            request["body"] = choices.one(SCALARS)
        return request

    def _mutations(self, key: str, operation: Json) -> Mutations:
        if key not in self._bodies:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self._bodies[key] = Mutations(_bodies(schema), self._donors)
        return self._bodies[key]

    def _word(self, choices: Choices, usual: Sequence[str]) -> str:
        return str(choices.one(SCALARS))[:300] if choices.below(24) == 23 else str(choices.one(usual))

    def _pair(self, choices: Choices, names: Sequence[str]) -> list[str]:
        name = choices.one(names) if names and choices.below(8) < 7 else choices.one(NAMES)
        return [str(name)[:300], self._word(choices, QUERIES)]

    def run(self, sent: Json) -> None:
        """Send a request."""
        installation = self._renewed.get()
        try:
            answer = send(installation, sent)
            declared = {int(status) for status in self._operations[sent["operation"]]["responses"]}
            # Names with slashes, or none at all, lead to another route.
            words = [*map(installation.filled, sent["path"].values())]
            # ARNs and empty names lead to other routes.
            is_routed = all(word and word not in BELOW_A_NAME and not set("/:") & set(word) for word in words)
            check_status(answer.status_code, declared if is_routed else range(600), sent["operation"])
            if sent["caller"] != "operator":
                check_text(f"{answer.text} {answer.headers}", sent["operation"])
            is_change = answer.status_code < 300 and not sent["operation"].startswith(("GET", "HEAD"))
            if is_change:
                installation.quiet()
                if not installation.is_whole:
                    self._renewed.restore()
        except BaseException:
            self._renewed.drop()
            raise


def send(installation: Installation, sent: Json) -> falcon.testing.Result:
    """Send a request to an installation, and return its answer."""
    method, _, route = sent["operation"].partition(" ")
    for name, value in sent["path"].items():
        word = urllib.parse.quote(installation.filled(value), safe="")
        route = route.replace(f"{{{name}}}", word)
    query = urllib.parse.urlencode([(name, installation.filled(value)) for name, value in sent["query"]])
    headers = {name: installation.filled(value) for name, value in sent["headers"]}
    body = {"json": installation.filled(sent["body"])} if "body" in sent else {}
    caller = installation.callers[sent["caller"]]
    return installation.api.simulate_request(
        method, route, query_string=query, headers={**caller._headers, **headers}, **body
    )
