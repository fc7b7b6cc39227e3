"""Features: each is in the list of the product, and leaves it with its line in that list."""

import re

import falcon.testing
import pytest
from harness.bare_api import ADDRESSES, bare_services
from harness.sources import ROOT
from stoker.api.app import make_app
from stoker.cli.features import FEATURES
from stoker.cli.programs.manage import KERNEL_COMMANDS, ManageApp, commands_of
from stoker.cli.wiring.metrics import metrics_of
from stoker.cli.wiring.policy import RULES, rules_of
from stoker.cli.wiring.routes import columns_of, routes_of
from stoker.features.registry import Feature, load

OPTIONAL = ("cloudformation", "drift", "moves")
"""The features that an installation can do without."""


def test_each_folder_of_a_feature_is_in_the_list() -> None:
    folders = {path.parent.name for path in (ROOT / "features").glob("*/__init__.py")}
    assert sorted(feature.name for feature in FEATURES) == sorted(folders)


@pytest.mark.parametrize(
    "feature", [feature for feature in FEATURES if feature.routes], ids=lambda feature: feature.name
)
def test_a_feature_that_is_left_out_has_no_route(feature: Feature) -> None:
    without = routes_of([each for each in FEATURES if each is not feature])
    own = load(feature.routes)
    assert routes_of(FEATURES).keys() - without.keys() == own.keys() != set()
    if feature.name not in OPTIONAL:
        return  # The kernel's routes may have its paths: "preview" is also the name of a stack.
    api = falcon.testing.TestClient(make_app(bare_services(), without, ADDRESSES))
    for path, operations in own.items():
        filled = re.sub(r"\{\w+(:path)?\}", "any", path)
        answers = {method: api.simulate_request(method, filled).status_code for method in operations}
        assert answers == dict.fromkeys(operations, 404), path


@pytest.mark.parametrize(
    "feature", [feature for feature in FEATURES if feature.rules], ids=lambda feature: feature.name
)
def test_a_feature_that_is_left_out_has_no_rule(feature: Feature) -> None:
    without = rules_of(each for each in FEATURES if each is not feature)
    assert {*RULES} - {*without} == {*load(feature.rules)}
    asked = {
        operation.rule for operations in load(feature.routes).values() for operation in operations.values()
    }
    assert asked - {None} <= {name for name, *_ in load(feature.rules)}, "the rule is beside its route"


def test_a_feature_that_is_left_out_has_no_column() -> None:
    own = [feature for feature in FEATURES if feature.columns]
    assert [feature.name for feature in own] == ["drift"]
    assert columns_of(FEATURES) == [load(feature.columns) for feature in own]
    assert columns_of(feature for feature in FEATURES if feature not in own) == []


def test_a_feature_that_is_left_out_has_no_metric() -> None:
    own = [feature for feature in FEATURES if feature.metrics]
    assert [feature.name for feature in own] == ["drift"]
    names = [metric.name for metric in metrics_of(FEATURES)]
    without = [metric.name for metric in metrics_of(feature for feature in FEATURES if feature not in own)]
    assert {*names} - {*without} == {metric.name for feature in own for metric in load(feature.metrics)}
    assert len(names) == len(set(names))


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_feature_that_is_left_out_has_no_command(feature: Feature) -> None:
    others = [each for each in FEATURES if each is not feature]
    assert commands_of(FEATURES).keys() - commands_of(others).keys() == feature.commands.keys()
    with_all, without = (ManageApp(features).command_manager for features in (FEATURES, others))
    for name in feature.commands:
        assert with_all.find_command(name.split())[1] == name
        with pytest.raises(ValueError, match="Unknown command"):
            without.find_command(name.split())


def test_no_feature_has_a_command_of_another_one() -> None:
    names = [*KERNEL_COMMANDS, *(name for feature in FEATURES for name in feature.commands)]
    assert len(names) == len(set(names))
