"""A GET is one transaction: all that an answer shows is of one moment."""

import pathlib
import typing
from collections.abc import Callable

import falcon.testing
import pytest
import sqlalchemy as sa
from simulation.console import console_of, report_all
from simulation.test_life import api_of
from simulation.world import World
from stoker.cli.wiring.routes import ROUTES
from stoker.db.states import Status
from stoker.engine.snapshots import take_snapshot

Json = typing.Any
ONE_READ = 1
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "one": {"type": "Sim::Server", "properties": {"after": 0}},
        "two": {"type": "Sim::Server", "properties": {"after": 0}, "depends_on": "one"},
    },
    "outputs": {"id": {"value": {"get_resource": "one"}}},
}
NONE = {
    "/v1/identity/v3",
    "/",
    "/v1",
    "/healthcheck",
    "/v1/openapi.json",
    "/v1/{tenant_id}/resource_types",
    "/v1/{tenant_id}/resource_types/{type_name}",
    "/v1/{tenant_id}/resource_types/{type_name}/template",
    "/v1/{tenant_id}/template_versions",
    "/v1/{tenant_id}/template_versions/{template_version}/functions",
    "/v1/{tenant_id}/build_info",
}
"""Routes that show what the installation is, and nothing that is stored."""
QUERIES = {
    "/v1/{tenant_id}/stacks": "with_count=true&marker={stack_id}&limit=1",
    "/v1/{tenant_id}/stacks/detail": "marker={stack_id}",
    "/v1/{tenant_id}/software_configs": "marker={config_id}&limit=1",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/resources": "nested_depth=3&with_detail=true",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/events": "nested_depth=3&marker={event_id}",
}
"""The query parameters that make a handler read most."""


class Scene:
    """A stack of which there is something to show by every route.

    :ivar path: what the variables of a route stand for.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.api = api_of(world, console=console_of(world))
        stack = world.create("s", TEMPLATE)
        assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
        snapshot = take_snapshot(world.context, world.stack(stack.id), "kept")
        assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
        report_all(world)
        below = f"/v1/tenant/stacks/s/{stack.id}"
        event = self.api.simulate_get(f"{below}/resources/one/events").json["events"][0]["id"]
        self.path = {
            "tenant_id": "tenant",
            "project_id": "tenant",
            "stack_name": "s",
            "stack_id": stack.id,
            "resource_name": "one",
            "event_id": event,
            "snapshot_id": snapshot.id,
            "output_key": "id",
            "type_name": "Sim::Server",
            "template_version": "heat_template_version.2018-08-31",
            "host": "host0",
            **self.software(),
        }

    def software(self) -> dict[str, str]:
        """A config and its deployment."""
        config = self.api.simulate_post("/v1/tenant/software_configs", json={"config": "x"})
        config_id = config.json["software_config"]["id"]
        body = {"config_id": config_id, "server_id": "server"}
        answer = self.api.simulate_post("/v1/tenant/software_deployments", json=body)
        deployment_id = answer.json["software_deployment"]["id"]
        return {"config_id": config_id, "deployment_id": deployment_id, "server_id": "server"}

    def get(self, route: str, query: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
        """Return the status of the answer, and how many transactions have read and written for it."""
        database = self.world.database
        counts = {"read": 0, "write": 0}

        def counting(name: str) -> Callable[..., Json]:
            real = getattr(database, name)

            def count(*args: Json, **options: Json) -> Json:
                counts[name] += 1
                return real(*args, **options)

            return count

        with monkeypatch.context() as patch:
            for name in counts:
                patch.setattr(database, name, counting(name))
            answer: falcon.testing.Result = self.api.simulate_get(
                route.format(**self.path), query_string=query.format(**self.path)
            )
        return answer.status_code, counts["read"], counts["write"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(World(tmp_path_factory.mktemp("reads"), hosts=1))


GETS = [
    path for path, operations in ROUTES.items() if "GET" in operations and not operations["GET"].presigned
]
"""All but the poll of a guest, which stores that it came; see tests/api/test_guests.py."""


def test_the_routes_are_known() -> None:
    assert NONE | QUERIES.keys() <= set(GETS)


@pytest.mark.parametrize("route", GETS)
def test_a_get_reads_in_one_transaction(scene: Scene, route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    status, reads, writes = scene.get(route, QUERIES.get(route, ""), monkeypatch)
    assert status in (200, 300, 302)
    assert (reads, writes) == (0 if route in NONE else ONE_READ, 0)


@pytest.mark.parametrize(
    "route", ["/v1/{tenant_id}/stacks/{stack_id}", "/v1/{tenant_id}/stacks/{stack_name}/events"]
)
def test_a_look_up_reads_in_one_transaction(
    scene: Scene, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scene.get(route, "", monkeypatch) == (302, ONE_READ, 0)


@pytest.mark.parametrize(("tags", "expected"), [("", 1), ("a,b", 2)])
def test_the_view_of_a_stack_takes_few_statements(tmp_path: pathlib.Path, tags: str, expected: int) -> None:
    world = World(tmp_path, hosts=1)
    stack = world.create("s", TEMPLATE, tags=tuple(tags.split(",")) if tags else ())
    api = api_of(world)
    statements = executed(
        world, lambda: api.simulate_get(f"/v1/tenant/stacks/s/{stack.id}?resolve_outputs=0")
    )
    assert len(statements) == expected, statements


@pytest.mark.parametrize(
    ("below", "expected"),
    [("", 3), ("/s/{stack_id}/resources", 2), ("/s/{stack_id}/events", 3), ("/s/{stack_id}/template", 2)],
)
def test_a_list_takes_few_statements(scene: Scene, below: str, expected: int) -> None:
    path = f"/v1/tenant/stacks{below.format(**scene.path)}"
    statements = executed(scene.world, lambda: scene.api.simulate_get(path))
    assert len(statements) == expected, statements


def test_a_creation_takes_few_statements(tmp_path: pathlib.Path) -> None:
    """One for each table, for the contents, and for the project's counters: the simulation has no quotas."""
    world = World(tmp_path, hosts=1)
    template = {**TEMPLATE, "resources": {"one": TEMPLATE["resources"]["one"]}, "outputs": {}}
    api = api_of(world)
    body = {"stack_name": "first", "template": template}
    assert api.simulate_post("/v1/tenant/stacks", json=body).status_code == 201
    body["stack_name"] = "second"
    statements = executed(world, lambda: api.simulate_post("/v1/tenant/stacks", json=body))
    assert len(statements) == 8, statements


def executed(world: World, request: Callable[[], falcon.testing.Result]) -> list[str]:
    """Return the statements of a request but those that begin transactions."""
    statements: list[str] = []

    def note(conn: object, cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    sa.event.listen(world.database.engine, "before_cursor_execute", note)
    try:
        assert request().status_code in (200, 201)
    finally:
        sa.event.remove(world.database.engine, "before_cursor_execute", note)
    return statements
