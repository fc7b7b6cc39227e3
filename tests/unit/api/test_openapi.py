"""The description of the API: it has every route, it is valid, and it names what handlers read."""

import json
import pathlib
import re
import typing

import falcon.testing
import openapi_spec_validator
import pytest
from harness.bare_api import ADDRESSES, bare_services
from stoker.api.app import make_app
from stoker.api.described import BOOLEANS, DESCRIPTIONS, NUMBERS
from stoker.api.openapi import describe
from stoker.api.operations import Operation
from stoker.cli.wiring.policy import RULES
from stoker.cli.wiring.routes import ROUTES

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[3]
READ = re.compile(r'request\.(?:one|values|flag|number)\(\s*"([\w-]+)"')
PATH = "/v1/openapi.json"


@pytest.fixture(scope="module")
def described() -> Json:
    return describe(ROUTES, RULES)


def operations_of(described: Json) -> dict[tuple[str, str], Json]:
    return {
        (path, method): operation
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }


def test_every_route_has_an_operation_with_an_id_and_a_summary(described: Json) -> None:
    operations = operations_of(described)
    routes = {(path.replace(":path}", "}"), m.lower()) for path, methods in ROUTES.items() for m in methods}
    assert operations.keys() == routes
    assert len({operation["operationId"] for operation in operations.values()}) == len(routes)
    assert [key for key, operation in operations.items() if not operation["summary"].strip()] == []


def test_it_is_valid_openapi(described: Json) -> None:
    openapi_spec_validator.validate(json.loads(json.dumps(described)))


def test_operations_that_would_have_one_id_are_refused() -> None:
    operation = Operation(ROUTES["/"]["GET"].handler, None)
    with pytest.raises(ValueError, match="meta_versions"):
        describe({"/a": {"GET": operation}, "/a:a": {"GET": operation}, "/b/a": {"GET": operation}}, RULES)


def test_it_describes_only_what_exists(described: Json) -> None:
    ids = [operation["operationId"] for operation in operations_of(described).values()]
    assert [name for name in DESCRIPTIONS if not any(one.startswith(name) for one in ids)] == []
    names = {
        item["name"] for operation in operations_of(described).values() for item in operation["parameters"]
    }
    assert names >= BOOLEANS | NUMBERS


def test_it_names_each_parameter_that_a_handler_reads(described: Json) -> None:
    names: dict[str, set[str]] = {}
    operations = operations_of(described)
    for path, methods in ROUTES.items():
        for method, operation in methods.items():
            parameters = operations[path.replace(":path}", "}"), method.lower()]["parameters"]
            read = names.setdefault(operation.handler.__module__.removeprefix("stoker."), set())
            read.update(item["name"] for item in parameters if item["in"] == "query")
    missing = [
        f"{module}: {name}"
        for module, parameters in names.items()
        for name in READ.findall((ROOT / f"{module.replace('.', '/')}.py").read_text())
        if name not in parameters
    ]
    assert missing == []


def test_it_is_served_to_everybody_without_a_database() -> None:
    api = falcon.testing.TestClient(make_app(bare_services(), ROUTES, ADDRESSES))
    answer = api.simulate_get(PATH)
    assert answer.json["servers"] == [{"url": "http://falconframework.org"}]
    assert PATH in answer.json["paths"]
    again = api.simulate_get(PATH, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.text) == (304, "")
