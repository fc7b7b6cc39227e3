"""A new duty is a class in a file of its own and a line in the registry: everybody else finds it there."""

import collections
import pathlib

import pytest
from oslo_config import cfg
from simulation.world import World
from stoker.cli.config.options import list_opts
from stoker.cli.features import FEATURES
from stoker.cli.wiring.duties import duties_of
from stoker.conductor.duties.context import DutyContext, DutyServices
from stoker.conductor.duties.registry import DUTIES, DutyEntry, make_duties
from stoker.conductor.scheduler import DutyPolicy
from stoker.conductor.steps.endpoints import Endpoints
from stoker.db.states import Status

ROUNDS: collections.Counter[str] = collections.Counter()


class Greeting:
    """A duty as somebody new would write it: it counts its rounds on its conductor."""

    interval = 3.0

    def __init__(self, context: DutyContext) -> None:
        self._context = context

    def run(self) -> None:
        if self._context.ring.owns(0):
            ROUNDS[self._context.settings().host] += 1


TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"a": {"type": "Sim::Server", "properties": {"after": 30}}},
}


def test_the_simulation_runs_a_duty_that_is_in_the_registry(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ROUNDS.clear()
    monkeypatch.setitem(DUTIES, "Greeting", DutyEntry(Greeting, DutyPolicy(is_timed=True)))
    world = World(tmp_path, hosts=2)
    stack = world.create("s", TEMPLATE)
    assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=120)
    [owner] = [conductor for conductor in world.awake() if conductor.ring.owns(0)]
    assert ROUNDS[owner.host] > 1
    assert set(ROUNDS) == {owner.host}, "it asks for its slice, as each duty does"


@pytest.mark.parametrize("enabled", [True, False])
def test_a_duty_of_a_feature_runs_where_the_feature_is_in_the_list_and_enabled(
    tmp_path: pathlib.Path, enabled: bool
) -> None:
    conf = cfg.ConfigOpts()
    for group, options in list_opts():
        conf.register_opts(options, group)
    conf.set_override("enabled", enabled, "drift")
    services = DutyServices(World(tmp_path).context, "a", Endpoints())
    without = [feature for feature in FEATURES if feature.name != "drift"]
    assert duties_of(without, conf, services).keys() == DUTIES.keys()
    added = {name: entry for name, entry in duties_of(FEATURES, conf, services).items() if name not in DUTIES}
    assert list(added) == (["Drift"] if enabled else [])
    assert [rows.kind for entry in added.values() for rows in entry.due] == (["drift"] if enabled else [])


def test_each_duty_has_a_file_of_its_own(tmp_path: pathlib.Path) -> None:
    [conductor, *_] = World(tmp_path).awake()
    files = [type(duty).__module__ for duty in make_duties(conductor.duty_context()).values()]
    assert len(files) == len(set(files)) >= 6
