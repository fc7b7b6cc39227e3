"""The way of one resource through the code: from its create request until it is shown as complete."""

import collections
import pathlib
import sys
import threading
import types
import typing
from collections.abc import Iterator

import falcon.testing
import pytest
from simulation.world import World
from stoker.api.app import make_app
from stoker.api.console import ConsoleServices
from stoker.api.context import Routes, Services
from stoker.api.request import Authenticator, NoAuthentication
from stoker.api.routes import ROUTES
from stoker.api.views.software import guest_config_view
from stoker.engine.guests import Guests
from stoker.engine.quotas import QuotaOperations, Quotas
from stoker.engine.signals import Signals
from stoker.engine.software import SoftwareOperations
from stoker.engine.validate import Validation
from stoker.sealing.signal_urls import SignalAddresses

ADDRESSES = SignalAddresses("http://sim", b"key")
ROOT = pathlib.Path(__file__).parents[2]
NOT_THE_PRODUCT = ("tests/", ".venv/", "benchmarks/")
MOST_FILES, MOST_FUNCTIONS = 63, 334
"""Bounds of what a reader has to know; to be lowered, never raised."""
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"one": {"type": "Sim::Server", "properties": {"after": 0}}},
}


class Entered:
    """Counts the functions of the product that are entered while it is in use as a context."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()

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
                self.functions.add((name, code.co_qualname))

    def table(self) -> Iterator[str]:
        """Lines for a reader: file, how many of its functions are entered, and which."""
        by_file: dict[str, list[str]] = collections.defaultdict(list)
        for name, function in sorted(self.functions):
            by_file[name].append(function)
        yield f"{len(self.functions)} functions in {len(by_file)} files"
        for name, functions in by_file.items():
            yield f"{name:44} {len(functions):3}  {', '.join(functions)}"


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
        stacks=world.orders,
        updates=world.updates,
        validation=Validation(world.context),
        previews=world.previews,
        signals=Signals(world.context),
        snapshots=world.snapshots,
        exports=world.exports,
        guests=Guests(world.context, ADDRESSES, lambda config: guest_config_view(config, world.sealer)),
        software=SoftwareOperations(world.context),
        breakpoints=world.breakpoints,
        quotas=QuotaOperations(world.database, Quotas()),
        registry=world.catalogue,
        sealer=world.sealer,
        auth=auth or NoAuthentication(),
        clock=world.clock,
        console=console or ConsoleServices(),
    )
    return falcon.testing.TestClient(make_app(services, routes, ADDRESSES))


def test_the_life_of_a_resource_crosses_few_files_and_functions(world: World) -> None:
    api = api_of(world)
    with Entered() as entered:
        made = api.simulate_post(
            "/v1/project/stacks", json={"stack_name": "s", "template": TEMPLATE, "timeout_mins": 5}
        )
        world.calm()
        shown = api.simulate_get(f"/v1/project/stacks/s/{made.json['stack']['id']}/resources/one")
    assert shown.json["resource"]["resource_status"] == "CREATE_COMPLETE"
    lines = list(entered.table())
    print("\n".join(lines))
    assert ("conductor/steps/runner.py", "StepRunner.run") in entered.functions
    assert len(lines) - 1 <= MOST_FILES
    assert len(entered.functions) <= MOST_FUNCTIONS


def test_what_is_entered_is_counted_once_and_only_of_the_product(world: World) -> None:
    with Entered() as entered:
        world.catalogue.get("Sim::Server")
        world.catalogue.get("Sim::Server")
        api_of(world)
    names = [function for name, function in entered.functions if name == "resources/registry.py"]
    assert names.count("ResourceRegistry.get") == 1
    assert not any("test_life" in name or ".venv" in name for name, _ in entered.functions)
