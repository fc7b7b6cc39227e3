"""The way of one resource through the code: from its create request until it is shown as complete."""

import collections
import itertools
import pathlib
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator

import falcon.testing
import pytest
from harness.features import FEATURES_OF_API
from simulation.world import World
from stoker.api.app import make_app
from stoker.api.authenticator import Authenticator, NoAuthentication
from stoker.api.operations import Routes, Services
from stoker.cli.features import FEATURES
from stoker.cli.wiring.routes import ROUTES, columns_of
from stoker.engine.guests import Guests
from stoker.engine.signal_urls import SignalAddresses
from stoker.features.diagnosis.services import ConsoleServices
from stoker.features.software.views import guest_config_view

ADDRESSES = SignalAddresses("http://sim", b"key")
ROOT = pathlib.Path(__file__).parents[2]
NOT_THE_PRODUCT = ("tests/", ".venv/", "benchmarks/")
MOST_FILE_MOVES = 478
MOST_FOLDER_MOVES = 198
"""Bounds of how often who follows the calls must turn to another place: a tenth above a first measurement."""
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"one": {"type": "Sim::Server", "properties": {"after": 0}}},
}


class Calls:
    """Records the functions of the product that are called while it is in use as a context, in their order.

    :ivar path: file and qualified name of each function that was called.
    """

    def __init__(self) -> None:
        self.path: list[tuple[str, str]] = []

    def __enter__(self) -> typing.Self:
        threading.setprofile(self._on_event)  # Steps run on threads of their own.
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _on_event(self, frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<"):  # What is inside of a function belongs to it.
            return
        path = pathlib.Path(code.co_filename)
        if path.is_relative_to(ROOT):
            name = str(path.relative_to(ROOT))
            if not name.startswith(NOT_THE_PRODUCT):
                self.path.append((name, code.co_qualname))

    def moves(self, place_of: Callable[[str], str]) -> collections.Counter[tuple[str, str]]:
        """Count how often a call goes from one place to another.

        :param place_of: returns the place of a file, such as its folder.
        """
        places = [place_of(name) for name, _ in self.path]
        return collections.Counter(pair for pair in itertools.pairwise(places) if pair[0] != pair[1])


def _lines(moves: collections.Counter[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each pair of places, the most frequent first."""
    yield f"{moves.total()} moves"
    for (start, end), count in moves.most_common():
        yield f"{count:4} {start} -> {end}"


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1)


def api_of(
    world: World,
    auth: Authenticator | None = None,
    console: ConsoleServices | None = None,
    routes: Routes = ROUTES,
) -> falcon.testing.TestClient:
    """Return a client of the API, as close to the product as the simulation's world allows."""
    services = Services(
        database=world.database,
        context=world.context,
        guests=Guests(world.context, ADDRESSES, lambda config: guest_config_view(config, world.sealer)),
        registry=world.registry,
        sealer=world.sealer,
        auth=auth or NoAuthentication(),
        clock=world.clock,
        columns=columns_of(FEATURES),
        features={
            **FEATURES_OF_API,
            ConsoleServices: console or ConsoleServices(),
        },
    )
    return falcon.testing.TestClient(make_app(services, routes, ADDRESSES))


def test_the_life_of_a_resource_stays_in_few_places(world: World) -> None:
    api = api_of(world)
    # What is done once in a process, such as compiling statements, is not of a resource's life.
    api.simulate_post("/v1/project/stacks", json={"stack_name": "first", "template": TEMPLATE})
    world.calm()
    with Calls() as calls:
        creation = api.simulate_post(
            "/v1/project/stacks", json={"stack_name": "s", "template": TEMPLATE, "timeout_mins": 5}
        )
        world.calm()
        stack_id = creation.json["stack"]["id"]
        view = api.simulate_get(f"/v1/project/stacks/s/{stack_id}/resources/one")
    assert view.json["resource"]["resource_status"] == "CREATE_COMPLETE"
    assert ("conductor/steps/runner.py", "StepRunner.run") in calls.path
    between_files = calls.moves(str)
    between_folders = calls.moves(lambda name: name.split("/")[0])
    print("\n".join([*_lines(between_files), *_lines(between_folders)]))
    assert between_files.total() <= MOST_FILE_MOVES
    assert between_folders.total() <= MOST_FOLDER_MOVES


def test_only_calls_of_the_product_are_moves(world: World) -> None:
    with Calls() as calls:
        world.registry.get("Sim::Server")
        world.registry.get("Sim::Server")
        api_of(world)
    names = [function for name, function in calls.path if name == "resources/registry.py"]
    assert names.count("ResourceRegistry.get") == 2
    assert not any("test_life" in name or ".venv" in name for name, _ in calls.path)
    calls.path = [("a/b.py", "f"), ("a/b.py", "g"), ("a/c.py", "f"), ("d/e.py", "f"), ("a/c.py", "f")]
    assert calls.moves(str).total() == 3
    assert calls.moves(lambda name: name[0]) == {("a", "d"): 1, ("d", "a"): 1}
