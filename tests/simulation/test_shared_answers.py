"""Answers that requests share: what the database is asked, and who gets what."""

import pathlib
import time
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from simulation.console import Caller, Callers, console_of, report_all
from simulation.test_console_routes import TEMPLATE, statements
from simulation.test_life import api_of
from simulation.world import World
from stoker.api.authenticator import NoAuthentication
from stoker.api.context import RequestContext
from stoker.api.errors import Fault
from stoker.api.operations import Operation, Request
from stoker.api.policy import SHOWS_HOSTS
from stoker.api.reply import Reply
from stoker.api.shared_answers import KEY_LENGTH
from stoker.cli.wiring.routes import ROUTES
from stoker.db.states import Status

Json = typing.Any
SHARES = {"Cache_Control": "max-age=1"}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1)


@pytest.fixture
def stack_path(world: World) -> str:
    stack = world.create("s", TEMPLATE)
    assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
    return f"/v1/tenant/stacks/s/{stack.id}"


def _cost(world: World, caller: Caller, path: str, **headers: str) -> int:
    with statements(world) as statements_of:
        assert caller.call("GET", path, **headers).status_code in (200, 304)
    return len(statements_of)


@pytest.mark.parametrize("below", ["", "/events", "/resources", "/inspect", "/outputs"])
def test_a_hundred_consoles_ask_the_database_once(world: World, stack_path: str, below: str) -> None:
    owner = Callers(world).owner
    path = stack_path + below
    began = time.monotonic()
    first = _cost(world, owner, path, **SHARES)
    others = sum(_cost(world, owner, path, **SHARES) for _ in range(99))
    assert first > 0
    assert others <= first * int(time.monotonic() - began), "an answer is shared for a second"


def test_who_does_not_accept_an_old_answer_gets_a_new_one(world: World, stack_path: str) -> None:
    owner = Callers(world).owner
    assert owner.call("GET", stack_path, **SHARES).headers["ETag"]
    assert _cost(world, owner, stack_path) > 0
    assert _cost(world, owner, stack_path, Cache_Control="max-age=0") > 0


def test_an_answer_that_has_not_changed_is_not_sent_again(world: World, stack_path: str) -> None:
    owner = Callers(world).owner
    first = owner.call("GET", stack_path, **SHARES)
    again = owner.call("GET", stack_path, **SHARES, If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.text) == (304, "")
    assert first.json["stack"]["stack_name"] == "s"


def test_an_answer_is_shared_with_those_only_who_may_see_the_same(world: World, stack_path: str) -> None:
    """An operator's events name conductors; the owner's and a stranger's requests come after it."""
    callers = Callers(world)
    path = f"{stack_path}/events"
    assert "conductor" in callers.operator.call("GET", path, **SHARES).json["events"][0]
    assert "conductor" not in callers.owner.call("GET", path, **SHARES).json["events"][0]
    assert callers.stranger.call("GET", path, **SHARES).status_code in (403, 404)
    stranger = path.replace("/tenant/", "/elsewhere/")
    assert callers.stranger.call("GET", stranger, **SHARES).status_code == 404


def test_a_list_is_shared_within_a_project_only(world: World, stack_path: str) -> None:
    """An operator may ask by any project's path, and still gets the list of their own."""
    callers = Callers(world)
    assert callers.operator.call("GET", "/v1/tenant/stacks", **SHARES).json["stacks"] == []
    [summary] = callers.owner.call("GET", "/v1/tenant/stacks", **SHARES).json["stacks"]
    assert summary["stack_name"] == "s"


class ByName(NoAuthentication):
    """Lets one user of a project see the names of hosts."""

    def authorize(self, caller: RequestContext, rule: str) -> None:
        if rule == SHOWS_HOSTS and caller.user != "olga":
            raise Fault(403, "Forbidden", "not for you")


def test_of_one_project_too_each_sees_what_the_policy_allows_them(world: World, stack_path: str) -> None:
    api = api_of(world, auth=ByName())

    def first(user: str) -> Json:
        headers = {"Cache-Control": "max-age=1", "X-User-Name": user}
        return api.simulate_get(f"{stack_path}/events", headers=headers).json["events"][0]

    assert "conductor" in first("olga")
    assert "conductor" not in first("ann")
    assert "conductor" in first("olga")


LISTED = "/v1/tenant/stacks"


@pytest.mark.parametrize(
    "query",
    ["x=1", f"stack_name={'n' * KEY_LENGTH}"],
    ids=["a parameter that the list does not know", "longer than any console's"],
)
def test_no_caller_can_fill_the_memory_with_queries(world: World, stack_path: str, query: str) -> None:
    owner = Callers(world).owner
    costs = [_cost(world, owner, LISTED, query=query, **SHARES) for _ in range(2)]
    assert costs[0] == costs[1] > 0, "the answer was kept"


class NotedQuery(Mapping[str, Sequence[str]]):
    """A query without parameters, and the names that are looked up in it."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Sequence[str]:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _noting(operation: Operation, query: NotedQuery) -> Operation:
    def handler(request: Request) -> Reply:
        return operation.handler(replace(request, query=query))

    return replace(operation, handler=handler)


SHARED = [path for path, methods in ROUTES.items() if "GET" in methods and methods["GET"].shared is not None]


@pytest.mark.parametrize("path", SHARED)
def test_a_shared_operation_knows_each_parameter_that_it_reads(
    world: World, stack_path: str, path: str
) -> None:
    report_all(world)
    operation = ROUTES[path]["GET"]
    query = NotedQuery()
    api = api_of(
        world, console=console_of(world), routes={**ROUTES, path: {"GET": _noting(operation, query)}}
    )
    stack_id = stack_path.rsplit("/", 1)[1]
    names = {"stack_name": "s", "stack_id": stack_id, "resource_name": "one", "host": "host0"}
    answer = api.simulate_get(path.format(tenant_id="tenant", **names))
    assert answer.status_code == 200, answer.text
    assert query.names == operation.shared
