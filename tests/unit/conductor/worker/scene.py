"""A work loop whose transactions and steps do what the test says."""

import types
import typing
from collections.abc import Callable, Sequence

import pytest
from harness.counting import Counting
from stoker.conductor.steps.results import StepResult, Steps
from stoker.conductor.worker import faults
from stoker.conductor.worker.claimed import ClaimedTask, ClaimKey
from stoker.conductor.worker.executor import WorkMetrics
from stoker.conductor.worker.loop import WorkLimits, WorkLoop
from stoker.db.engine import Database
from stoker.db.errors import Unavailable
from stoker.db.ids import MemberId, TaskId, TraversalId
from stoker.db.rows import ReadyTasks
from stoker.db.work import commit, losses, member_claims, tasks
from stoker.db.work.claim import Claimant
from stoker.engine.context import Hints

Json = typing.Any
WALL = 1e9
WHO = Claimant(MemberId("one/i"), "one")
GRACE = 10.0


def claim(number: int, *, attempt: int = 1, traversal: str = "t", project: str = "p", **fields: Json) -> Json:
    usual = {"claimed_at": 90.0, "expires_at": None, "kind": "create", "request": None, "stack_id": "s"}
    usual |= {"ready_at": None, "losses": None}
    task = {**usual, "id": TaskId(number), "attempt": attempt, "traversal": TraversalId(traversal), **fields}
    resource = types.SimpleNamespace(name="r")
    return types.SimpleNamespace(task=types.SimpleNamespace(**task), resource=resource, project_id=project)


class Scene:
    """One work loop with its database, its pool, and its steps.

    :ivar rows: the claims that transactions make, by their tasks; other tasks have usual ones.
    :ivar exchanges: the results, hints, slots and hints of other projects of each transaction.
    :ivar calls: the other writes, and the ends of steps.
    :ivar hints: what was announced.
    :ivar errors: of the next transactions; None: it succeeds.
    :ivar during: called by each transaction.
    :ivar reply: fields of the results of transactions.
    :ivar jobs: the steps that were given to the pool and have not begun.
    :ivar result: returns the result of a step, given its claim and the token to poll with.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
        self.now = 100.0
        self.rows: dict[int, Json] = {}
        self.exchanges: list[tuple[list[int], list[int], int, int]] = []
        self.briefs: list[bool] = []
        self.calls: list[tuple[Json, ...]] = []
        self.hints: list[tuple[str, list[int]]] = []
        self.cancels: list[str] = []
        self.errors: list[Exception | None] = []
        self.reply: dict[str, Json] = {}
        self.released = ReadyTasks()
        self.ours: list[tuple[int, int]] = []
        self.is_away = False
        self.jobs: list[Callable[[], None]] = []
        self.no_thread: Exception | None = None
        self.hangs = True
        self.restarts = 0
        self.wakes: list[None] = []
        self.counting = Counting()
        self.result: Callable[[Json, Json], StepResult] = lambda claim, progress: done(claim)
        self.during: Callable[[], object] = lambda: None
        self.loop = WorkLoop(
            database=typing.cast(Database, self),
            steps=typing.cast(Steps, self),
            executor=self,
            hints=typing.cast(Hints, self),
            clock=lambda: WALL + self.now,
            wake=lambda: self.wakes.append(None),
            member=lambda: WHO.member,
            limits=WorkLimits(**{"task_losses": 3, "cancel_grace": GRACE, "threads": 2, **limits}),
            metrics=WorkMetrics(self.counting),
            monotonic=lambda: self.now,
        )
        self.faults = self.loop._faults
        self.claims = self.loop._claims
        for module, name in (
            (commit, "exchange"),
            (member_claims, "release"),
            (member_claims, "answer"),
            (tasks, "claimed_by"),
            (losses, "forget"),
            (faults, "resolve_late"),
            (faults, "record_hung"),
            (faults, "fail_unreadable"),
        ):
            monkeypatch.setattr(module, name, getattr(self, name))
        self.loop.work_as(WHO)

    # -- the database

    def write(self, transaction: Callable[[Json], Json], *, brief: bool = False) -> Json:
        if self.is_away:
            raise Unavailable("away")
        self.briefs.append(brief)
        return transaction(None)

    def read(self, query: Callable[[Json], Json]) -> Json:
        return self.write(query)

    def ping(self) -> None:
        if self.is_away:
            raise Unavailable("away")

    def _fail(self) -> None:
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error

    def exchange(
        self,
        _conn: Json,
        outcomes: Sequence[Json],
        hinted: Sequence[TaskId],
        *,
        who: Claimant,
        now: float,
        slots: int,
        others: int,
    ) -> commit.Exchange:
        assert (who, now) == (WHO, WALL + self.now)
        self.exchanges.append(([o.task_id for o in outcomes], [int(each) for each in hinted], slots, others))
        self.during()
        self._fail()
        claims = [self.rows.get(task_id) or claim(task_id) for task_id in hinted[:slots]]
        usual = {"refused": (), "claims": claims, "ready": ReadyTasks(), "ended": ()}
        return commit.Exchange(**{**usual, **self.reply})

    def release(self, _conn: Json, keys: Sequence[ClaimKey], *, now: float, lost: set[TaskId]) -> ReadyTasks:
        assert now == WALL + self.now
        self._fail()
        self.calls.append(("release", list(keys), sorted(lost)))
        return self.released

    def answer(
        self, _conn: Json, member: MemberId, *, requested: Json, over: Json, lost: set[TaskId], now: float
    ) -> ReadyTasks:
        assert (member, now) == (WHO.member, WALL + self.now)
        self._fail()
        self.calls.append(("answer", list(requested), list(over), sorted(lost)))
        return self.released

    def claimed_by(self, _conn: Json, member: MemberId) -> list[tuple[int, int, int]]:
        assert member == WHO.member
        return [(*key, 0) for key in self.ours]

    def forget(self, _conn: Json, task_ids: Sequence[TaskId], member: MemberId) -> None:
        assert member == WHO.member
        self._fail()
        self.calls.append(("forget", list(task_ids)))

    def resolve_late(
        self, _database: Json, claim: Json, result: StepResult | None, *, now: float
    ) -> ReadyTasks:
        assert now == WALL + self.now
        self._fail()
        self.calls.append(("late", claim.task.id, result and result.progress))
        return self.released

    def record_hung(self, _database: Json, claim: Json, member: MemberId, *, now: float) -> None:
        assert (member, now) == (WHO.member, WALL + self.now)
        self._fail()
        self.calls.append(("hung", claim.task.id))

    def fail_unreadable(self, _conn: Json, *, task_id: TaskId, by: str, **options: Json) -> Json:
        assert (by, options["grace"], options["now"]) == ("one", GRACE, WALL + self.now)
        self.calls.append(("unreadable", task_id, options["why"]))
        return types.SimpleNamespace(running=["t"], woken=self.released)

    # -- the pool

    def submit(self, fn: Callable[..., object], /, *args: object) -> object:
        if self.no_thread is not None:
            raise self.no_thread
        self.jobs.append(lambda: typing.cast(None, fn(*args)))
        return self.jobs[-1]

    def detach(self, job: Callable[[], None]) -> bool:
        if self.hangs:
            return True
        self.jobs.remove(job)
        return False

    def restart_threads(self) -> None:
        self.restarts += 1

    # -- hints

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        self.hints.append((traversal, list(task_ids)))

    def cancel(self, traversal: TraversalId) -> None:
        self.cancels.append(traversal)

    # -- steps

    def run(self, claim: Json, progress: Json, stop: Json, who: Claimant) -> StepResult:
        return self.result(claim, progress)

    def has_cancel(self, claim: Json) -> bool:
        return False

    def cancelled(self, claim: Json, who: Claimant) -> StepResult:
        return done(claim, progress="cancelled")

    def detached(self, claim: Json, who: Claimant) -> StepResult:
        return done(claim, progress="detached", detached=True)

    def unstorable(self, claim: Json, who: Claimant) -> StepResult:
        assert who is WHO
        return done(claim, progress="unstorable")

    # -- what a test does

    def hint(self, *numbers: int, traversal: str = "t") -> None:
        self.loop.enqueue({TraversalId(traversal): [TaskId(number) for number in numbers]})

    def round(self, seconds: float = 0.0, steps: int = 0) -> float | None:
        """Let so much time pass and so many steps run, and then run a round; return its pause."""
        self.now += seconds
        for _ in range(steps):
            self.jobs.pop(0)()
        return self.loop.run_once()

    def claimed(self, *numbers: int) -> list[ClaimedTask]:
        """Claim tasks, and return them with their steps given to the pool."""
        self.hint(*numbers)
        self.round()
        return [self.claims.held[TaskId(number)] for number in numbers]

    def take_exchanges(self) -> list[tuple[list[int], list[int], int, int]]:
        taken = self.exchanges
        self.exchanges = []
        return taken

    def take_calls(self) -> list[tuple[Json, ...]]:
        taken = self.calls
        self.calls = []
        return taken


def done(claim: Json, **fields: Json) -> StepResult:
    """Return a result that is to be stored."""
    outcome: Json = types.SimpleNamespace(task_id=claim.task.id, attempt=claim.task.attempt, state="done")
    return StepResult(claim, outcome, **fields)


def later(after: float, progress: Json = "token") -> Callable[[Json, Json], StepResult]:
    """Return steps that want to be polled later."""
    return lambda claim, _: StepResult(claim, None, poll_after=after, progress=progress)
