"""The description of the API in the form of OpenAPI 3.1, made from the table of routes.

The form: https://spec.openapis.org/oas/v3.1.1.html
"""

import collections
import http
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..shapes import Json
from .described import BOOLEANS, DESCRIPTIONS, NUMBERS, SIGNED_QUERY, USUAL, Description
from .operations import Operation, Routes
from .policy import Rule
from .request import CHANGING_METHODS

VERSION = "3.1.1"
_VARIABLE = re.compile(r"\{(\w+)(:\w+)?\}")
_TEXT: Json = {"type": "string"}

_FAULT: Json = {
    "type": "object",
    "properties": {
        "code": {"type": "integer"},
        "title": _TEXT,
        "explanation": _TEXT,
        "error": {
            "type": "object",
            "properties": {
                "type": {**_TEXT, "description": "The stable name of the error."},
                "message": _TEXT,
                "traceback": {"type": "null"},
                "errors": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"path": _TEXT, "message": _TEXT}},
                    "description": "All errors of a template, if it has several or the text no path.",
                },
            },
            "required": ["type", "message", "traceback"],
        },
    },
    "required": ["code", "title", "explanation", "error"],
}

_SCHEMES: Json = {
    "token": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Auth-Token",
        "description": "A token of Keystone's for the project of the path, or an operator's.",
    },
    "address": {
        "type": "apiKey",
        "in": "query",
        "name": "Signature",
        "description": "The signature of an address that Stoker gives to a guest.",
    },
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "A signature of EC2's API, version 4; or version 2 in the query.",
    },
}


@dataclass(frozen=True)
class _Route:
    """One method of one path."""

    path: str
    method: str
    operation: Operation

    @property
    def name(self) -> str:
        """Return the name of the operation, or of its handler, with its module, or with its feature."""
        if self.operation.name:
            return self.operation.name
        handler = self.operation.handler
        folder, _, module = handler.__module__.rpartition(".")
        if module == "handlers":
            module = folder.rpartition(".")[2]
        function = handler.__qualname__.partition(".<locals>")[0].rpartition(".")[2]
        return f"{module}_{function}"

    @property
    def description(self) -> Description:
        """Return the parts of the operation that the route does not say."""
        return self.operation.description or DESCRIPTIONS.get(self.name, USUAL)

    def ids(self) -> Iterator[str]:
        """Yield possible ids of the operation, the shortest first; the last is like no other."""
        end = re.sub(r"\W", "", self.path.rpartition("/")[2])
        yield self.name
        yield f"{self.name}_{self.method.lower()}"
        yield f"{self.name}_{self.method.lower()}_{end}"


def describe(routes: Routes, rules: Iterable[Rule]) -> dict[str, Json]:
    """Return the description of all routes, but for the address of the service.

    :param rules: the policy's rules, whose descriptions are those of their operations.
    :raises ValueError: two operations would have the same id.
    """
    entries = [
        _Route(path, method, operation)
        for path, operations in routes.items()
        for method, operation in operations.items()
    ]
    ids = operation_ids(entries)
    summaries = {name: text for name, _, text, _, _ in rules}
    paths: dict[str, dict[str, Json]] = {}
    for entry, identifier in zip(entries, ids, strict=True):
        path = _VARIABLE.sub(r"{\1}", entry.path)
        paths.setdefault(path, {})[entry.method.lower()] = _operation(entry, identifier, summaries)
    faults = {str(status): _response(status, "Fault") for status in sorted(http.HTTPStatus) if status >= 400}
    used = {
        status for operations in paths.values() for one in operations.values() for status in one["responses"]
    }
    return {
        "openapi": VERSION,
        "info": {
            "title": "Stoker",
            "version": "1.0",
            "summary": "Heat's Orchestration API v1, and what Stoker adds to it.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Fault": _FAULT},
            "responses": {name: fault for name, fault in faults.items() if name in used},
            "securitySchemes": _SCHEMES,
        },
    }


def operation_ids(entries: list[_Route]) -> list[str]:
    """Return an id for each operation: the handler's name, and as much else as distinguishes it.

    :raises ValueError: two operations would have the same id.
    """
    counts = collections.Counter(identifier for entry in entries for identifier in set(entry.ids()))
    ids = [next((one for one in entry.ids() if counts[one] == 1), entry.name) for entry in entries]
    if twice := [identifier for identifier, count in collections.Counter(ids).items() if count > 1]:
        raise ValueError(f"these operations have the same id: {', '.join(twice)}")
    return ids


def _operation(entry: _Route, identifier: str, summaries: Mapping[str, str]) -> Json:
    described = entry.description
    view: dict[str, Json] = {
        "operationId": identifier,
        "tags": [identifier.partition("_")[0] if entry.operation.rule is None else _tag(entry)],
        "summary": _summary(entry, summaries),
        "security": _security(entry),
        "parameters": [*_path_parameters(entry.path), *_query_parameters(entry)],
        "responses": _responses(entry),
    }
    if described.body is not None and entry.method in ("POST", "PUT", "PATCH"):
        content = {"application/json": {"schema": described.body}}
        view["requestBody"] = {"content": content, "required": "required" in described.body}
    return view


def _tag(entry: _Route) -> str:
    return (entry.operation.rule or "").partition(":")[0]


def _summary(entry: _Route, summaries: Mapping[str, str]) -> str:
    text = entry.description.summary or summaries.get(entry.operation.rule or "", "")
    return text or (entry.operation.handler.__doc__ or "").partition("\n")[0]


def _security(entry: _Route) -> list[Json]:
    operation = entry.operation
    if operation.presigned:
        return [{"address": []}, {"token": []}]
    if operation.signed:
        return [{"signature": []}] if entry.name != "identity_token" else []
    return [{"token": []}] if operation.everywhere or "{tenant_id}" in entry.path else []


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
        for name, _ in _VARIABLE.findall(path)
    ]


def _query_parameters(entry: _Route) -> list[Json]:
    names = entry.description.query | (entry.operation.shared or frozenset())
    if entry.operation.presigned:
        names |= SIGNED_QUERY
    return [{"name": name, "in": "query", "schema": _query_schema(name)} for name in sorted(names)]


def _query_schema(name: str) -> Json:
    if name in BOOLEANS:
        return {"type": "boolean"}
    return {"type": "integer", "minimum": 0} if name in NUMBERS else _TEXT


def _responses(entry: _Route) -> Mapping[str, Json]:
    good = set(entry.description.statuses)
    if entry.operation.shared is not None:
        good.add(304)
    responses = {str(status): {"description": http.HTTPStatus(status).phrase} for status in sorted(good)}
    wrong = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(_wrong(entry))}
    return {**responses, **wrong}


def _wrong(entry: _Route) -> set[int]:
    """Return the status codes of errors: those of all requests, and those of the route's kind."""
    statuses = {400, 429, 503}
    if _security(entry):
        statuses |= {401, 403}
    if _VARIABLE.search(entry.path) or entry.operation.signed:
        statuses.add(404)
    if entry.method in CHANGING_METHODS:
        statuses |= {408, 409, 413, 415}
    if entry.operation.signed:
        statuses |= {401, 405}
    return statuses


def _response(status: int, schema: str) -> Json:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": http.HTTPStatus(status).phrase, "content": content}
