"""Building the core of a conductor: its place in the ring, and the parts that run tasks."""

from collections.abc import Callable
from dataclasses import dataclass

from ...conductor.liveness import Liveness, Progress
from ...conductor.ownership import Ownership
from ...conductor.settings import ConductorSettings, StackUpkeep
from ...conductor.steps.claimed_writes import StepDatabase
from ...conductor.steps.context import StepServices
from ...conductor.steps.runner import StepRunner
from ...conductor.worker.executor import WorkMetrics
from ...conductor.worker.loop import WorkLimits, WorkLoop
from ...conductor.worker.pool import ThreadPool
from ...conductor.worker.thread import WorkThread
from ...db.ids import MemberId
from ...engine.context import EngineContext
from ...engine.nested_stacks import NestedStacks
from ...ring.membership import Membership
from ..config.sections import Settings
from .coordination import make_membership
from .endpoints import make_endpoints
from .parts import Parts


@dataclass(frozen=True)
class ConductorCore:
    """Parts of a conductor on which the others build."""

    parts: Parts
    context: EngineContext
    settings: ConductorSettings
    upkeep: StackUpkeep
    membership: Membership
    ownership: Ownership
    liveness: Liveness
    progress: Progress
    pool: ThreadPool
    work: WorkThread


def make_core(parts: Parts, context: EngineContext, nested: NestedStacks, host: str) -> ConductorCore:
    """Return the core of a conductor that is not started yet.

    :param nested: use cases that its steps need.
    """
    membership = make_membership(parts.conf, host, shard_count=parts.shard_count, clock=parts.database.clock)
    liveness = Liveness()
    ownership = Ownership(membership, host)
    progress = Progress(liveness, membership.timing.progress)
    settings = Settings(parts.conf).conductor
    upkeep = Settings(parts.conf).upkeep
    limits = WorkLimits(
        threads=settings.threads,
        in_progress=settings.in_progress,
        cancel_grace=context.settings.defaults.cancel_grace,
        task_losses=upkeep.task_losses,
    )
    pool = ThreadPool(settings.threads)
    runner = _make_runner(parts, context, nested)
    work = WorkThread(
        _make_loop(parts, limits, runner, pool, ownership.member),
        ring=ownership,
        host=host,
        liveness=liveness,
        progress=progress,
        keeping=parts.database.keeping,
    )
    return ConductorCore(
        parts, context, settings, upkeep, membership, ownership, liveness, progress, pool, work
    )


def _make_runner(parts: Parts, context: EngineContext, nested: NestedStacks) -> StepRunner:
    """Return the runner of resources' steps."""
    database = parts.database
    services = StepServices(
        database=StepDatabase(database),
        clock=database.clock,
        addresses=parts.addresses,
        sealer=parts.sealer,
        nested=nested,
        trusts=parts.trusts,
        endpoints=make_endpoints(parts.conf),
        software=context.settings.software,
        quota_wait=context.settings.defaults.quota_wait,
    )
    return StepRunner(registry=parts.catalogue, services=services)


def _make_loop(
    parts: Parts,
    limits: WorkLimits,
    runner: StepRunner,
    pool: ThreadPool,
    member: Callable[[], MemberId | None],
) -> Callable[[Callable[[], None]], WorkLoop]:
    """Return a function that makes the work loop, given the function that wakes its thread.

    :param member: a function that returns our name on the ring at this moment; None: we cannot be sure of it.
    """
    database = parts.database
    return lambda wake: WorkLoop(
        database=database,
        steps=runner,
        executor=pool,
        hints=parts.messaging.outbox,
        clock=database.clock,
        wake=wake,
        member=member,
        limits=limits,
        metrics=WorkMetrics(parts.recorder),
    )
