"""``openstack orchestration quota``: the quotas of the own project, and those that an admin sets."""

import pytest
from client.commands import OpenStack
from stoker.engine.quotas import QuotaName
from stoker.osc.quotas import LARGEST, QUOTAS


def test_each_quota_has_an_option() -> None:
    assert list(QUOTAS) == list(QuotaName)


def limits(rows: list[dict[str, int]]) -> dict[str, int]:
    """The limits by the quota's name."""
    return {str(row["quota"]): row["limit"] for row in rows}


def test_quotas_are_set_shown_listed_and_deleted(openstack: OpenStack) -> None:
    project = openstack.tenant
    before = openstack.json("orchestration", "quota", "show")
    assert openstack.json("orchestration", "quota", "show", project) == before
    changes = ("--stacks", "7", "--goal-bytes", str(LARGEST), "--snapshots", "-1")
    changed = openstack.json("orchestration", "quota", "set", project, *changes)
    assert limits(changed) == {**limits(before), "stacks": 7, "goal_bytes": LARGEST, "snapshots": -1}
    assert openstack.json("orchestration", "quota", "show") == changed
    openstack.run("orchestration", "quota", "set", "--snapshots", "default", project)
    [row] = [row for row in openstack.json("orchestration", "quota", "list") if row["project"] == project]
    assert row == {"project": project, **dict.fromkeys(QUOTAS), "stacks": 7, "goal_bytes": LARGEST}
    openstack.run("orchestration", "quota", "delete", project)
    assert openstack.json("orchestration", "quota", "show") == before
    assert project not in openstack.run("orchestration", "quota", "list").out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "Nothing would change: name a new limit by one of --stacks, "),
        (("--stacks", "many"), "many is not a limit: write a number from 0 to "),
        (("--stacks", "-2"), "-2 is not a limit: write a number from 0 to "),
    ],
)
def test_a_wrong_limit_is_explained(openstack: OpenStack, options: tuple[str, ...], text: str) -> None:
    done = openstack.call("orchestration", "quota", "set", "someone", *options)
    assert done.code != 0
    assert text in done.out + done.err


def test_a_project_whose_id_is_too_long_is_refused(openstack: OpenStack) -> None:
    assert "A project's id has 64 characters" in openstack.fails("orchestration", "quota", "show", "p" * 65)
