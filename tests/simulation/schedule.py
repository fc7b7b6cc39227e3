"""A seeded random order of events, with faults; and what must hold after it, whatever the order was."""

import collections
import contextlib
import pathlib
import random
import typing
from collections.abc import Callable, Iterator
from unittest import mock

import sqlalchemy as sa
from simulation.audit import Audit
from simulation.cloud import LOST
from simulation.coverage import FAULTS, Coverage, Focus, Pair
from simulation.reference import Made
from simulation.repeatable import repeatable
from simulation.users import Users
from simulation.weather import Weather
from simulation.world import SHORTEST, World
from stoker.conductor.lookout import FORECAST_EVERY
from stoker.db import content, events, resources
from stoker.db.events import EventQuery
from stoker.db.ids import StackId
from stoker.db.rows import Event, Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.db.work import commit

T = typing.TypeVar("T")
SETTLE_WITHIN = 4000.0
"""Simulated seconds: longer than any stack's timeout here."""
LENGTH = 500
MOST_LATE = FORECAST_EVERY + 2 * SHORTEST
"""Seconds by which a timeout may be late: after a breakpoint it may be near, and its announcement lost."""
WITH_SINKS = 0.3
"""Share of the runs whose stacks have an event sink."""
PATIENT = 0.5
"""Share of the runs whose users let a stack's action end before they update it."""
ABORTED = "aborted due to breakpoint"
IMPATIENT = 0.3
"""Probability that a lost answer makes somebody cancel an update."""
LOST_OFTEN = "conductors that died or went silent"
DELETIONS = 10
"""Tries: a chain of resources may hang at each of its links."""


def play(
    seed: int,
    folder: pathlib.Path,
    length: int = LENGTH,
    *,
    nested: bool = False,
    focus: Pair | None = None,
) -> "Run":
    """One run from its beginning to its end, with everything that must hold; the same each time.

    :param nested: there are stacks inside of the stacks.
    :param focus: the fault that happens most, and the action during which it does; None: as chance will.
    :raises AssertionError: something does not hold.
    """
    with repeatable(seed):
        run = Run(seed, folder, nested=nested, focus=focus)
        with run.audited():
            run.go(length)
            run.check()
            run.clean_up()
            run.check()
        return run


class Run:
    """One run of one seed.

    :ivar history: the events of the schedule in order, to see what led to a failure.
    :ivar coverage: the faults so far; the changes of tasks' states, too, once it has ended.
    """

    def __init__(
        self, seed: int, folder: pathlib.Path, *, nested: bool = False, focus: Pair | None = None
    ) -> None:
        self.dice = random.Random(seed)
        self.world = World(
            folder,
            hosts=self.dice.randint(1, 4),
            threads=self.dice.choice([1, 2, 4]),
            seed=seed,
        )
        self._is_patient = random.Random(f"patient {seed}").random() < PATIENT
        self.users = Users(self.world, self.dice, nested=nested, is_patient=self._is_patient)
        self.weather = Weather(self.world, self.dice)
        if random.Random(f"sinks {seed}").random() < WITH_SINKS:
            self.world.sinks = [{"type": "zaqar-queue", "target": "q", "ttl": 1_209_600}]
        self.world.unannounced = random.Random(f"unannounced {seed}").choice([0.0, 0.5, 1.0])
        self.history: list[str] = []
        self.coverage = Coverage(runs=1)
        self._focus = Focus(focus, seed)
        self._audit = Audit(self.world.database, folder / "sim.sqlite", self.world.cloud)
        self._interrupted = False
        self._impatience = random.Random(f"impatience {seed}")

    @contextlib.contextmanager
    def audited(self) -> Iterator[None]:
        """Every transaction is checked."""
        database = self.world.database
        database.observers = [self._audit.after_commit, self._compare]
        database.on_fault = self._note_fault
        with mock.patch.object(commit, "exchange", self._audit.exchange):
            yield
        database.observers = []
        self.coverage.arrows = self._audit.arrows()
        self._audit.close()
        database.close()

    def _compare(self) -> None:
        for name, *columns in self._audit.stacks():
            self.users.reference.sees(name, *columns)

    def _hold(self) -> None:
        """:raises AssertionError: something has happened that must not."""
        wrong = [*self._audit.wrong, *self.world.broken, *self.users.breaks.wrong]
        assert not wrong, "\n".join([*wrong, *self.history])

    def go(self, length: int) -> None:
        """Faults and work in a random order; then time without faults until all stacks are final."""
        database = self.world.database
        users = self.users
        weather = self.weather
        often = 3 if self._is_patient else 1
        weather.begin()
        database.interlude = self._interlude
        actions = [
            (users.create, 3), (users.update, 4 * often), (users.stop, 0.7 * often), (users.act, 3),
            (users.delete, 0.6), (users.snapshot, 2), (users.forget, 1), (users.restore, 1),
            (users.hand_over, 0.7), (users.clear_hook, 6),
            (weather.work, 60), (weather.run_once, 30), (weather.step, 40), (weather.deliver, 20),
            (weather.lose, 2), (weather.double, 3), (weather.cancel, 10), (weather.stop_message, 5),
            (weather.lose_cancel, 2), (weather.duty, 12), (weather.look, 12), (weather.time, 16),
            (weather.kill, 1.2), (weather.revive, 3), (weather.pause, 0.8), (weather.cut_off, 0.8),
            (weather.resume, 4), (weather.go_on, 1.5), (weather.flap, 1.2),
            (weather.exhaust, 1.2), (weather.lull, 3 * often),
        ]  # fmt: skip
        self._do(users.create)
        weights = [self._focus.weight(action.__name__, weight) for action, weight in actions]
        chosen = self.dice.choices(actions, weights, k=length)
        for action, _ in chosen:
            self._do(action)
            if self._focus.is_set and (fault := self._focus.fault_now(self._audit.in_progress())):
                self._do(getattr(weather, fault))
        weather.end()
        self._settle(self._all_settled)
        self._end_calls()

    def _do(self, action: Callable[[], str | None]) -> None:
        in_progress = self._audit.in_progress() if action.__name__ in FAULTS else ()
        lost_answers = len(self.world.cloud.lost_answers)
        note = action()
        if note and note != "ends":
            self.coverage.note(action.__name__, in_progress)
        if note:
            self.history.append(f"{self.world.clock.now - 1_000_000:.1f} {action.__name__} {note}")
        self._audit.after_event(self.world)
        self._hold()
        if not self._interrupted:
            self._compare_reached()
        if len(self.world.cloud.lost_answers) > lost_answers and self._impatience.random() < IMPATIENT:
            self._do(self.users.give_up)

    def _compare_reached(self) -> None:
        """Compare the stacks that are complete since the last event with their goals: a later update may
        correct what is wrong now."""
        names = self.users.reference.just_reached()
        made = self._made() if names else None
        for name in names:
            differences = self.users.reference.differences(name, self.users.stacks[name].id, made)
            assert not differences, "\n".join([*differences, *self.history])

    def _note_fault(self, fault: str) -> None:
        self.coverage.note(fault, self._audit.in_progress())

    def _interlude(self) -> None:
        """Whoever wants to write is held up in the middle of its work, while all others continue: what it
        has seen may not be true any more when it writes."""
        held = self.world.acting
        users = self.users
        weather = self.weather
        if held is None or self._interrupted:
            return
        self._interrupted = True
        was_cut_off = held.cut_off
        self.history.append(f"{self.world.clock.now - 1_000_000:.1f} {held.host} is held up before it writes")
        self._note_fault("hold_up")
        self.world.pause(held.host)
        others = [
            (weather.work, 10), (weather.step, 5), (weather.deliver, 3), (weather.duty, 10),
            (weather.look, 8), (weather.time, 6), (weather.cancel, 3), (weather.stop_message, 3),
            (users.update, 1), (users.act, 1), (users.delete, 0.5),
        ]  # fmt: skip
        weights = [weight for _, weight in others]
        for action, _ in self.dice.choices(others, weights, k=self.dice.choice([10, 30, 60])):
            self._do(action)
        self.history.append(f"{self.world.clock.now - 1_000_000:.1f} {held.host} goes on")
        self.world.resume(held.host)
        held.cut_off = was_cut_off
        self._interrupted = False

    def _settle(self, until: Callable[[], bool]) -> None:
        settled = self.world.settle(
            lambda: (
                self.world.late_by > MOST_LATE or (self.users.breaks.clear_until(until) and self._all_sent())
            ),
            within=SETTLE_WITHIN,
        )
        self._hold()
        lines = [str(self.users.now(name)) for name in self.users.stacks]
        late_by = self.world.late_by
        assert late_by <= MOST_LATE, "\n".join([f"I5: a timeout is {late_by} s late", *lines, *self.history])
        assert settled, "\n".join(["I4: a stack never became final", *lines, *self.history])

    def _end_calls(self) -> None:
        """Let the steps that hang return at last: they change nothing, and leave nothing."""
        before = self._all()
        self._settle(self._all_returned)
        assert before == self._all(), "\n".join(["late", *self.history])

    def _all(self) -> list[Stack]:
        return [self.users.now(name) for name in self.users.stacks]

    def _all_sent(self) -> bool:
        """Nothing waits for an event sink."""
        waiting = sa.select(tables.event_delivery.c.id).limit(1)
        return self.world.database.read(lambda conn: conn.execute(waiting).first()) is None

    def _all_settled(self) -> bool:
        """The users' stacks: not those that wait for calls that hang."""
        return not self._audit.unsettled() & {stack.id for stack in self.users.stacks.values()}

    def _all_returned(self) -> bool:
        """Let all calls return that hang now; then one that removes what they have made may hang, too."""
        hanging = [conductor for conductor in self.world.conductors.values() if conductor.hanging]
        for conductor in hanging:
            while conductor.hanging:
                conductor.go_on()
        return not hanging and self._all_final()

    def _all_final(self) -> bool:
        s = tables.stack.c
        snapshot = tables.snapshot.c
        unfinished = sa.select(snapshot.id).where(snapshot.status == Status.IN_PROGRESS)
        busy = sa.select(s.id).where(sa.or_(s.status == Status.IN_PROGRESS, s.rollback_at.is_not(None)))
        read = self.world.database.read
        return all(
            read(lambda conn, q=query: conn.execute(q.limit(1)).first()) is None
            for query in (unfinished, busy)
        )

    # -- what must hold ----------------------------------------------------------------------------

    def check(self) -> None:
        """The invariants, after `go`; the names are those of the design."""
        self._hold()
        result = self._made()
        self._let_go(result)
        every = [row for rows in result.rows.values() for row in rows]
        keys = {row.key for row in every}
        held = {row.physical_id for row in every}
        leaked = [item for name, item in result.objects.items() if item.key not in keys and name not in held]
        physical_ids = [
            row.physical_id for row in every if row.action != "DELETE" and row.replaced_by is None
        ]
        lost = [x for x in physical_ids if x and x not in result.objects and x not in result.rows]
        assert (leaked, lost) == ([], []), "\n".join([f"I7: {leaked=} {lost=}", *self.history])
        for name, stack in self.users.stacks.items():
            self._check_stack(name, self.users.now(name))
            differences = self.users.reference.differences(name, stack.id, result)
            assert not differences, "\n".join([*differences, *self.history])
        if self.world.sinks:
            received = {message["id"] for message in self.world.queues.get("q", [])}
            unsent = [event for event in self._events() if event.uuid not in received]
            assert not unsent, "\n".join([f"not sent: {unsent}", *self.history])
        wrong = self.users.keeping.wrong()
        assert not wrong, "\n".join([f"I7: {wrong}", *self.history])

    def _events(self) -> Iterator[Event]:
        """The events that event sinks must have got, of each tree until its root was deleted.

        Where a stack was rolled back to nothing, its snapshots and its document have no sinks.
        """
        unwatched = self._audit.unwatched()
        for name, stack in self.users.stacks.items():
            now = self.users.now(name)
            environment = self.world.database.read(
                lambda conn, one=now: content.get(conn, one.environment_id)
            )
            if not (now.has_sinks or environment.get("event_sinks")):
                continue
            query = EventQuery(stack.id, nested_depth=-1)
            for event, _ in self.world.database.read(lambda conn, q=query: events.list_events(conn, q)):
                if event.uuid not in unwatched:
                    yield event
                is_of_stack = (event.stack_id, event.resource_name) == (stack.id, stack.name)
                if is_of_stack and (event.action, event.status) == ("DELETE", Status.COMPLETE):
                    break

    def _let_go(self, result: Made) -> None:
        """Forget the objects whose adoption was cancelled or rolled back: they stay, and belong to nobody."""
        held = {str(row.physical_id) for rows in result.rows.values() for row in rows}
        for name in (self.world.cloud.lent | self._audit.retained()) - held:
            self.world.cloud.objects.pop(name, None)

    def _made(self) -> Made:
        s = tables.stack.c
        living = sa.select(s.id).where(s.deleted_at.is_(None))
        ids = self.world.database.read(lambda conn: conn.execute(living).scalars().all())
        rows = {
            key: self.world.database.read(lambda conn, k=key: resources.of_stack(conn, StackId(k)))
            for key in ids
        }
        audit = self._audit
        return Made(rows, self.world.cloud.objects, audit.unread(), audit.doubtful(), audit.adopted())

    def _check_stack(self, name: str, stack: Stack) -> None:
        entries = self.world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
        lost = [event for event, _ in entries if LOST in event.reason]
        assert not lost, "\n".join([f"I7: {lost}", *self.history])
        of_stack = [event for event, _ in entries if event.resource_name == name]
        ends = collections.Counter(e.action for e in of_stack if e.status != Status.IN_PROGRESS)
        starts = collections.Counter(e.action for e in of_stack if e.status == Status.IN_PROGRESS)
        assert not ends - starts, f"I4: {name} ended more often than it began: {starts} {ends}"
        timeouts = [
            i for i, event in enumerate(of_stack) if event.reason == f"{event.action.title()} timed out"
        ]
        for index in timeouts:
            began = next(e for e in reversed(of_stack[:index]) if e.status == Status.IN_PROGRESS)
            assert of_stack[index].at - began.at >= 60.0, f"I5: {name} timed out early"
        if name in self.users.deleted:
            assert stack.action == "DELETE", f"I6: {name} is {stack.action}"
            in_time = not any(cause in stack.reason for cause in ("timed out", ABORTED, LOST_OFTEN))
            assert stack.status == Status.COMPLETE or not in_time, f"I6: {name}: {stack.reason}"

    def clean_up(self) -> None:
        """Delete all stacks, without faults: nothing stays behind in the cloud.

        A call of the deletion that hangs makes the stack time out; the next try does not find it hanging.
        """
        for _ in range(DELETIONS):
            if self.users.delete_all():
                break
            self._settle(self._all_settled)
            self._end_calls()
        left = [stack for stack in self._all() if (stack.action, stack.status) != ("DELETE", Status.COMPLETE)]
        faults = [f"I4: {stack.name} is {stack.action}_{stack.status}: {stack.reason}" for stack in left]
        assert not left, "\n".join([*faults, *self.history])
        self._let_go(self._made())
        cloud = self.world.cloud
        assert not cloud.pictures, "\n".join([f"I7: {cloud.pictures}", *self.history])
        assert not cloud.objects, "\n".join([f"I7: {self.world.cloud.objects}", *self.history])
        left_behind = list(self._made().rows)
        assert not left_behind, "\n".join([f"I7: {left_behind}", *self.history])

    def fingerprint(self) -> str:
        """All that is stored, and what happened: two equal runs have equal ones."""
        lines = [*self.history]
        for table in tables.metadata.sorted_tables:
            rows = self.world.database.read(lambda conn, t=table: conn.execute(sa.select(t)).all())
            lines += [f"{table.name} {row}" for row in rows]
        return "\n".join(lines)
