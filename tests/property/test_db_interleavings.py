"""Random graphs, run by two claimants in a random order of claims, results, losses and repetitions, on the
real statements; compared after every move with a twin that is too simple to be wrong."""

import pathlib
import typing
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from services.db.rows import NOW, A, B, Graph, claim_all, outcome, stack_of, step, store_graph
from stoker.db.engine import Database
from stoker.db.ids import TaskId
from stoker.db.schema import upgrade
from stoker.db.states import Status, TaskState
from stoker.db.work import member_claims, tasks
from stoker.db.work.claim import Claim

Needs = dict[str, list[str]]


@dataclass
class Twin:
    """A traversal as a dict of sets."""

    needs: Needs
    done: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    running: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)

    def ready(self) -> set[str]:
        """Return the tasks that may be claimed: all that they need is done, and nothing has failed."""
        if self.failed:
            return set()
        waiting = self.needs.keys() - self.done - self.running.keys()
        return {name for name in waiting if set(self.needs[name]) <= self.done}

    def claim(self, name: str) -> None:
        assert name in self.ready(), f"{name} was started too early, or twice"
        self.attempts[name] = self.attempts.get(name, 0) + 1
        self.running[name] = self.attempts[name]

    def status(self) -> Status:
        if self.running:
            return Status.IN_PROGRESS
        if self.failed:
            return Status.FAILED
        return Status.COMPLETE if self.done == set(self.needs) else Status.IN_PROGRESS


@st.composite
def graphs(draw: st.DrawFn) -> Needs:
    """Each task comes after some of those before it."""
    names = [f"t{number}" for number in range(draw(st.integers(1, 7)))]
    return {
        name: draw(st.lists(st.sampled_from(names[:index]), unique=True)) if index else []
        for index, name in enumerate(names)
    }


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[Database]:
    path: pathlib.Path = tmp_path_factory.mktemp("interleavings") / "stoker.sqlite"
    fresh_database = Database(f"sqlite:///{path}")
    upgrade.upgrade(fresh_database)
    yield fresh_database
    fresh_database.close()


@dataclass
class Run:
    """One traversal under way, beside its twin."""

    database: Database
    graph: Graph
    twin: Twin
    held: dict[str, Claim] = field(default_factory=dict)
    stale: list[Claim] = field(default_factory=list)
    ends: list[Status] = field(default_factory=list)

    def move(self, draw: typing.Callable[[st.SearchStrategy[typing.Any]], typing.Any]) -> None:
        """One transaction of one of the two, chosen at random."""
        kinds = (
            ["claim"] + ["finish", "finish", "fail", "lose"] * bool(self.held) + ["late"] * bool(self.stale)
        )
        kind = draw(st.sampled_from(kinds))
        if kind == "claim":
            who = draw(st.sampled_from([A, B]))
            self.took(claim_all(self.database, draw(st.permutations(self.graph.ids))[:4], who))
        elif kind == "late":
            assert (
                len(step(self.database, [outcome(draw(st.sampled_from(self.stale)))], slots=0).refused) == 1
            )
        elif kind == "lose":
            self.lose(draw(st.sampled_from(sorted(self.held))))
        else:
            names = draw(st.lists(st.sampled_from(sorted(self.held)), min_size=1, max_size=3, unique=True))
            self.finish(names, failed=kind == "fail", slots=draw(st.sampled_from([0, 1, 9])))

    def took(self, claims: typing.Sequence[Claim]) -> None:
        for claim in claims:
            self.twin.claim(claim.resource.name)
            assert claim.task.attempt == self.twin.attempts[claim.resource.name]
            self.held[claim.resource.name] = claim

    def lose(self, name: str) -> None:
        """The claimant is gone; another gives its claim back."""
        claim = self.held.pop(name)
        attempts = [(claim.task.id, claim.task.attempt)]
        self.database.write(lambda conn: member_claims.release(conn, attempts, now=NOW))
        if self.twin.failed:
            # It continues, though nothing else starts: its resource is half made.
            [again] = claim_all(self.database, [claim.task.id], B)
            self.twin.attempts[name] += 1
            self.held[name] = again
        else:
            del self.twin.running[name]
        self.stale.append(claim)

    def finish(self, names: list[str], *, failed: bool, slots: int) -> None:
        """Results of one claimant in one transaction."""
        member = self.held[names[0]].task.member
        who = A if member == A.member else B
        claims = [self.held.pop(name) for name in names if self.held[name].task.member == member]
        state = TaskState.FAILED if failed else TaskState.DONE
        done = step(self.database, [outcome(c, state, reason="why") for c in claims], who=who, slots=slots)
        assert done.refused == []
        for claim in claims:
            del self.twin.running[claim.resource.name]
            (self.twin.failed if failed else self.twin.done).add(claim.resource.name)
            self.stale.append(claim)
        self.ends += [status for _, status in done.ended]
        self.took(done.claims)

    def check(self) -> None:
        """The stored tasks are where the twin's are."""
        assert self.states(TaskState.READY) == self.twin.ready()
        assert self.states(TaskState.RUNNING) == set(self.twin.running)
        assert self.states(TaskState.DONE) == self.twin.done
        assert self.states(TaskState.FAILED) == self.twin.failed
        status = self.twin.status()
        assert stack_of(self.database, self.graph.stack.id).status == status
        assert self.ends == ([] if status == Status.IN_PROGRESS else [status])

    def states(self, state: TaskState) -> set[str]:
        stored_tasks = self.database.read(lambda conn: tasks.of_traversal(conn, self.graph.traversal))
        ids: set[TaskId] = {task.id for task in stored_tasks if task.state == state}
        return {name for name, task_id in self.graph.tasks.items() if task_id in ids}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(needs=graphs(), data=st.data())
def test_every_interleaving_keeps_the_order_runs_each_task_once_and_ends(
    database: Database, needs: Needs, data: st.DataObject
) -> None:
    run = Run(database, store_graph(database, needs), Twin(needs))
    run.check()
    for _ in range(data.draw(st.integers(0, 15))):
        run.move(data.draw)
        run.check()
    while run.twin.status() == Status.IN_PROGRESS:
        run.took(claim_all(database, run.graph.ids))
        for name in sorted(run.held):
            run.finish([name], failed=False, slots=0)
        run.check()
    assert len(run.ends) == 1
