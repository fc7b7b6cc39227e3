"""Stoker's real code, single-threaded, on a fake clock, message bus, thread pool and membership.

Nothing happens by itself: each thing that could happen (deliver this message, run that step, let this
conductor take a turn, let time pass) is a method, and whoever calls them decides the order.
"""

import base64
import contextlib
import functools
import math
import pathlib
import random
import tempfile
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

import sqlalchemy as sa
from harness.duties import AtOnce
from harness.resource_types import types_of
from simulation import cloud, threads
from stoker.conductor.duties.context import CurrentSettings, DutyContext, DutySettings
from stoker.conductor.duties.registry import make_duties, policies
from stoker.conductor.event_queues import Post, SendFailed
from stoker.conductor.lookout import ANNOUNCE_EVERY, STIR_EVERY, Lookout
from stoker.conductor.scheduler import Duty, DutyPolicy
from stoker.conductor.settings import StackUpkeep
from stoker.conductor.steps.claimed_writes import StepDatabase
from stoker.conductor.steps.computing import Computing
from stoker.conductor.steps.context import StepServices
from stoker.conductor.steps.runner import StepRunner
from stoker.conductor.timetable import Cadence, Timetable
from stoker.conductor.worker.executor import WorkMetrics
from stoker.conductor.worker.loop import WorkLimits, WorkLoop
from stoker.conductor.worker.pool import NoThread
from stoker.db import settings, stacks
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import Commits, Database, ServerClock, routine
from stoker.db.errors import Unavailable
from stoker.db.event_sinks import SinkRow
from stoker.db.id_source import IdSource
from stoker.db.ids import MemberId, ResourceId, StackId, TaskId, TraversalId, host_of
from stoker.db.notifications import Listener
from stoker.db.rows import Stack
from stoker.db.schema import tables, upgrade
from stoker.db.work.breakpoints import HeldTask
from stoker.db.work.claim import Claimant
from stoker.engine import breakpoints
from stoker.engine.compile import GoalCompiler
from stoker.engine.context import EngineContext, EngineSettings
from stoker.engine.exports import export_stack
from stoker.engine.nested_stacks import NestedStacks
from stoker.engine.planning.plan import Defaults
from stoker.engine.planning.requests import AdoptedResource, CreateRequest, Goal, UpdateRequest
from stoker.engine.quotas import Quotas
from stoker.engine.signal_urls import SignalAddresses
from stoker.engine.stacks import create_stack
from stoker.engine.updates import roll_back_stack, update_stack
from stoker.keystone.delegated_auth import NO_TRUSTS, TrustProvider
from stoker.keystone.delegations import Delegations
from stoker.observe.recorder import SILENT, Recorder
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.registry import ResourceRegistry
from stoker.ring.hashring import Assignment, Member, View, assign
from stoker.ring.local_member import PROCESS
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Limits

RESOURCE_TYPES = types_of("heat")

SHARDS = 64
TIMEOUT = 2.0
"""Seconds after which the backend forgets a member that is silent."""
SELF_STOP = 0.75 * TIMEOUT
"""Seconds without a confirmed sign of life after which a conductor stops its own work."""
SHORTEST = 0.5
LONGEST = 60.0
KEY = base64.b64encode(bytes(range(64))).decode()
WRONG = (0.0, 0.4, 7200.0, -7200.0)
"""Seconds by which the clock of a host may be ahead."""
SET_NOW = 0.02
"""Probability that the clock of some host is set while time passes."""
FORECAST = "Forecast"
GRACE = 10.0
"""Seconds in which a step that is asked to stop may end."""
Json = typing.Any
T = typing.TypeVar("T")


class Clock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Bus:
    """Messages that were sent and are not delivered yet."""

    def __init__(self) -> None:
        self.hints: list[tuple[TraversalId, Sequence[TaskId]]] = []
        self.cancels: list[tuple[str, TraversalId, Sequence[TaskId]]] = []
        self.stops: list[tuple[str, Sequence[tuple[TaskId, int]]]] = []
        self.activities: list[str] = []
        self.announces: Callable[[], bool] = lambda: True
        self.listeners: Callable[[], list[str]] = list
        self.sent = 0

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        self.sent += 1
        self.hints.append((traversal, tuple(task_ids)))

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        self.cancels += [(host, traversal, tuple(spared)) for host in self.listeners()]

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        self.stops.append((host_of(member), tuple(claims)))

    def announce_activity(self, sender: str | None) -> None:
        """Announce a commit to all conductors but the one that has committed."""
        self.activities += [host for host in self.listeners() if host != sender and self.announces()]


class DoublingIds(IdSource):
    """Makes an id twice now and then, as two processes do.

    :ivar doubled: probability that a task or a traversal gets the id of the one before it.  Not a resource:
        a replacement is stored long after its id was made, and fails then; see test_id_collisions.py.
    """

    def __init__(self, clock: Clock, seed: int) -> None:
        self._dice = random.Random(f"ids {seed}")
        super().__init__(clock, randbits=self._dice.getrandbits)
        self.doubled = 0.0
        self._made: dict[object, tuple[float, int]] = {}
        self._time = clock

    def new(self, kind: Callable[[int], T]) -> T:
        at, count = self._made.get(kind, (0.0, 0))
        # Only at the same moment: the purge may have taken an older row, and nothing would refuse its id.
        if kind is not ResourceId and at == self._time.now and self._dice.random() < self.doubled:
            return kind(count)
        number = super().new(int)
        self._made[kind] = (self._time.now, number)
        return kind(number)


LIMITS = Limits()
PATIENT = DatabaseLimits(retry=math.inf)
"""A host that is suspended for seconds ends no simulated transaction."""


class FaultyDatabase(Database):
    """Says now and then that it is unavailable: sometimes after it has done what was asked.

    :ivar before, after: probability of an error before a transaction, and after its commit.
    :ivar interrupted: probability that a transaction is held up before it begins, while others continue.
    :ivar interlude: what happens meanwhile.
    :ivar observers: called after each commit.
    :ivar on_fault: called with "fail_before" or "fail_after" when it fails by chance.
    :ivar exhausted: whether memory is short for whoever writes now: MemoryError, before or after the commit.
    :ivar planned: what becomes of the next transactions, whatever the odds: "before", "after": an error then;
        "": none.
    """

    def __init__(
        self, url: str, dice: random.Random, ids: IdSource, listener: Listener | None = None
    ) -> None:
        super().__init__(url, ids=ids, limits=PATIENT, sleep=lambda seconds: None, listener=listener)
        self._dice = dice
        self.before = self.after = self.interrupted = 0.0
        self.interlude: Callable[[], None] = lambda: None
        self.observers: list[Callable[[], None]] = []
        self.planned: list[str] = []
        self.on_fault: Callable[[str], None] = lambda fault: None
        self.exhausted: Callable[[], bool] = lambda: False

    def write(self, transaction: Callable[..., typing.Any], *, brief: bool = False) -> typing.Any:
        plan = self.planned.pop(0) if self.planned else None
        if self._dice.random() < self.interrupted:
            self.interlude()
        exhausted = self.exhausted()
        if exhausted and self._dice.random() < 0.5:
            raise MemoryError("the simulation says so, before")
        if plan == "before" or (plan is None and self._dice.random() < self.before):
            self.on_fault("fail_before")
            raise Unavailable("the simulation says so, before")
        result = super().write(transaction, brief=brief)
        for observer in self.observers:
            observer()
        if exhausted:
            raise MemoryError("the simulation says so, after")
        if plan == "after" or (plan is None and self._dice.random() < self.after):
            self.on_fault("fail_after")
            raise Unavailable("the simulation says so, after")
        return result


@functools.cache
def _new_database() -> bytes:
    """The file of a database in which nothing has happened: the migrations take longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "new.sqlite"
        database = Database(f"sqlite:///{path}")
        upgrade.upgrade(database)
        database.write(lambda conn: settings.shard_count(conn, SHARDS))
        database.close()
        return path.read_bytes()


@functools.cache
def _owners(hosts: frozenset[str]) -> Assignment:
    """Who owns what follows from the names of the hosts alone, as their weights are equal."""
    return assign(View.of([Member(host, "any") for host in hosts], SHARDS))


class SimRing:
    """conductor.slice.Ring on what a conductor last saw.

    :ivar confirmed: when the backend last took a sign of life.
    """

    def __init__(self, host: str, clock: Clock) -> None:
        self.host = host
        self.clock = clock
        self.confirmed = clock.now
        self.incarnation = ""
        self.view = View(frozenset(), SHARDS)

    def member(self) -> MemberId | None:
        if not self.incarnation or self.clock.now - self.confirmed >= SELF_STOP:
            return None
        return MemberId(f"{self.host}/{self.incarnation}")

    def owns(self, shard: int) -> bool:
        if self.member() is None or not self.view.owners:
            return False
        return _owners(frozenset(member.host for member in self.view.owners)).owner_of(shard) == self.host

    def is_deputy(self, shard: int) -> bool:
        return False

    def shards_owned(self) -> int:
        return sum(self.owns(shard) for shard in range(SHARDS))

    def version(self) -> str:
        return self.view.version

    def present(self) -> frozenset[MemberId]:
        return frozenset(MemberId(member.name) for member in self.view.members)


class SimConductor:
    """One conductor's life, from a start to its death.

    :ivar steps: handed to the pool, not run yet.
    :ivar hanging: that were begun and hang in a call.
    :ivar detached: those of them whose threads were detached.
    :ivar paused: does nothing; the backend forgets it after a while.
    :ivar cut_off: works, but does not reach the backend, which forgets it after a while.
    :ivar process: beginning of its incarnations; "": it has joined none yet.
    :ivar rest: seconds until it wants its next turn, as it said at the last one.
    """

    def __init__(self, host: str, world: "World") -> None:
        self.host = host
        self.world = world
        self.ring = SimRing(host, world.clock)
        self.process = ""
        wall = functools.partial(world.wall_of, host)
        self.clock = ServerClock(wall=wall, monotonic=lambda: world.clock.now)
        self.measure()
        self.paused = self.cut_off = False
        self.steps: list[threads.Job] = []
        self.hanging: list[threads.Job] = []
        self.detached: list[threads.Job] = []
        self.rest: float | None = None
        self.runner = StepRunner(
            registry=world.registry,
            services=StepServices(
                database=StepDatabase(world.database),
                clock=self.clock,
                addresses=SignalAddresses("http://sim", b"key"),
                sealer=world.sealer,
                nested=world.nesting,
                quota_wait=Defaults.quota_wait,
                computing=Computing(world.clock),
            ),
        )
        self.loop = WorkLoop(
            database=world.database,
            steps=self.runner,
            executor=self,
            hints=world.bus,
            clock=self.clock,
            wake=lambda: None,
            member=self.ring.member,
            limits=WorkLimits(task_losses=StackUpkeep.task_losses, threads=world.threads, cancel_grace=GRACE),
            monotonic=world.clock,
            metrics=WorkMetrics(world.recorder),
        )
        self.lookout = Lookout(
            database=world.database,
            ring=self.ring,
            clock=self.clock,
            is_time_sure=lambda: self.clock.is_sure,
            monotonic=world.clock,
        )
        self.commits = world.commits(host)
        self.commits.listen(self.lookout.stir, every=STIR_EVERY)
        self.policies = {**policies(), FORECAST: DutyPolicy(cadence=Cadence.FORECAST)}
        self.duties: dict[str, Duty] = {FORECAST: self.lookout, **make_duties(self.duty_context())}
        self.timetable = Timetable(
            {name: duty.interval for name, duty in self.duties.items()},
            {name: self.policies[name].cadence for name in self.duties},
            self.lookout,
        )

    def duty_context(self, **settings: Json) -> DutyContext:
        """Return what this conductor's duties get.

        :param settings: those that differ from this conductor's.
        """
        values = {"cancel_grace": GRACE, "patience": 2 * TIMEOUT, "keep_deleted": 86400.0, **settings}
        return DutyContext(
            database=self.world.database,
            ring=self.ring,
            hints=self.world.bus,
            clock=self.clock,
            settings=CurrentSettings(DutySettings(self.host, **values)),
            roll_back=lambda stack: self.world.roll_back(stack),
            revoke=lambda root_id, body: self.world.revoke(root_id, body),
            post=lambda sink, messages: self.world.post(sink, messages),
            background=lambda name: AtOnce(),
            recorder=self.world.recorder,
            monotonic=self.world.clock,
        )

    def submit(self, fn: Callable[..., object], /, *args: object) -> threads.Job:
        if self.world.is_exhausted():
            raise NoThread("the simulation says so")
        job = threads.Job(lambda: fn(*args))
        self.steps.append(job)
        return job

    def restart_threads(self) -> None:
        """Do nothing: no thread of the simulation ends."""

    def detach(self, job: threads.Job) -> bool:
        if job in self.steps:
            self.steps.remove(job)
            return False
        assert job in self.hanging, "only what hangs is detached"
        self.detached.append(job)
        return True

    @contextlib.contextmanager
    def _acts(self) -> Iterator[None]:
        others = self.world.acting
        self.world.acting = self
        try:
            yield
        finally:
            self.world.acting = others

    def run_once(self) -> float | None:
        """Do as the thread of the work loop does."""
        name = self.ring.member()
        with self._acts():
            self.loop.work_as(None if name is None else Claimant(name, self.host))
            try:
                self.rest = self.loop.run_once()
            except MemoryError:
                self.rest = 1.0
            except Exception:  # noqa: BLE001 - as in the work loop, whose thread goes on after a bug
                self.world.broken.append(f"{self.host}: {traceback.format_exc()}")
                self.rest = 0.0
        return self.rest

    def run_step(self, index: int = 0) -> None:
        """Let a thread of the pool do its step, until it has ended or hangs."""
        job = self.steps.pop(index)
        job.run()
        if job.hangs:
            self.hanging.append(job)

    def go_on(self, index: int = 0, *, killed: bool = False) -> None:
        """The call that a step hangs in returns."""
        job = self.hanging.pop(index)
        job.go_on(killed=killed)
        if job.hangs:
            self.hanging.append(job)
        elif job in self.detached:
            self.detached.remove(job)

    def run_duty(self, name: str) -> None:
        """One round of a duty; an error of the database ends it, as in the scheduler."""
        if self.ring.member() is not None:
            quietly = routine() if self.policies[name].is_routine else contextlib.nullcontext()
            with self._acts(), quietly, contextlib.suppress(Unavailable, MemoryError):
                self.duties[name].run()

    def run_duties(self) -> None:
        """One round of each duty, whatever its interval."""
        for name in self.duties:
            self.run_duty(name)

    def measure(self) -> None:
        """Ask for the server's time, which is the world's."""
        self.clock.measured(self.world.clock.now, self.clock.monotonic(), self.clock.monotonic())

    def run_due_duties(self, now: float) -> None:
        """Run the duties that the timetable names, as the scheduler does."""
        self.measure()
        for name in self.timetable.take_due(now):
            self.run_duty(name)


class World:
    """Conductors, database, bus, cloud.  The clocks of the hosts are wrong, and are set now and then: what is
    done follows the database's time.

    :ivar ahead: seconds by which the clock of a host is ahead.
    :ivar set_now: probability that the clock of some host is set while time passes.
    :ivar group: the membership as the backend has it: incarnation by host.
    :ivar acting: whose code runs now, if it is a conductor's.
    :ivar exhaustion: probability that a conductor gets no thread, or no memory for a transaction.
    :ivar broken: errors that nobody expects, from a conductor's top.
    :ivar revoke: takes back the credential of a stack that is gone.
    :ivar sinks: the event sinks of all stacks that are created or updated.
    :ivar queues: what event sinks have got, by the name of the queue; `post` puts it there.
    :ivar unsent: probability that `post` fails, before or after that.
    :ivar unannounced: probability that a conductor does not get the announcement of a commit; that only
        delays what is due.
    :ivar late_by: seconds after its deadline for which a stack was left alone while time passed without
        faults: the most so far.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        hosts: int = 3,
        threads: int = 4,
        seed: int = 0,
        held_time: str = Defaults.held_time,
        listener: Listener | None = None,
        recorder: Recorder = SILENT,
        types: Mapping[str, type[ResourceType]] | None = None,
        limits: Limits = LIMITS,
        quotas: Quotas | None = None,
    ) -> None:
        self.recorder = recorder
        self.dice = random.Random(seed)
        self.broken: list[str] = []
        self.revoke: Callable[[StackId, Json], None] = lambda root_id, body: None
        self.sinks: Sequence[Json] = ()
        self.queues: dict[str, list[Json]] = {}
        self.unsent = self.unannounced = self.late_by = 0.0
        announcing = random.Random(f"announcements {seed}")
        self._sending = random.Random(f"sending {seed}")
        self.post: Post = self._post
        self.threads = threads
        self.clock = Clock()
        self._setting = random.Random(f"clocks {seed}")
        self.ahead: dict[str, float] = {}
        self.set_now = SET_NOW
        self.bus = Bus()
        self.bus.listeners = lambda: list(self.conductors)
        self.bus.announces = lambda: announcing.random() >= self.unannounced
        self.cloud = cloud.Cloud()
        self.registry = ResourceRegistry({**RESOURCE_TYPES, **cloud.types(self.cloud), **(types or {})})
        self.sealer = Sealer([KEY])
        (folder / "sim.sqlite").write_bytes(_new_database())
        self.ids = DoublingIds(self.clock, seed)
        self.database = FaultyDatabase(f"sqlite:///{folder / 'sim.sqlite'}", self.dice, self.ids, listener)
        self.context = EngineContext(
            database=self.database,
            registry=self.registry,
            sealer=self.sealer,
            hints=self.bus,
            clock=self.clock,
            settings=EngineSettings(
                shard_count=SHARDS,
                stack_timeout=300.0,
                defaults=Defaults(held_time=held_time, cancel_grace=GRACE),
                limits=limits,
                quotas=quotas,
            ),
            compiler=GoalCompiler(self.registry, limits),
            delegations=self.delegations(NO_TRUSTS),
        )
        self.templates: dict[str, str] = {}
        self.nesting = NestedStacks(self.context, self._template)
        self.roll_back = functools.partial(roll_back_stack, self.context)
        self.group: dict[str, tuple[str, float]] = {}
        self._leaving: list[tuple[float, str, str]] = []
        self._incarnations = 0
        self.conductors: dict[str, SimConductor] = {}
        self.acting: SimConductor | None = None
        self.exhaustion = 0.0
        self.database.exhausted = lambda: self.acting is not None and self.is_exhausted()
        self._commits_of_api = self.commits()
        self.database.observers.append(self._committed)
        for number in range(hosts):
            self.start(f"host{number}")
        self.look_all()

    def _committed(self) -> None:
        """Note a commit of a conductor, or of the API."""
        commits = self._commits_of_api if self.acting is None else self.acting.commits
        commits()

    def commits(self, host: str | None = None) -> Commits:
        """Return the commits of one process, which it announces.

        :param host: the conductor's; None: it is the API.
        """
        commits = Commits(self.clock)
        commits.listen(functools.partial(self.bus.announce_activity, host), every=ANNOUNCE_EVERY)
        return commits

    def _post(self, sink: SinkRow, messages: Sequence[Json]) -> None:
        if self._sending.random() < self.unsent:
            raise SendFailed("the simulation says so, before")
        self.queues.setdefault(sink.target, []).extend(messages)
        if self._sending.random() < self.unsent:
            raise SendFailed("the simulation says so, after")

    def delegations(self, trusts: TrustProvider) -> Delegations:
        """Credentials of users that are made in the given way."""
        return Delegations(database=self.database, sealer=self.sealer, trusts=trusts, clock=self.clock)

    def is_exhausted(self) -> bool:
        """Return whether there is no memory, or no thread, at this moment."""
        return self.exhaustion > 0 and self.dice.random() < self.exhaustion

    # -- conductors --------------------------------------------------------------------------------

    def start(self, host: str) -> SimConductor:
        """Start a conductor; its predecessor on the host is dead."""
        self.ahead[host] = self._setting.choice(WRONG)
        conductor = self.conductors[host] = SimConductor(host, self)
        self.join(conductor)
        return conductor

    def wall_of(self, host: str) -> float:
        """The clock of a host."""
        return self.clock.now + self.ahead[host]

    def join(self, conductor: SimConductor) -> None:
        """Enter the group under a new incarnation."""
        self._incarnations += 1
        conductor.process = conductor.process or f"p{self._incarnations:0{PROCESS - 1}}"
        conductor.ring.incarnation = f"{conductor.process}i{self._incarnations}"
        self.group[conductor.host] = (conductor.ring.incarnation, self.clock.now)

    def kill(self, host: str) -> None:
        """kill -9: everything in memory is gone, and nobody is notified."""
        dead = self.conductors.pop(host)
        while dead.hanging:
            dead.go_on(killed=True)
        self._forget_later(host, dead)

    def _forget_later(self, host: str, conductor: SimConductor) -> None:
        incarnation = conductor.ring.incarnation
        self._leaving = [*self._leaving, (self.clock.now + TIMEOUT, host, incarnation)]

    def pause(self, host: str) -> None:
        """SIGSTOP."""
        conductor = self.conductors[host]
        conductor.paused = True
        self._forget_later(host, conductor)

    def cut_off(self, host: str) -> None:
        """The conductor reaches everything but the coordination backend."""
        conductor = self.conductors[host]
        conductor.cut_off = True
        self._forget_later(host, conductor)

    def resume(self, host: str) -> None:
        """SIGCONT, and the network is whole again; it continues under its old name until it reads the group,
        or finds by its own clock that it has been silent for too long."""
        conductor = self.conductors[host]
        conductor.paused = conductor.cut_off = False
        if self.group.get(host, ("", 0.0))[0] == conductor.ring.incarnation:
            self._leaving = [entry for entry in self._leaving if entry[2] != conductor.ring.incarnation]

    def look(self, host: str) -> None:
        """A conductor gives a sign of life, and sees the group as it is now."""
        conductor = self.conductors[host]
        if conductor.cut_off:
            return
        conductor.ring.confirmed = self.clock.now
        if self.group.get(host, ("", 0.0))[0] != conductor.ring.incarnation:
            conductor.ring.incarnation = ""
            conductor.loop.work_as(None)
            self.join(conductor)
        members = [Member(h, i, started_at=at) for h, (i, at) in self.group.items()]
        view = View.of(members, SHARDS)
        if view != conductor.ring.view:
            conductor.ring.view = view
            conductor.lookout.stir()

    def look_all(self) -> None:
        """Everybody who runs polls, twice, so that all see the rejoined too."""
        for _ in range(2):
            for host, conductor in self.conductors.items():
                if not conductor.paused:
                    self.look(host)

    def awake(self) -> list[SimConductor]:
        """Return the conductors that run."""
        return [conductor for conductor in self.conductors.values() if not conductor.paused]

    # -- time and messages -------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Let time pass; the backend forgets who was silent for too long.  Who reaches it and is in the group
        gives signs of life all the time."""
        self.clock.now += seconds
        if self._setting.random() < self.set_now:
            self.ahead[self._setting.choice(sorted(self.ahead))] = self._setting.choice(WRONG)
        for host, conductor in self.conductors.items():
            is_known = self.group.get(host, ("", 0.0))[0] == conductor.ring.incarnation
            if is_known and not (conductor.paused or conductor.cut_off):
                conductor.ring.confirmed = self.clock.now
        while self.bus.activities:
            self.deliver_activity(0)
        for at, host, incarnation in self._leaving:
            if at <= self.clock.now and self.group.get(host, ("", 0.0))[0] == incarnation:
                del self.group[host]
        self._leaving = [entry for entry in self._leaving if entry[0] > self.clock.now]

    def deliver(self, index: int, host: str) -> None:
        """Deliver a hint."""
        traversal, task_ids = self.bus.hints.pop(index)
        self.conductors[host].loop.enqueue({traversal: task_ids})

    def deliver_cancel(self, index: int) -> None:
        """Deliver one copy of a fan-out; to whoever does not run any more it is lost."""
        host, traversal, spared = self.bus.cancels.pop(index)
        if host in self.conductors and not self.conductors[host].paused:
            self.conductors[host].loop.cancel(traversal, spared)

    def deliver_stop(self, index: int) -> None:
        """Deliver the requests to one conductor to stop tasks."""
        host, claims = self.bus.stops.pop(index)
        if host in self.conductors and not self.conductors[host].paused:
            self.conductors[host].loop.stop(claims)

    def deliver_activity(self, index: int) -> None:
        """Deliver one copy of an announcement; to whoever does not run any more it is lost."""
        host = self.bus.activities.pop(index)
        if host in self.conductors and not self.conductors[host].paused:
            self.conductors[host].lookout.stir()

    # -- stacks ------------------------------------------------------------------------------------

    def create(self, name: str, template: Json, **fields: Json) -> Stack:
        """An order of the API's."""
        goal = self._goal(template, fields)
        return create_stack(self.context, CreateRequest("tenant", name, goal, **fields))

    def _goal(self, template: Json, fields: dict[str, Json]) -> Goal:
        """Takes what belongs to the goal out of the fields."""
        sections = {name: fields.pop(name, None) or {} for name in ("parameters", "environment", "files")}
        if self.sinks:
            sections["environment"] = {"event_sinks": self.sinks, **sections["environment"]}
        return Goal(template, **sections)

    def update(self, stack: Stack, template: Json, **fields: Json) -> None:
        """An order of the API's."""
        goal = self._goal(template, fields)
        update_stack(self.context, self.stack(stack.id), UpdateRequest(goal, **fields))

    def adopt(self, name: str, document: Json, **fields: Json) -> Stack:
        """An order of the API's, with what an export gave."""
        goal = Goal(document["template"], files=document["files"], environment=document["environment"])
        adopted = {name: AdoptedResource.of(entry) for name, entry in document["resources"].items()}
        return create_stack(self.context, CreateRequest("tenant", name, goal, adopted=adopted, **fields))

    def _template(self, url: str) -> str:
        """The web, as conductors see it."""
        if url not in self.templates:
            raise PermanentError(f"{url} does not answer")
        return self.templates[url]

    def stack(self, stack_id: StackId) -> Stack:
        return self.database.read(lambda conn: stacks.get(conn, stack_id))

    def held(self, stack: Stack) -> list[HeldTask]:
        """Where the stack is held now, and those nested in it."""
        return self.database.read(lambda conn: breakpoints.held(conn, stack))

    def held_itself(self, stack: Stack) -> list[HeldTask]:
        """Where the stack's own resources are held now."""
        return self.database.read(lambda conn: breakpoints.held_itself(conn, stack.id))

    def export(self, stack: Stack) -> Json:
        """Heat's document of a stack."""
        return self.database.read(lambda conn: export_stack(self.context, conn, stack))

    # -- without faults ----------------------------------------------------------------------------

    def calm(self) -> bool:
        """Do all that can be done now, in a fair order, while the clock is paused; return whether that was
        anything."""
        self.look_all()
        rounds = 1
        while self.calm_once():
            rounds += 1
        return rounds > 1

    def calm_once(self) -> bool:
        """Deliver all messages, let everybody take a turn and run all steps; whether more is to be done."""
        busy = bool(self.bus.hints or self.bus.cancels or self.bus.stops)
        while self.bus.activities:
            self.deliver_activity(0)
        while self.bus.cancels:
            self.deliver_cancel(0)
        while self.bus.stops:
            self.deliver_stop(0)
        hosts = [conductor.host for conductor in self.awake()] or list(self.conductors)
        for index, (traversal, task_ids) in enumerate(self.bus.hints):
            host = hosts[index % len(hosts)]
            self.conductors[host].loop.enqueue({traversal: task_ids})
        self.bus.hints.clear()
        for conductor in self.awake():
            busy |= conductor.run_once() == 0.0 or bool(conductor.steps)
            while conductor.steps:
                conductor.run_step()
        return busy

    def settle(self, until: Callable[[], bool], *, within: float) -> bool:
        """Let time pass without faults until the condition holds; whether it does after `within` seconds.

        While nothing happens time passes in longer steps, each up to the moment at which something is due.
        """
        began = self.clock.now
        end = began + within
        step = SHORTEST
        while True:
            step = SHORTEST if self.calm() else min(2 * step, LONGEST)
            if until():
                return True
            left = end - self.clock.now
            if left <= 0:
                return False
            self.pass_time(min(step, left, max(SHORTEST, self._until_due())))
            self.run_due_duties()
            self._note_late(began)

    def run_due_duties(self) -> None:
        """Let everybody run the duties that are due now."""
        for conductor in self.awake():
            conductor.run_due_duties(self.clock.now)

    def _note_late(self, began: float) -> None:
        """Note for how long a stack is left alone whose deadline has passed since then."""
        column = tables.stack.c.deadline_at
        query = sa.select(sa.func.min(column)).where(column >= began)
        if (first := self.database.read(lambda conn: conn.execute(query).scalar())) is not None:
            self.late_by = max(self.late_by, self.clock.now - first)

    def _until_due(self) -> float:
        """Seconds until something is due that nobody needs to find out first."""
        task = tables.task.c.due_at
        stack = tables.stack.c.deadline_at
        moments = self.database.read(
            lambda conn: [conn.execute(sa.select(sa.func.min(column))).scalar() for column in (task, stack)]
        )
        waits = [moment - self.clock.now for moment in moments if moment is not None]
        waits += [conductor.rest for conductor in self.awake() if conductor.rest is not None]
        now = self.clock.now
        waits += [conductor.lookout.forecast_at(now) - now for conductor in self.awake()]
        return min(waits, default=LONGEST)
