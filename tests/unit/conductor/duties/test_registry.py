"""The policies of the kernel's duties, as a conductor's scheduler carries them out."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from harness.waiting import wait_for
from stoker.conductor.duties.registry import DUTIES, policies
from stoker.conductor.liveness import Liveness
from stoker.conductor.scheduler import Scheduler
from stoker.db.engine import Commits


class Round:
    """Takes the place of a duty.

    :ivar rounds: how many have ended.
    """

    interval = 0.02

    def __init__(self, job: Callable[[], object]) -> None:
        self.rounds = 0
        self._job = job

    def run(self) -> None:
        self._job()
        self.rounds += 1


class NotedLiveness(Liveness):
    """Notes which duties are watched while they are at work."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: set[str] = set()

    @contextlib.contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        self.watched.add(name.removeprefix("the duty "))
        with super().at_work(name):
            yield


def test_each_duty_runs_as_what_it_does_demands() -> None:
    commits = Commits()
    active: set[str] = set()
    commits.listen(lambda: active.add(running.name), every=0.0)
    running = threading.local()
    liveness = NotedLiveness()
    is_sure = threading.Event()

    def commit(name: str) -> None:
        running.name = name
        commits()

    duties = {name: Round(lambda name=name: commit(name)) for name in DUTIES}  # type: ignore[misc]
    scheduler = Scheduler(
        duties,
        policies=policies(),
        may_run=lambda: True,
        is_time_sure=is_sure.is_set,
        liveness=liveness,
    )
    scheduler.start()
    try:
        untimed = {"Rollbacks", "Orphans", "Census"}
        wait_for(lambda: all(duties[name].rounds > 3 for name in untimed))
        assert {name for name, duty in duties.items() if duty.rounds} == untimed, (
            "the others end something because of the time, which is in doubt"
        )
        is_sure.set()
        wait_for(lambda: all(duty.rounds > 1 for duty in duties.values()))
    finally:
        scheduler.stop()
    assert duties.keys() - active == {"TraversalPurge", "StackPurge"}, "what they delete makes nothing due"
    assert liveness.watched == {"TaskDue", "StackTimeouts", "Orphans"}, "no other conductor does their work"


def test_stacks_time_out_while_all_other_duties_hang() -> None:
    let_go = threading.Event()
    begun: set[str] = set()

    def hang(name: str) -> None:
        begun.add(name)
        let_go.wait(300)

    duties = {name: Round(lambda name=name: hang(name)) for name in DUTIES}  # type: ignore[misc]
    duties["StackTimeouts"] = timeouts = Round(lambda: None)
    scheduler = Scheduler(duties, policies=policies(), may_run=lambda: True)
    scheduler.start()
    try:
        wait_for(lambda: len(begun) == 2, within=20.0)
        before = timeouts.rounds
        wait_for(lambda: timeouts.rounds > before + 3, within=20.0)
    finally:
        let_go.set()
        scheduler.stop()
