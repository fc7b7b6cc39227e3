"""Random users, their requests at random moments, and their expectations."""

import contextlib
import random
from collections.abc import Iterator

from simulation.hooks import Breaks, random_environment, together
from simulation.keeping import Keeping
from simulation.reference import Reference
from simulation.templates import Json, RandomGoal, is_nested, mutated, random_goal
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.errors import NotUpdatable
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import cancel_action

MOST = 5


class Users:
    """Each method is one order; it says what it was, None: nothing, for it was not to be.

    :ivar stacks: by name, as they were created.
    :ivar deleted: names of those that shall be gone.
    :ivar reference: what they come to.

    :param is_patient: they update a stack only when its action has ended, so that there is more to change.
    """

    def __init__(
        self, world: World, dice: random.Random, *, nested: bool = False, is_patient: bool = False
    ) -> None:
        self.world = world
        self.dice = dice
        self._nested = nested
        self._is_patient = is_patient
        self.stacks: dict[str, Stack] = {}
        self.deleted: set[str] = set()
        self.reference = Reference()
        self.keeping = Keeping(world)
        self.breaks = Breaks(world, dice)

    def now(self, name: str) -> Stack:
        """The stack as it is."""
        return self.world.stack(self.stacks[name].id)

    def create(self) -> str | None:
        if len(self.stacks) >= MOST:
            return None
        name = f"s{len(self.stacks)}"
        goal = random_goal(self.dice, nested=self._nested)
        self.reference.asks(name, goal)
        minutes = self.dice.choice([1, 2, 5])
        with self._database_there():
            self.stacks[name] = self.world.create(
                name,
                goal.template,
                environment=self._environment(goal),
                files=goal.files,
                timeout_mins=minutes,
                disable_rollback=self.dice.random() < 0.7,
                abort_on_breakpoint=self.dice.random() < 0.05,
            )
        return name

    def update(self) -> str | None:
        name = self._living()
        if name is None or (self._is_patient and self.now(name).status == Status.IN_PROGRESS):
            return None
        goal = mutated(self.reference.goal(name), self.dice)
        self.reference.asks(name, goal)
        with self._database_there():
            try:
                environment = self._environment(goal)
                self.world.update(
                    self.stacks[name],
                    goal.template,
                    environment=environment,
                    files=goal.files,
                    abort_on_breakpoint=False,
                )
            except NotUpdatable:
                return None
        return name

    def act(self) -> str | None:
        """Check, suspend or resume."""
        name = self._living()
        kind = self.dice.choice([TaskKind.CHECK, TaskKind.SUSPEND, TaskKind.RESUME])
        if name is None:
            return None
        with self._database_there():
            try:
                act_on_stack(self.world.context, self.now(name), kind)
            except NotUpdatable:
                return None
        return f"{name} {kind}"

    def stop(self) -> str | None:
        """Cancel what a stack does."""
        name = self._living()
        rollback = self.dice.random() < 0.5
        if name is None:
            return None
        with self._database_there():
            try:
                cancel_action(self.world.context, self.now(name), rollback=rollback)
            except NotUpdatable:
                return None
        return f"{name} {rollback=}"

    def give_up(self) -> str | None:
        """Cancel an update that seems to hang, and go back to what was there before."""
        stacks = {name: self.now(name) for name in self.stacks}
        updates = [
            name
            for name, stack in stacks.items()
            if (stack.action, stack.status) == ("UPDATE", Status.IN_PROGRESS)
        ]
        if not updates:
            return None
        name = self.dice.choice(updates)
        with self._database_there():
            cancel_action(self.world.context, stacks[name], rollback=True)
        return name

    def delete(self) -> str | None:
        name = self._living()
        if name is not None:
            with self._database_there():
                delete_stack(self.world.context, self.now(name))
            self.deleted.add(name)
        return name

    def delete_all(self) -> bool:
        """Request the deletion of all stacks, and return whether all are deleted already."""
        done = True
        for name in self.stacks:
            current = self.now(name)
            done &= (current.action, current.status) == ("DELETE", Status.COMPLETE)
            delete_stack(self.world.context, current)
        return done

    def snapshot(self) -> str | None:
        name = self._living()
        if name is None:
            return None
        with self._database_there():
            return self.keeping.take(self.stacks[name])

    def forget(self) -> str | None:
        """Delete a snapshot."""
        name = self._living()
        if name is None:
            return None
        with self._database_there():
            return self.keeping.forget(self.stacks[name], self.dice)

    def restore(self) -> str | None:
        name = self._living()
        if name is None:
            return None
        with self._database_there():
            goal = self.keeping.restore(self.stacks[name], self.dice)
        if goal is None:
            return None
        self.reference.turns_out(name, goal)
        return name

    def hand_over(self) -> str | None:
        """Abandon a stack, and adopt what it had by another one.  Whoever adopts believes the template, so it
        has to say what there is."""
        name = self._living()
        if name is None or self.reference.is_mixed(name):
            return None
        new = f"{name}+"
        self.reference.asks(new, self.reference.goal(name))
        with self._database_there():
            adopted = self.keeping.hand_over(self.stacks[name], new)
        if adopted is None:
            return None
        self.deleted.add(name)
        self.stacks[new], goal = adopted
        self.reference.turns_out(new, goal)
        return new

    def clear_hook(self) -> str | None:
        """Clear a breakpoint, or all, or go one step."""
        if not self.stacks:
            return None
        with self._database_there():
            return self.breaks.clear_one(self.now(self.dice.choice(sorted(self.stacks))))

    def _environment(self, goal: RandomGoal) -> Json:
        nested = [name for name, resource in goal.resources.items() if is_nested(resource)]
        return together(goal.environment, random_environment(self.dice, list(goal.resources), nested))

    def _living(self) -> str | None:
        alive = sorted(set(self.stacks) - self.deleted)
        return self.dice.choice(alive) if alive else None

    @contextlib.contextmanager
    def _database_there(self) -> Iterator[None]:
        """The API would answer 503 otherwise, and the user try again."""
        database = self.world.database
        odds = database.before, database.after, database.interrupted
        database.before = database.after = database.interrupted = 0.0
        yield
        database.before, database.after, database.interrupted = odds
