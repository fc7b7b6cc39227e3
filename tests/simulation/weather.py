"""Random faults of conductors, messages, the database and time."""

import random
import typing

from simulation.world import TIMEOUT, World

Json = typing.Any
USUAL_ERRORS = (0.03, 0.03)
MANY_ERRORS = (0.2, 0.4)
"""Probability that the database is unavailable, before a transaction and after its commit."""
EXHAUSTED = 0.2
"""Probability that a step gets no thread, or a transaction no memory, while they are short."""
UNSENT = 0.3
"""Probability that an event sink fails, before it has got messages and after that."""
INTERRUPTED = 0.06
"""Probability that a conductor is held up before it writes."""

DOUBLED = 0.01
"""Probability that the id of a task or a traversal is one that a row has."""


class Weather:
    """Each method is one event; it says what it was, None: nothing."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world = world
        self.dice = dice
        self._hosts = list(world.conductors)

    def begin(self) -> None:
        """Let the database fail from now on."""
        database = self.world.database
        database.before, database.after, database.interrupted = *USUAL_ERRORS, INTERRUPTED
        self.world.unsent = UNSENT
        self.world.ids.doubled = DOUBLED

    def end(self) -> None:
        """Let nothing fail from now on, but for calls that hang."""
        world = self.world
        world.database.before = world.database.after = world.database.interrupted = 0.0
        world.exhaustion = world.unsent = world.ids.doubled = 0.0
        for conductor in world.conductors.values():
            if conductor.paused or conductor.cut_off:
                world.resume(conductor.host)
        for host in self._hosts:
            if host not in world.conductors:
                world.start(host)
        world.pass_time(TIMEOUT)

    def _some(self) -> str | None:
        awake = [conductor.host for conductor in self.world.awake()]
        return self.dice.choice(awake) if awake else None

    def work(self) -> str | None:
        """All that one conductor can do at this moment, with what the bus has for it."""
        host = self._some()
        if host is None:
            return None
        hints = self.world.bus.hints
        for _ in range(min(len(hints), self.dice.randint(0, 3))):
            self.world.deliver(self.dice.randrange(len(hints)), host)
        conductor = self.world.conductors[host]
        conductor.run_once()
        while conductor.steps:
            conductor.run_step(self.dice.randrange(len(conductor.steps)))
        conductor.run_once()
        return host

    def lull(self) -> str | None:
        """Some seconds in which everybody works: stacks become complete, and later updates change them."""
        if not self.world.awake():
            return None
        seconds = self.dice.randint(1, 20)
        for _ in range(seconds):
            self.world.calm_once()
            self.world.run_due_duties()
            self.world.calm_once()
            self.world.pass_time(1.0)
        return f"of {seconds} s"

    def run_once(self) -> str | None:
        host = self._some()
        if host:
            self.world.conductors[host].run_once()
        return host

    def step(self) -> str | None:
        host = self._some()
        conductor = self.world.conductors[host] if host else None
        if conductor is None or not conductor.steps:
            return None
        conductor.run_step(self.dice.randrange(len(conductor.steps)))
        return host

    def deliver(self) -> str | None:
        host = self._some()
        if not host or not self.world.bus.hints:
            return None
        index = self.dice.randrange(len(self.world.bus.hints))
        tasks = self.world.bus.hints[index][1]
        self.world.deliver(index, host)
        return f"{list(tasks)} to {host}"

    def lose(self) -> str | None:
        if not self.world.bus.hints:
            return None
        return str(self.world.bus.hints.pop(self.dice.randrange(len(self.world.bus.hints))))

    def double(self) -> str | None:
        if not self.world.bus.hints:
            return None
        self.world.bus.hints.append(self.dice.choice(self.world.bus.hints))
        return str(self.world.bus.hints[-1])

    def cancel(self) -> str | None:
        if not self.world.bus.cancels:
            return None
        self.world.deliver_cancel(self.dice.randrange(len(self.world.bus.cancels)))
        return "delivered"

    def duty(self) -> str | None:
        host = self._some()
        if not host:
            return None
        conductor = self.world.conductors[host]
        name = self.dice.choice(list(conductor.duties))
        conductor.run_duty(name)
        return f"{name} of {host}"

    def stop_message(self) -> None:
        if self.world.bus.stops:
            self.world.deliver_stop(self.dice.randrange(len(self.world.bus.stops)))

    def lose_cancel(self) -> str | None:
        waiting: list[Json] = self.dice.choice([self.world.bus.cancels, self.world.bus.stops])
        if not waiting:
            return None
        return str(waiting.pop(self.dice.randrange(len(waiting))))

    def go_on(self) -> str | None:
        """A call that hangs returns."""
        host = self._some()
        conductor = self.world.conductors[host] if host else None
        if conductor is None or not conductor.hanging:
            return None
        conductor.go_on(self.dice.randrange(len(conductor.hanging)))
        return host

    def look(self) -> str | None:
        host = self._some()
        if host:
            self.world.look(host)
        return host

    def time(self) -> str:
        seconds = self.dice.choice([0.1, 0.3, 0.5, 0.5, 1, 1, 2, 3, 10])
        self.world.pass_time(seconds)
        return f"{seconds}"

    def kill(self) -> str | None:
        host = self._some()
        if host:
            self.world.kill(host)
        return host

    def revive(self) -> str | None:
        dead = [host for host in self._hosts if host not in self.world.conductors]
        if not dead:
            return None
        host = self.dice.choice(dead)
        self.world.start(host)
        return host

    def pause(self) -> str | None:
        host = self._some()
        if host:
            self.world.pause(host)
        return host

    def cut_off(self) -> str | None:
        host = self._some()
        if host and not self.world.conductors[host].cut_off:
            self.world.cut_off(host)
        return host

    def resume(self) -> str | None:
        paused = [c.host for c in self.world.conductors.values() if c.paused or c.cut_off]
        if not paused:
            return None
        host = self.dice.choice(paused)
        self.world.resume(host)
        return host

    def exhaust(self) -> str:
        """Threads and memory become short, or are so no more."""
        self.world.exhaustion = 0.0 if self.world.exhaustion else EXHAUSTED
        return "begins" if self.world.exhaustion else "ends"

    def flap(self) -> str:
        """The database begins to fail often, or does so no more."""
        database = self.world.database
        many = (database.before, database.after) == MANY_ERRORS
        database.before, database.after = USUAL_ERRORS if many else MANY_ERRORS
        return "ends" if many else "begins"
