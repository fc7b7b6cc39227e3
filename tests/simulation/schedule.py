"""A seeded random order of events, with faults; and what must hold after it, whatever the order was."""

import collections
import contextlib
import copy
import pathlib
import random
import typing
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from simulation.cloud import LOST
from simulation.hooks import random_environment
from simulation.keeping import Keeping
from simulation.repeatable import repeatable
from simulation.world import TIMEOUT, World
from stoker.db import events, resources, tables, tasks
from stoker.db.events import EventQuery
from stoker.db.ids import StackId
from stoker.db.stacks import Stack
from stoker.db.states import ACTIVE, Status, TaskKind, TaskState
from stoker.traversal.change import NotUpdatable

Json = typing.Any
ABORTED = "aborted due to breakpoint"
SETTLE_WITHIN = 4000.0
"""Simulated seconds: longer than any stack's timeout here."""


def random_template(dice: random.Random) -> Json:
    """A random graph: each resource stands on some of the earlier ones."""
    names = [f"r{index}" for index in range(dice.randint(1, 9))]
    found: Json = {}
    for index, name in enumerate(names):
        below = dice.sample(names[:index], k=min(index, dice.choice([0, 0, 1, 1, 2, 3])))
        properties: Json = {
            "needs": [{"get_resource": other} for other in below],
            "looks": dice.choice([1, 1, 2, 4]),
            "after": dice.choice([0, 0.5, 3]),
            "flaky": dice.choice([0, 0, 0, 1, 2]),
        }
        if below:
            properties["value"] = {"get_attr": [below[0], "address"]}
        odds = dice.random()
        properties["fail"] = odds < 0.03
        if odds > 0.97:
            properties.update(endless=True, after=20)
        if dice.random() < 0.06:
            properties["hangs"] = [dice.choice(["create", "made", "look", "update", "delete"])]
        found[name] = {"type": "Sim::Server", "properties": properties}
    return {"heat_template_version": "2018-08-31", "resources": found}


def mutated(template: Json, dice: random.Random) -> Json:
    """The template with some of its resources changed, one way or the other; or another one."""
    if dice.random() < 0.3:
        return random_template(dice)
    found = copy.deepcopy(template)
    for resource in found["resources"].values():
        properties = resource["properties"]
        odds = dice.random()
        if odds < 0.2:
            properties["size"] = dice.randint(1, 3)
        elif odds < 0.4 and not isinstance(properties.get("value"), dict):
            properties["value"] = str(dice.randint(1, 3))
        elif odds < 0.5:
            properties.update(fail=False, endless=False)
    return found


LENGTH = 500
DELETIONS = 10
"""Tries: a chain of resources may hang at each of its links."""


def play(seed: int, folder: pathlib.Path, length: int = LENGTH) -> "Run":
    """One run from its beginning to its end, with everything that must hold; the same each time.

    :raises AssertionError: something does not hold.
    """
    with repeatable(seed):
        run = Run(seed, folder)
        run.go(length)
        run.check()
        run.clean_up()
        run.check()
        return run


class Run:
    """One run of one seed.

    :ivar told: the events of the schedule in order, to see what led to a failure.
    """

    def __init__(self, seed: int, folder: pathlib.Path) -> None:
        self.dice = random.Random(seed)
        self.world = World(
            folder, hosts=self.dice.randint(1, 4), threads=self.dice.choice([1, 2, 4]), seed=seed
        )
        self.stacks: dict[str, Stack] = {}
        self.goals: dict[str, Json] = {}
        self.deleted: set[str] = set()
        self.told: list[str] = []
        self._hosts = list(self.world.conductors)
        self._keeping = Keeping(self.world)

    def go(self, length: int) -> None:
        """Faults and work in a random order; then time without faults until all stacks are final."""
        self.world.database.before, self.world.database.after = 0.03, 0.03
        actions = [
            (self._create, 3), (self._update, 3), (self._stop, 1), (self._act, 3), (self._delete, 1),
            (self._snapshot, 3), (self._forget, 1.5), (self._restore, 1.5), (self._hand_over, 1),
            (self._turn, 40), (self._step, 40), (self._deliver, 30),
            (self._lose, 3), (self._double, 3), (self._cancel, 10), (self._duty, 12), (self._look, 12),
            (self._time, 12), (self._kill, 1.5), (self._revive, 2), (self._pause, 1), (self._cut_off, 1),
            (self._resume, 3), (self._stop_message, 6), (self._lose_cancel, 2), (self._go_on, 1),
            (self._clear_hook, 6),
        ]  # fmt: skip
        weights = [weight for _, weight in actions]
        for action, _ in self.dice.choices(actions, weights, k=length):
            note = action()
            if note:
                self.told.append(f"{self.world.clock.now - 1_000_000:.1f} {action.__name__[1:]} {note}")
        self._end_faults()
        assert self._settles(self._all_settled), self._stuck()
        self._end_calls()

    def _end_calls(self) -> None:
        """What hangs returns at last: it changes nothing, and leaves nothing behind."""
        before = [self._now(stack) for stack in self.stacks.values()]
        for conductor in self.world.conductors.values():
            while conductor.hanging:
                conductor.go_on()
        assert self._settles(self._all_final), self._stuck()
        assert before == [self._now(stack) for stack in self.stacks.values()], "\n".join(["late", *self.told])

    def _all_settled(self) -> bool:
        """The users' stacks: not those that wait for calls that hang."""
        found = [self._now(stack) for stack in self.stacks.values()]
        return all(stack.status != Status.IN_PROGRESS and stack.rollback_at is None for stack in found)

    def _end_faults(self) -> None:
        world = self.world
        world.database.before = world.database.after = 0.0
        for conductor in world.conductors.values():
            if conductor.paused or conductor.cut_off:
                world.resume(conductor.host)
        for host in self._hosts:
            if host not in world.conductors:
                world.start(host)
        world.pass_time(TIMEOUT)

    def _all_final(self) -> bool:
        s, kept = tables.stack.c, tables.snapshot.c
        made = sa.select(kept.id).where(kept.status == Status.IN_PROGRESS)
        if self.world.database.read(lambda conn: conn.execute(made.limit(1)).first()) is not None:
            return False
        busy = sa.select(s.id).where(sa.or_(s.status == Status.IN_PROGRESS, s.rollback_at.is_not(None)))
        return self.world.database.read(lambda conn: conn.execute(busy.limit(1)).first()) is None

    def _settles(self, condition: Callable[[], bool]) -> bool:
        return self.world.settle(lambda: self._clear_until(condition), within=SETTLE_WITHIN)

    def _clear_until(self, condition: Callable[[], bool]) -> bool:
        """Somebody clears one breakpoint after the other until the condition holds."""
        if condition():
            return True
        for stack in self._check_held():
            if found := self.world.breakpoints.held(stack):
                self.world.breakpoints.clear(stack, found[0].resource_name, found[0].hook)
        return False

    def _stuck(self) -> str:
        lines = [str(self.world.stack(s.id)) for s in self.stacks.values()]
        return "\n".join(["I4: a stack never became final", *lines, *self.told])

    # -- events of the schedule --------------------------------------------------------------------

    def _some(self) -> str | None:
        awake = [conductor.host for conductor in self.world.awake()]
        return self.dice.choice(awake) if awake else None

    def _create(self) -> str | None:
        if len(self.stacks) >= 5:
            return None
        name, goal = f"s{len(self.stacks)}", random_template(self.dice)
        self.goals[name] = goal
        minutes = self.dice.choice([1, 2, 5])
        with self._database_there():
            rolled_back = self.dice.random() < 0.3
            self.stacks[name] = self.world.create(
                name,
                goal,
                environment=random_environment(self.dice, list(goal["resources"])),
                timeout_mins=minutes,
                disable_rollback=not rolled_back,
                abort_on_breakpoint=self.dice.random() < 0.05,
            )
        return name

    def _update(self) -> str | None:
        name = self._living()
        if name is None:
            return None
        goal = mutated(self.goals[name], self.dice)
        with self._database_there():
            waiting = self._keeping.not_adopted(self.stacks[name])
            try:
                environment = random_environment(self.dice, list(goal["resources"]))
                self.world.update(self.stacks[name], goal, environment=environment, abort_on_breakpoint=False)
            except NotUpdatable:
                return None
            self._keeping.let_go(waiting, goal)
        self.goals[name] = goal
        return name

    def _act(self) -> str | None:
        """Check, suspend or resume."""
        name, kind = self._living(), self.dice.choice([TaskKind.CHECK, TaskKind.SUSPEND, TaskKind.RESUME])
        if name is None:
            return None
        with self._database_there():
            try:
                self.world.orders.act(self.world.stack(self.stacks[name].id), kind)
            except NotUpdatable:
                return None
        return f"{name} {kind}"

    def _stop(self) -> str | None:
        """The user cancels what a stack does."""
        name, rollback = self._living(), self.dice.random() < 0.5
        if name is None:
            return None
        with self._database_there():
            try:
                self.world.updates.cancel(self.world.stack(self.stacks[name].id), rollback=rollback)
            except NotUpdatable:
                return None
        return f"{name} {rollback=}"

    def _delete(self) -> str | None:
        name = self._living()
        if name is not None:
            with self._database_there():
                self._keeping.let_go(self._keeping.not_adopted(self.stacks[name]))
                self.world.orders.delete(self.world.stack(self.stacks[name].id))
            self.deleted.add(name)
        return name

    def _snapshot(self) -> str | None:
        name = self._living()
        if name is None:
            return None
        with self._database_there():
            return self._keeping.take(self.stacks[name])

    def _forget(self) -> str | None:
        """The user deletes a snapshot."""
        name = self._living()
        if name is None:
            return None
        with self._database_there():
            return self._keeping.forget(self.stacks[name], self.dice)

    def _restore(self) -> str | None:
        name = self._living()
        if name is None:
            return None
        with self._database_there():
            goal = self._keeping.restore(self.stacks[name], self.dice)
        if goal is None:
            return None
        self.goals[name] = goal
        return name

    def _hand_over(self) -> str | None:
        """A stack is abandoned, and another one adopts what it had."""
        name = self._living()
        if name is None:
            return None
        new = f"{name}+"
        with self._database_there():
            found = self._keeping.hand_over(self.stacks[name], new)
        if found is None:
            return None
        self.deleted.add(name)
        self.stacks[new], self.goals[new] = found
        return new

    def _clear_hook(self) -> str | None:
        """The user clears a breakpoint, or all, or goes one step."""
        self._check_held()
        stack = (
            self.world.stack(self.stacks[self.dice.choice(sorted(self.stacks))].id) if self.stacks else None
        )
        found = [] if stack is None else self.world.breakpoints.held(stack)
        if stack is None or not found:
            return None
        with self._database_there():
            one, kind = self.dice.choice(found), self.dice.choice(["clear", "some", "all", "step"])
            if kind == "clear":
                self.world.breakpoints.clear(stack, one.resource_name, one.hook)
            else:
                names = [one.resource_name] if kind == "some" else None
                self.world.breakpoints.go_on(stack, names=names, step=kind == "step")
        return f"{kind} {stack.name}.{one.resource_name} {one.hook}"

    def _check_held(self) -> list[Stack]:
        """Nothing behind a held task has begun, and the deadline is where it belongs; the stacks that are
        held somewhere."""
        t, s = tables.task.c, tables.stack.c
        stopped = sa.select(t.stack_id).where(t.state == TaskState.HELD)
        some = sa.select(s.id).where(sa.or_(s.id.in_(stopped), s.remaining.is_not(None))).order_by(s.name)
        ids = self.world.database.read(lambda conn: conn.execute(some).scalars().all())
        stacks = [self.world.stack(StackId(stack_id)) for stack_id in ids]
        for stack in stacks:
            found = self.world.database.read(lambda conn, s=stack: tasks.of_traversal(conn, s.traversal))
            behind = {
                successor for task in found if task.state == TaskState.HELD for successor in task.successors
            }
            begun = [task for task in found if task.id in behind and task.state in {*ACTIVE, TaskState.DONE}]
            assert not begun, "\n".join([f"I10: {stack.name}: {begun}", *self.told])
            held = [task.id for task in found if task.state == TaskState.HELD]
            counted = [task.held for task in found if task.kind == TaskKind.FINISH and task.pending]
            going = stack.status == Status.IN_PROGRESS
            assert not going or counted in ([], [len(held)]), "\n".join(
                [f"I10: {stack.name}: {counted}", *self.told]
            )
            stands = stack.remaining is not None
            assert not (stands and stack.deadline_at is not None), f"{stack.name} has two clocks"
            active = [task for task in found if task.state in ACTIVE]
            assert not stands or (held and not active), "\n".join([f"{stack.name} stands", *self.told])
            assert stands or active or not held or self._runs(stack), "\n".join(
                [f"{stack.name} goes", *self.told]
            )
        return stacks

    def _runs(self, stack: Stack) -> bool:
        """Whether something of an older traversal runs, or the deadline has passed and strikes soon."""
        running = self.world.database.read(lambda conn: tasks.running_of_stack(conn, stack.id))
        return bool(running) or (stack.deadline_at or 0.0) <= self.world.clock.now

    def _living(self) -> str | None:
        alive = sorted(set(self.stacks) - self.deleted)
        return self.dice.choice(alive) if alive else None

    @contextlib.contextmanager
    def _database_there(self) -> Iterator[None]:
        """The API would answer 503 otherwise, and the user try again."""
        before, after = self.world.database.before, self.world.database.after
        self.world.database.before = self.world.database.after = 0.0
        yield
        self.world.database.before, self.world.database.after = before, after

    def _turn(self) -> str | None:
        host = self._some()
        if host:
            self.world.conductors[host].turn()
        return host

    def _step(self) -> str | None:
        host = self._some()
        conductor = self.world.conductors[host] if host else None
        if conductor is None or not conductor.steps:
            return None
        conductor.run_step(self.dice.randrange(len(conductor.steps)))
        return host

    def _deliver(self) -> str | None:
        host = self._some()
        if not host or not self.world.bus.hints:
            return None
        index = self.dice.randrange(len(self.world.bus.hints))
        tasks = self.world.bus.hints[index][1]
        self.world.deliver(index, host)
        return f"{list(tasks)} to {host}"

    def _lose(self) -> str | None:
        if not self.world.bus.hints:
            return None
        return str(self.world.bus.hints.pop(self.dice.randrange(len(self.world.bus.hints))))

    def _double(self) -> str | None:
        if not self.world.bus.hints:
            return None
        self.world.bus.hints.append(self.dice.choice(self.world.bus.hints))
        return str(self.world.bus.hints[-1])

    def _cancel(self) -> str | None:
        if not self.world.bus.cancels:
            return None
        self.world.deliver_cancel(self.dice.randrange(len(self.world.bus.cancels)))
        return "delivered"

    def _duty(self) -> str | None:
        host = self._some()
        if not host:
            return None
        index = self.dice.randrange(len(self.world.conductors[host].duties))
        self.world.conductors[host].run_duty(index)
        return f"{index} of {host}"

    def _stop_message(self) -> None:
        if self.world.bus.stops:
            self.world.deliver_stop(self.dice.randrange(len(self.world.bus.stops)))

    def _lose_cancel(self) -> None:
        waiting: list[Json] = self.dice.choice([self.world.bus.cancels, self.world.bus.stops])
        if waiting:
            waiting.pop(self.dice.randrange(len(waiting)))

    def _go_on(self) -> str | None:
        """A call that hangs returns."""
        host = self._some()
        conductor = self.world.conductors[host] if host else None
        if conductor is None or not conductor.hanging:
            return None
        conductor.go_on(self.dice.randrange(len(conductor.hanging)))
        return host

    def _look(self) -> str | None:
        host = self._some()
        if host:
            self.world.look(host)
        return host

    def _time(self) -> str:
        seconds = self.dice.choice([0.1, 0.5, 1, 1, 2, 5, 15])
        self.world.pass_time(seconds)
        return f"{seconds}"

    def _kill(self) -> str | None:
        host = self._some()
        if host:
            self.world.kill(host)
        return host

    def _revive(self) -> str | None:
        gone = [host for host in self._hosts if host not in self.world.conductors]
        if not gone:
            return None
        host = self.dice.choice(gone)
        self.world.start(host)
        return host

    def _pause(self) -> str | None:
        host = self._some()
        if host:
            self.world.pause(host)
        return host

    def _cut_off(self) -> str | None:
        host = self._some()
        if host and not self.world.conductors[host].cut_off:
            self.world.cut_off(host)
        return host

    def _resume(self) -> str | None:
        paused = [c.host for c in self.world.conductors.values() if c.paused or c.cut_off]
        if not paused:
            return None
        host = self.dice.choice(paused)
        self.world.resume(host)
        return host

    # -- what must hold ----------------------------------------------------------------------------

    def check(self) -> None:
        """The invariants, after `go`; the names are those of the design."""
        assert not self.world.cloud.wrong, "\n".join(["I3", *self.world.cloud.wrong, *self.told])
        keys = {
            row.key: row.physical_id if row.action != "DELETE" and row.replaced_by is None else None
            for stack in self.stacks.values()
            for row in self.world.database.read(lambda conn, s=stack: resources.of_stack(conn, s.id))
        }
        things = self.world.cloud.things
        held = set(keys.values())
        leaked = [thing for name, thing in things.items() if thing.key not in keys and name not in held]
        lost = [physical for physical in keys.values() if physical and physical not in things]
        assert (leaked, lost) == ([], []), "\n".join([f"I7: {leaked=} {lost=}", *self.told])
        for name, stack in self.stacks.items():
            now = self.world.stack(stack.id)
            self._check_stack(name, now)
            if now.status == Status.COMPLETE and now.action in ("CREATE", "UPDATE", "RESTORE", "ADOPT"):
                self._check_goal(name, now)
        wrong = self._keeping.wrong(self.stacks.values())
        assert not wrong, "\n".join([f"I7: {wrong}", *self.told])

    def _check_goal(self, name: str, stack: Stack) -> None:
        """A stack that is complete is what its last goal says, as a simple interpreter reads it."""
        rows = self.world.database.read(lambda conn: resources.of_stack(conn, stack.id))
        goal = self.goals[name]["resources"]
        shown = "\n".join([f"{name}: {[(r.id, r.name, r.action, r.status) for r in rows]}", *self.told])
        assert sorted(row.name for row in rows) == sorted(goal), shown
        by_name = {row.name: row for row in rows}
        physical = {n: str(row.physical_id) for n, row in by_name.items()}
        for n, wanted in goal.items():
            properties, row = wanted["properties"], by_name[n]
            value = properties.get("value", "")
            if isinstance(value, dict):
                value = f"at-{physical[value['get_attr'][0]]}"
            assert row.attributes == {"address": f"at-{physical[n]}", "value": value}, f"{n}: {shown}"
            needs = tuple(physical[need["get_resource"]] for need in properties["needs"])
            assert self.world.cloud.things[physical[n]].needs == needs, f"{n}: {shown}"

    def _check_stack(self, name: str, stack: Stack) -> None:
        found = self.world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
        lost = [event for event, _ in found if LOST in event.reason]
        assert not lost, "\n".join([f"I7: {lost}", *self.told])
        own = [event for event, _ in found if event.resource_name == name]
        ends = collections.Counter(e.action for e in own if e.status != Status.IN_PROGRESS)
        starts = collections.Counter(e.action for e in own if e.status == Status.IN_PROGRESS)
        assert not ends - starts, f"I4: {name} ended more often than it began: {starts} {ends}"
        timeouts = [index for index, event in enumerate(own) if event.reason.endswith("timed out")]
        for index in timeouts:
            began = next(e for e in reversed(own[:index]) if e.status == Status.IN_PROGRESS)
            assert own[index].at - began.at >= 60.0, f"I5: {name} timed out early"
        if name in self.deleted:
            assert stack.action == "DELETE", f"I6: {name} is {stack.action}"
            in_time = not (stack.reason.endswith("timed out") or ABORTED in stack.reason)
            assert stack.status == Status.COMPLETE or not in_time, f"I6: {name}: {stack.reason}"

    def clean_up(self) -> None:
        """Delete all stacks, without faults: nothing stays behind in the cloud.

        A call of the deletion that hangs makes the stack time out; the next try does not find it hanging.
        """
        for _ in range(DELETIONS):
            for stack in self.stacks.values():
                self._keeping.let_go(self._keeping.not_adopted(stack))
                self.world.orders.delete(self.world.stack(stack.id))
            assert self._settles(self._all_settled), self._stuck()
            self._end_calls()
        states = {(s.action, s.status) for s in map(self._now, self.stacks.values())}
        assert states <= {("DELETE", Status.COMPLETE)}, "\n".join([str(states), *self.told])
        cloud = self.world.cloud
        assert not cloud.pictures, "\n".join([f"I7: {cloud.pictures}", *self.told])
        assert not cloud.things, "\n".join([f"I7: {self.world.cloud.things}", *self.told])

    def fingerprint(self) -> str:
        """All that is stored, and what happened: two equal runs have equal ones."""
        found = [*self.told]
        for table in tables.metadata.sorted_tables:
            rows = self.world.database.read(lambda conn, t=table: conn.execute(sa.select(t)).all())
            found += [f"{table.name} {row}" for row in rows]
        return "\n".join(found)

    def _now(self, stack: Stack) -> Stack:
        return self.world.stack(stack.id)
