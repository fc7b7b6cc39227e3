"""The end of tasks as one statement: what it leaves alone, and the successors that it cannot see."""

import re
import threading
from dataclasses import replace

import pytest
import sqlalchemy as sa
from harness.waiting import wait_for
from services.db.rows import NOW, A, B, claim_all, on, outcome, resource, set_task, step, store_graph, task
from stoker.db.engine import Database
from stoker.db.errors import NotFound
from stoker.db.rows import Outcome
from stoker.db.schema import tables
from stoker.db.states import Standing, TaskState
from stoker.shapes import Json

CHANGES = {"physical_id": "new", "requires": [7]}


def test_only_resources_of_tasks_that_the_attempt_holds_are_stored(database: Database) -> None:
    graph = store_graph(database, {name: [] for name in ("held", "later", "other", "cancelled")})
    claims = claim_all(database, graph.ids)
    later, other, cancelled = graph.ids[1:]
    set_task(database, later, attempt=2)
    set_task(database, other, member=B.member)
    set_task(database, cancelled, state=TaskState.CANCELLED)
    done = step(database, [outcome(claim, changes=CHANGES) for claim in claims])
    assert {late.task_id for late in done.refused} == {later, other, cancelled}
    rows = [resource(database, graph.resources[name]) for name in graph.resources]
    assert [row.physical_id for row in rows] == ["new", None, None, None]
    assert task(database, graph.ids[0]).state == TaskState.DONE


def test_what_an_older_goal_may_not_change_stays_though_others_end_beside_it(database: Database) -> None:
    graph = store_graph(database, {"own": [], "older": [], "carried": []})
    claims = claim_all(database, graph.ids)
    set_task(database, graph.tasks["older"], standing=Standing.SUPERSEDED)
    set_task(database, graph.tasks["carried"], standing=Standing.CARRIED_OVER)
    step(database, [outcome(claim, changes=CHANGES) for claim in claims])
    rows = [resource(database, graph.resources[name]) for name in ("own", "older", "carried")]
    assert [(row.physical_id, list(row.requires)) for row in rows] == [("new", [7]), ("new", []), ("new", [])]


def test_a_result_is_stored_with_the_resource_that_it_names(database: Database) -> None:
    graph = store_graph(database, {"one": [], "another": []})
    [claim] = claim_all(database, [graph.tasks["one"]])
    set_task(database, claim.task.id, resource_id=graph.resources["another"])
    step(database, [outcome(claim, changes=CHANGES)])
    rows = [resource(database, graph.resources[name]) for name in ("one", "another")]
    assert [row.physical_id for row in rows] == ["new", None]


@pytest.mark.parametrize("is_late_first", [False, True])
def test_of_two_results_for_one_resource_that_of_the_attempt_is_stored(
    database: Database, is_late_first: bool
) -> None:
    graph = store_graph(database, {"late": [], "held": []})
    late, held = claim_all(database, graph.ids)
    set_task(database, late.task.id, state=TaskState.CANCELLED)
    set_task(database, held.task.id, resource_id=late.resource.id)
    outcomes = [
        replace(outcome(claim, changes={"physical_id": name}), resource_id=late.resource.id)
        for claim, name in ((late, "late"), (held, "held"))
    ]
    step(database, outcomes if is_late_first else outcomes[::-1])
    assert resource(database, late.resource.id).physical_id == "held"


def test_a_row_is_removed_though_another_one_changes_beside_it(database: Database) -> None:
    graph = store_graph(database, {"gone": [], "changed": []})
    gone, changed = claim_all(database, graph.ids)
    step(database, [outcome(gone, remove=True), outcome(changed, changes=CHANGES)])
    with pytest.raises(NotFound):
        resource(database, graph.resources["gone"])
    assert resource(database, graph.resources["changed"]).physical_id == "new"


def test_a_copy_is_written_though_its_resource_changes_beside_it(database: Database) -> None:
    graph = store_graph(database, {"one": [], "copied": []})
    [claim] = claim_all(database, [graph.tasks["one"]])
    copy = {"id": graph.resources["copied"], "physical_id": "copy"}
    step(database, [outcome(claim, changes=CHANGES, copy=copy)])
    rows = [resource(database, graph.resources[name]) for name in ("one", "copied")]
    assert [row.physical_id for row in rows] == ["new", "copy"]


@on("postgresql")
def test_tasks_and_their_successors_are_locked_in_the_order_of_their_ids(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": [], "left": ["one", "two"], "right": ["one", "two"]})
    claims = claim_all(database, [graph.tasks["one"], graph.tasks["two"]])
    text, _ = statement_of(database, [outcome(claim, changes=CHANGES) for claim in claims])
    ended, _, waiting = text.partition("UNION ALL")
    assert re.search(r"ORDER BY task.id\s+FOR UPDATE", ended)
    assert re.search(r"ORDER BY task.id\s+FOR UPDATE", waiting)


@on("postgresql")
def test_an_end_goes_by_ids_however_many_tasks_were_claimed_since_the_last_analyze(
    database: Database,
) -> None:
    graph = store_graph(database, {f"r{number}": [] for number in range(500)})
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql("ANALYZE task")
    claims = claim_all(database, graph.ids)[:30]
    text, values = statement_of(database, [outcome(claim, changes=CHANGES) for claim in claims])
    with database.engine.connect() as conn:
        plan = conn.exec_driver_sql(f"EXPLAIN {text}", values).scalars().all()
    assert "ix_task_member" not in " ".join(plan), plan


def statement_of(database: Database, outcomes: list[Outcome]) -> tuple[str, Json]:
    """Store the outcomes; return the statement that ends their tasks, with its parameters."""
    executed: list[tuple[str, Json]] = []
    record = lambda conn, cursor, text, values, *_: executed.append((text, values))  # noqa: E731
    sa.event.listen(database.engine, "before_cursor_execute", record)
    step(database, outcomes, slots=0)
    sa.event.remove(database.engine, "before_cursor_execute", record)
    [statement] = (each for each in executed if each[0].startswith("WITH ended"))
    return statement


@pytest.mark.parametrize("known", [[], ["left"], ["left", "next", "gone"]])
def test_successors_that_the_claim_did_not_know_are_counted_down(
    database: Database, known: list[str]
) -> None:
    graph = store_graph(database, {"one": [], "left": ["one"], "next": ["one"], "gone": ["one"]})
    [claim] = claim_all(database, [graph.tasks["one"]])
    set_task(database, graph.tasks["gone"], state=TaskState.CANCELLED)
    ids = [graph.tasks[name] for name in known]
    done = step(database, [outcome(claim, changes=CHANGES, successors=ids)], slots=0)
    assert sorted(done.ready[graph.traversal]) == sorted(graph.tasks[name] for name in ("left", "next"))


@on("postgresql")
def test_a_successor_that_is_added_while_the_end_waits_is_counted_down(database: Database) -> None:
    graph = store_graph(database, {"one": [], "next": ["one"], "added": []})
    one, following, added = graph.ids
    [claim] = claim_all(database, [one])
    set_task(database, one, successors=[following])
    t = tables.task
    row = database.read(lambda conn: conn.execute(sa.select(t).where(t.c.id == added)).mappings().one())
    database.write(lambda conn: conn.execute(sa.delete(t).where(t.c.id == added)))
    done = []
    ending = threading.Thread(
        target=lambda: done.append(step(database, [outcome(claim, changes=CHANGES)], slots=0))
    )
    waits = "SELECT count(*) FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    with database.engine.connect() as other, other.begin():
        # As a newer traversal does, which carries the task over: its row first, then the new one.
        other.execute(sa.update(t).where(t.c.id == one).values(successors=[following, added]))
        ending.start()
        wait_for(lambda: bool(other.exec_driver_sql(waits).scalar()))
        values = {**row, "state": TaskState.WAITING, "pending": 1, "due_at": None, "ready_at": None}
        other.execute(sa.insert(t).values(values))
    ending.join(60)
    assert sorted(done[0].ready[graph.traversal]) == [following, added]
    assert [task(database, task_id).ready_at for task_id in (following, added)] == [NOW, NOW]
    assert A.member not in (task(database, task_id).member for task_id in graph.ids)
