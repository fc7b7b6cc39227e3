"""Random breakpoints, who clears them, and what must hold while tasks are held (I10)."""

import random
import typing
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from simulation.world import World
from stoker.db import stacks, traversals
from stoker.db.ids import StackId
from stoker.db.rows import Stack, Task, Traversal
from stoker.db.schema import tables
from stoker.db.states import ACTIVE, Status, TaskState
from stoker.db.work import tasks
from stoker.engine.breakpoints import clear_breakpoint, continue_held

Json = typing.Any
OF_DELETIONS = ("pre-delete", "post-delete")
HOOKS = ("pre-create", "post-create", "pre-update", "post-update", *OF_DELETIONS)


def random_environment(dice: random.Random, names: Sequence[str], nested: Sequence[str] = ()) -> Json:
    """None, or some breakpoints, of which a few have a limit, or end the action of the stack.

    :param nested: those of the names that are stacks, inside of which may be breakpoints, too.
    """
    if dice.random() < 0.5:
        return {}
    entries: Json = {}
    for name in dice.sample(list(names), k=min(len(names), dice.randint(1, 3))):
        entries[dice.choice([name, name, "r*"])] = _hooks(dice)
    for name in nested:
        if dice.random() < 0.3:
            entries.setdefault(name, {})[dice.choice(["s0", "s1", "s*"])] = _hooks(dice)
    return {"resource_registry": {"resources": entries}}


def _hooks(dice: random.Random) -> Json:
    hooks = dice.sample(HOOKS, k=dice.randint(1, 3))
    return {"hooks": {hook: _options(dice, hook) for hook in hooks}}


def _options(dice: random.Random, hook: str) -> Json:
    """A deletion that ends as failed leaves something behind, which is right, but hides what is wrong."""
    odds = dice.random()
    if odds < 0.2:
        fails = hook not in OF_DELETIONS and dice.random() < 0.3
        return {"timeout": dice.choice([1, 10, 50]), "then": "fail" if fails else "continue"}
    return {"abort": True} if odds < 0.25 and hook not in OF_DELETIONS else {}


def together(*environments: Json) -> Json:
    """One environment that says of each resource what all of them say."""
    entries: Json = {}
    for environment in environments:
        for name, entry in environment.get("resource_registry", {}).get("resources", {}).items():
            entries.setdefault(name, {}).update(entry)
    return {"resource_registry": {"resources": entries}} if entries else {}


class Breaks:
    """Clears breakpoints, and checks the held tasks.

    :ivar wrong: what must never be and was.
    """

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world = world
        self.dice = dice
        self.wrong: list[str] = []

    def clear_one(self, stack: Stack) -> str | None:
        """The user clears a breakpoint of the stack, or all, or goes one step; None: it is not held."""
        self.look()
        held_items = self.world.held(stack)
        if not held_items:
            return None
        one = self.dice.choice(held_items)
        kind = self.dice.choice(["clear", "some", "all", "step"])
        if kind == "clear" and one.path == one.resource_name:
            clear_breakpoint(self.world.context, stack, one.resource_name, one.hook)
        else:
            names = None if kind in ("all", "step") else [one.path]
            continue_held(self.world.context, stack, names=names, step=kind == "step")
        return f"{kind} {stack.name}.{one.path} {one.hook}"

    def clear_until(self, condition: Callable[[], bool]) -> bool:
        """Somebody clears one breakpoint after the other until the condition holds; whether it does."""
        if condition():
            return True
        for stack in self.look():
            if held_items := self.world.held_itself(stack):
                clear_breakpoint(self.world.context, stack, held_items[0].resource_name, held_items[0].hook)
        return False

    def look(self) -> list[Stack]:
        """Nothing behind a held task has begun, and the deadline is where it belongs; the stacks that are
        held somewhere."""
        t = tables.task.c
        s = tables.stack.c
        stopped = sa.select(t.stack_id).where(t.state == TaskState.HELD)
        some = sa.select(s.id).where(sa.or_(s.id.in_(stopped), s.remaining.is_not(None))).order_by(s.name)
        ids = self.world.database.read(lambda conn: conn.execute(some).scalars().all())
        standing = [self.world.stack(StackId(stack_id)) for stack_id in ids]
        for stack in standing:
            stored_tasks = self.world.database.read(
                lambda conn, s=stack: tasks.of_traversal(conn, s.traversal)
            )
            present = self.world.database.read(lambda conn, s=stack: traversals.get_running(conn, s.id))
            self.wrong += [
                f"I10: {stack.name}: {fault}" for fault in self._wrong(stack, stored_tasks, present)
            ]
        return standing

    def _wrong(self, stack: Stack, all_tasks: Sequence[Task], present: Traversal | None) -> list[str]:
        held = [task for task in all_tasks if task.state == TaskState.HELD]
        inside = [task for task in all_tasks if self._waits_for_one_that_stands(task)]
        active = [task for task in all_tasks if task.state in ACTIVE and task not in inside]
        successors = {successor for task in held for successor in task.successors}
        counted = [present.held_tasks] if present is not None and present.open_tasks else []
        stands = stack.remaining is not None
        going = stack.status == Status.IN_PROGRESS
        rules = {
            "has begun behind a held task": any(
                task.id in successors and task.state in {*ACTIVE, TaskState.DONE} for task in all_tasks
            ),
            f"counts {counted}, {len(held)} are held": going and counted not in ([], [len(held)]),
            "has two clocks": stands and stack.deadline_at is not None,
            "stands although something goes on": stands and (not (held or inside) or bool(active)),
            "goes although nothing goes on": bool(held or inside)
            and not (stands or active or self._runs(stack)),
        }
        return [rule for rule, is_so in rules.items() if is_so]

    def _waits_for_one_that_stands(self, task: Task) -> bool:
        """Return whether it waits for a nested stack whose clock is paused."""
        awaited = task.waits_on
        if task.state != TaskState.PARKED or awaited is None or not awaited.is_stack:
            return False
        current = self.world.database.read(lambda conn: stacks.find_undeleted(conn, StackId(awaited.key)))
        return current is not None and current.remaining is not None

    def _runs(self, stack: Stack) -> bool:
        """Return whether a task of an older traversal runs, or the deadline has passed and strikes soon."""
        running = self.world.database.read(lambda conn: tasks.running_of_stack(conn, stack.id))
        return bool(running) or (stack.deadline_at or 0.0) <= self.world.clock.now
