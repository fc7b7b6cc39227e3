"""Limits of software configs, of projects and of trees, as the options set them; 0 means none."""

import dataclasses
import pathlib
import re
import typing

import pytest
from stoker.engine.quotas import (
    LARGEST,
    SIGNALLING,
    UNLIMITED,
    ProjectLimits,
    QuotaName,
    SoftwareLimits,
)
from stoker.engine.tree_budget import TreeBudget, TreeLimits
from stoker.settings import KEY
from stoker.template.budget import json_size
from stoker.template.errors import LimitExceeded

Json = typing.Any
NO_ROWS: Json = None
SAMPLE = (pathlib.Path(__file__).parents[3] / "etc" / "stoker.conf.sample").read_text()
IN_SAMPLE = {
    name: (comment, value) for comment, name, value in re.findall(r"((?:# .*\n)*)#(\w+) = (.*)\n", SAMPLE)
}
"""Comments and defaults of the options, by their names."""
BODY = {"config": "x" * 50}
SIZE = json_size(BODY)
LARGE = {"config": "x" * (SIGNALLING + 50)}
LARGE_SIZE = json_size(LARGE)


@pytest.mark.parametrize(("limit", "quota"), [(-1, UNLIMITED), (0, UNLIMITED), (1, 1), (7, 7)])
def test_only_a_positive_number_limits_a_project(limit: int, quota: int) -> None:
    defaults = ProjectLimits(**dict.fromkeys(QuotaName, limit)).quotas().defaults
    assert defaults == dict.fromkeys(QuotaName, quota)
    assert float(LARGEST) == LARGEST == 0x1F_FFFF_FFFF_FFFF, "a browser reads larger ones wrongly"
    assert QuotaName.STACKS in defaults


def sample_of(limits: Json) -> list[tuple[str, str, bool]]:
    """The options of a class of settings, with their defaults in the sample, and if a least is there."""
    options = []
    for field in dataclasses.fields(limits):
        if setting := field.metadata.get(KEY):
            comment, value = IN_SAMPLE[setting.option]
            least = f"# Minimum value: {setting.least}\n"
            options.append((field.name, value, setting.least is None or least in comment))
    return options


def declared(limits: Json) -> list[tuple[str, str, bool]]:
    """The same options as the class declares them."""
    fields = [field for field in dataclasses.fields(limits) if field.metadata.get(KEY)]
    return [(each.name, "<None>" if each.default is None else str(each.default), True) for each in fields]


def test_the_defaults_that_an_operator_reads_in_the_sample_are_in_force() -> None:
    for limits in (ProjectLimits(), SoftwareLimits(), TreeLimits()):
        assert sample_of(limits) == declared(limits) != []
    assert ProjectLimits().quotas().defaults[QuotaName.STACKS] == 512
    with pytest.raises(LimitExceeded):
        SoftwareLimits().size_of_config("x" * 2**21)
    with pytest.raises(LimitExceeded):
        TreeBudget(TreeLimits()).take_bytes(2**26 + 1)


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (SoftwareLimits(config_bytes=SIZE, deployment_bytes=SIZE), True),
        (SoftwareLimits(config_bytes=SIZE - 1, deployment_bytes=SIZE - 1), False),
        (SoftwareLimits(config_bytes=0, deployment_bytes=0), True),
    ],
)
def test_a_config_and_values_may_be_as_large_as_their_limit(limits: SoftwareLimits, *, allowed: bool) -> None:
    for option, measured in [
        ("max_software_config", lambda: limits.size_of_config(BODY)),
        ("max_software_deployment", lambda: limits.size_of_values(BODY, "input_values")),
    ]:
        if allowed:
            assert measured() == SIZE
        else:
            words = f"has {SIZE} bytes, above the limit of {SIZE - 1} .*{option}"
            with pytest.raises(LimitExceeded, match=words):
                measured()


@pytest.mark.parametrize(
    ("config_bytes", "deployment_bytes", "allowed"),
    [
        (LARGE_SIZE - 2**16 - 10, 10, True),
        (LARGE_SIZE - 2**16 - 10, 9, False),
        (1, 0, True),
        (0, 1, True),
        (0, 0, True),
    ],
)
def test_a_derived_config_has_room_for_both_and_for_how_to_signal(
    config_bytes: int, deployment_bytes: int, *, allowed: bool
) -> None:
    limits = SoftwareLimits(config_bytes=config_bytes, deployment_bytes=deployment_bytes)
    if allowed:
        assert limits.size_of_derived(LARGE) == LARGE_SIZE
    else:
        with pytest.raises(LimitExceeded, match=f"above the limit of {LARGE_SIZE - 1} "):
            limits.size_of_derived(LARGE)


def test_without_limits_nothing_is_counted() -> None:
    limits = SoftwareLimits(server_bytes=0)
    limits.check_config(NO_ROWS, "p")
    limits.check_bytes(NO_ROWS, "p")
    deployment: Json = type("Deployment", (), {"project_id": "p", "server_id": "s"})
    limits.check_deployment(NO_ROWS, deployment)
