"""Checks that fail, tasks of signals, copies of snapshots, adoptions; rows from which an update starts."""

import json
import types
import typing
from dataclasses import replace

import pytest
from stoker.db.ids import ResourceId, SnapshotId, TraversalId
from stoker.db.rows import Resource
from stoker.db.states import REDELIVER_AFTER, TaskKind, TaskState, TraversalState
from stoker.engine.planning.action import plan_action, plan_scaling, plan_signal, plan_snapshot
from stoker.engine.planning.adopt import plan_adoption
from stoker.engine.planning.best_existing import best_existing
from stoker.engine.planning.graph import without_cycles
from stoker.engine.planning.plan import Defaults, plan_create, task_key
from stoker.engine.planning.requests import AdoptedResource
from stoker.resources.contract.plugin import ADOPTED_ID
from stoker.resources.contract.signals import Adjustment, Scaling
from stoker.resources.nested.base import ADOPTED
from stoker.resources.registry import ResourceRegistry
from unit.engine.planning.test_table import SCOPE, compiled, drawn, rows_of, running_on

Json = typing.Any
UNBEGUN = "Can not check {}, resource not created yet."
NOW = replace(SCOPE, now=100.0)


def checked(rows: dict[str, Resource], running: str = "") -> Json:
    return plan_action(list(rows.values()), running_on(rows, running), TaskKind.CHECK, NOW)


def marked(rows: dict[str, Resource], running: str = "") -> dict[str, str]:
    """The reasons with which a check marks resources that do not exist."""
    names = {row.id: name for name, row in rows.items()}
    return {names[row_id]: change["reason"] for row_id, change in checked(rows, running).changes.items()}


def test_a_check_of_resources_that_are_all_there_can_succeed() -> None:
    plan = checked(rows_of("a, b(a), a'", "a' INIT_COMPLETE"))
    assert (plan.traversal.failure, plan.changes) == (None, {})


def test_a_check_fails_by_the_first_resource_that_waits_for_no_other_one() -> None:
    rows = rows_of(
        "d, c, b(c), a(b), e", "c INIT_COMPLETE, b INIT_COMPLETE, a INIT_COMPLETE, d INIT_COMPLETE"
    )
    plan = checked(rows)
    assert drawn(plan, rows) == ["check e"]
    assert plan.traversal.failure_cause.path == "resources.c"
    assert plan.traversal.failure.startswith("Resource CHECK failed: ResourceFailure: resources.c: ")
    assert marked(rows) == {name: UNBEGUN.format(name) for name in "cd"}
    assert plan.changes[rows["c"].id] == {
        "action": "CHECK",
        "status": "FAILED",
        "updated_at": 100.0,
        "cancelled": True,
        "reason": UNBEGUN.format("c"),
    }
    assert plan_action(list(rows.values()), {}, TaskKind.SUSPEND, NOW).traversal.failure is None


def test_a_check_marks_what_is_not_worked_on_and_has_left_nothing() -> None:
    rows = rows_of("a, b, c, d, e", ", ".join(f"{name} INIT_COMPLETE" for name in "abcde"))
    rows["b"] = replace(rows["b"], physical_id="x")
    rows["c"] = replace(rows["c"], data={"k": 1})
    assert marked(rows, "create a") == {name: UNBEGUN.format(name) for name in "de"}


def test_a_check_says_why_a_creation_has_failed_and_leaves_other_failures() -> None:
    rows = rows_of("a, b, c, d", "a CREATE_FAILED, b DELETE_FAILED, c ADOPT_FAILED, d INIT_COMPLETE")
    rows["a"] = replace(rows["a"], reason="no room", physical_id=None)
    plan = checked(rows)
    assert marked(rows) == {
        "a": "Can not check a, its creation failed: no room",
        "d": UNBEGUN.format("d"),
    }
    assert "cancelled" not in plan.changes[rows["a"].id]


def test_what_depends_on_several_missing_ones_is_found_once() -> None:
    rows = rows_of("a, b(a), c(a), d(b c), e(d)", ", ".join(f"{name} INIT_COMPLETE" for name in "abcde"))
    assert list(marked(rows)) == ["a"]
    rows["c"], rows["b"] = (replace(rows[name], action="CREATE") for name in "cb")
    assert list(marked(rows)) == ["a"], "what it needs is there, and needs what is missing"


def test_what_depends_on_a_missing_one_in_many_ways_is_looked_at_once() -> None:
    """In forty layers of two there are more ways than a program can walk."""
    layers = [f"l{n} r{n}" for n in range(40)]
    table = ", ".join(
        f"{name}{f'({layers[n - 1]})' if n else ''}" for n in range(40) for name in layers[n].split()
    )
    names = [name for layer in layers for name in layer.split()]
    rows = rows_of(table, ", ".join(f"{name} INIT_COMPLETE" for name in names))
    assert list(marked(rows)) == ["l0", "r0"]


def test_a_copy_of_a_snapshot_has_a_key_of_its_own_and_nothing_of_the_past() -> None:
    rows = rows_of("a, b(a)")
    row = replace(
        rows["a"],
        cancelled=True,
        reinstated=True,
        attributes={"x": 1},
        reference_id="r",
        progress={"task": 1},
    )
    plan = plan_snapshot([row, rows["b"]], {}, SnapshotId("x"), NOW)
    copy, _ = plan.resources
    assert (copy.cancelled, copy.reinstated, copy.attributes, copy.reference_id) == (False, False, None, None)
    assert (copy.progress, copy.requires, copy.definition, copy.status) == (None, [], None, "IN_PROGRESS")
    assert (copy.key, copy.physical_id) == (task_key(plan.tasks[0].id), "a")


def test_the_request_of_a_signal_is_a_task_that_no_traversal_counts() -> None:
    scope = replace(NOW, request="r", defaults=Defaults(retries=3))
    task, ended = plan_signal(ResourceId(7), {"word": 1}, scope, timeout=5.0, keep=20.0)
    assert (task.kind, task.resource_id, task.definition) == (TaskKind.SIGNAL, 7, {"properties": {"word": 1}})
    assert (task.state, task.pending, task.finish_id, task.request) == (TaskState.READY, 0, None, "r")
    assert (task.ready_at, task.due_at) == (100.0, 100.0 + REDELIVER_AFTER)
    assert (task.timeout, task.retries_left, task.traversal) == (5.0, 3, "now")
    assert (ended.traversal, ended.open_tasks, ended.state) == ("now", 0, TraversalState.DONE)
    assert ended.due_at == 120.0


def test_a_scaling_belongs_to_the_last_traversal_of_its_stack() -> None:
    stack: Json = types.SimpleNamespace(traversal=TraversalId("last"))
    change = Adjustment("g", "change_in_capacity", 2.0), Scaling(size=5, cooldown=60.0, before=3)
    task, ended = plan_scaling(stack, ResourceId(7), change, NOW, timeout=5.0, keep=20.0)
    assert (task.kind, task.traversal, ended.traversal) == (TaskKind.SCALE, "last", "last")
    assert task.definition == {
        "properties": {"size": 5, "cooldown": 60.0},
        "metadata": {"group": "g", "kind": "change_in_capacity", "by": 2.0},
    }


# -- adoptions --------------------------------------------------------------------------------------

INSTALLED = ResourceRegistry.installed()
OWN = AdoptedResource("x", data={"own": 1})
NESTED_DATA = {"own": 1, ADOPTED: {"template": "t", "resources": {}}}


@pytest.mark.parametrize(
    ("type_name", "entry", "physical_id", "data"),
    [
        ("OS::Heat::None", OWN, "x", {"own": 1}),
        ("OS::Heat::None", AdoptedResource(), None, None),
        ("OS::Heat::ResourceGroup", OWN, None, {"own": 1}),
        (
            "OS::Heat::ResourceGroup",
            AdoptedResource("x", data={"own": 1}, nested={"template": "t", "resources": {}, "files": {}}),
            None,
            NESTED_DATA,
        ),
        (
            "OS::Heat::SoftwareConfig",
            OWN,
            None,
            {"own": 1, ADOPTED_ID: "x"},
        ),
        ("OS::Heat::SoftwareConfig", AdoptedResource(None, data={"own": 1}), None, None),
    ],
)
def test_an_adoption_takes_the_id_of_what_is_not_stored_here(
    type_name: str, entry: AdoptedResource, physical_id: str | None, data: Json
) -> None:
    template = compiled("a")
    definition = replace(template.resources["a"], type=type_name)
    plan = plan_create(replace(template, resources={"a": definition}), SCOPE)
    [row] = plan_adoption(plan, {"a": entry}, json.dumps, INSTALLED).resources
    assert row.physical_id == physical_id
    assert row.data == (None if data is None else {"$fn": "sealed", "args": [json.dumps(data)]})
    assert row.definition == plan.tasks[0].definition


def test_the_metadata_of_a_document_are_sealed_and_what_outputs_ask_for_is_read_behind() -> None:
    plan = plan_create(compiled("a, b", refreshed="b"), SCOPE)
    adopted = plan_adoption(plan, {"a": AdoptedResource("x", metadata={})}, json.dumps, INSTALLED)
    assert [task.kind for task in adopted.tasks] == [TaskKind.ADOPT, TaskKind.ADOPT, TaskKind.REFRESH]
    assert [row.metadata for row in adopted.resources] == [{"$fn": "sealed", "args": ["{}"]}, None]


# -- graphs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "acyclic"),
    [
        ({1: [2], 2: [1]}, {1: [2], 2: []}),
        ({1: [1, 2], 2: []}, {1: [2], 2: []}),
        ({1: [2, 9], 2: [3, 9], 3: []}, {1: [2], 2: [3], 3: []}),
        ({1: [2], 2: [3], 3: [1, 2, 4], 4: []}, {1: [2], 2: [3], 3: [4], 4: []}),
        ({1: [2, 3], 2: [4], 3: [4], 4: [5], 5: []}, {1: [2, 3], 2: [4], 3: [4], 4: [5], 5: []}),
        ({3: [], 2: [3], 1: [2, 3]}, {3: [], 2: [3], 1: [2, 3]}),
    ],
)
def test_only_what_closes_a_circle_or_is_unknown_is_left_out(needs: Json, acyclic: Json) -> None:
    assert without_cycles(needs) == acyclic


# -- the row from which an update starts ------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "states", "running", "rolling_back", "best"),
    [
        ("a, a'", "", "", False, "a"),
        ("a, a'", "a CREATE_FAILED", "", False, "a'"),
        ("a, a'", "a INIT_COMPLETE", "", False, "a'"),
        ("a, a'", "a DELETE_COMPLETE", "", False, "a'"),
        ("a, a'", "a DELETE_COMPLETE, a' UPDATE_FAILED", "", False, None),
        ("a, a'", "a CREATE_FAILED, a' UPDATE_FAILED", "", False, "a"),
        ("a, a'", "a CREATE_FAILED, a' DELETE_COMPLETE", "", False, "a"),
        ("a", "a DELETE_FAILED", "", False, "a"),
        ("a", "", "delete a", False, None),
        ("a, a'", "", "cleanup a", False, "a'"),
        ("a, a'", "", "update a", False, "a"),
        ("a=2, a'", "", "", False, "a"),
        ("a=2, a'", "", "", True, "a'"),
        ("a=2, a'=2", "", "", True, "a"),
        ("a, a'", "", "", True, "a"),
        ("a=2, a'", "a DELETE_COMPLETE, a' UPDATE_FAILED", "", True, "a'"),
        ("b", "", "", False, None),
    ],
)
def test_an_update_starts_from_the_best_row(
    before: str, states: str, running: str, best: str | None, *, rolling_back: bool
) -> None:
    rows = rows_of(before, states)
    unmade = {row.id for row in rows.values() if row.action == "INIT"}
    tasks = running_on(rows, running)
    found = best_existing(rows.values(), compiled("a"), tasks, unmade, rolling_back=rolling_back)
    assert found == ({} if best is None else {"a": rows[best]})
