"""Building the core of a conductor: its place in the ring, and the parts that run tasks."""

from collections.abc import Callable
from dataclasses import dataclass

from ...conductor.liveness import Liveness, Progress
from ...conductor.ownership import Ownership
from ...conductor.steps.claimed_writes import StepDatabase
from ...conductor.steps.context import StepServices
from ...conductor.steps.endpoints import Endpoints
from ...conductor.steps.runner import StepRunner
from ...conductor.worker.executor import WorkMetrics
from ...conductor.worker.loop import WorkLimits, WorkLoop
from ...conductor.worker.pool import ThreadPool
from ...conductor.worker.thread import WorkThread
from ...db.ids import MemberId
from ...engine.context import EngineContext
from ...engine.nested_stacks import NestedStacks
from ...ring.membership import Membership
from ..config.client_options import client_options
from .coordination import make_membership
from .parts import Parts


@dataclass(frozen=True)
class ConductorCore:
    """Parts of a conductor on which the others build."""

    parts: Parts
    context: EngineContext
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
    pool = ThreadPool(parts.conf.conductor.threads)
    runner = _make_runner(parts, context, nested)
    work = WorkThread(
        _make_loop(parts, runner, pool, ownership.member),
        ring=ownership,
        host=host,
        liveness=liveness,
        progress=progress,
    )
    return ConductorCore(parts, context, membership, ownership, liveness, progress, pool, work)


def _make_runner(parts: Parts, context: EngineContext, nested: NestedStacks) -> StepRunner:
    """Return the runner of resources' steps."""
    database = parts.database
    stacks = parts.conf.stacks
    services = StepServices(
        database=StepDatabase(database),
        clock=database.clock,
        addresses=parts.addresses,
        sealer=parts.sealer,
        nested=nested,
        trusts=parts.trusts,
        endpoints=Endpoints(client_options(parts.conf), stacks.remote_cloud_hosts, stacks.remote_cloud_proxy),
        software=context.settings.software,
        quota_wait=stacks.quota_wait,
    )
    return StepRunner(registry=parts.catalogue, services=services)


def _make_loop(
    parts: Parts, runner: StepRunner, pool: ThreadPool, member: Callable[[], MemberId | None]
) -> Callable[[Callable[[], None]], WorkLoop]:
    """Return a function that makes the work loop, given the function that wakes its thread.

    :param member: a function that returns our name on the ring at this moment; None: we cannot be sure of it.
    """
    conf = parts.conf
    database = parts.database
    limits = WorkLimits(
        threads=conf.conductor.threads,
        in_progress=conf.conductor.in_progress,
        cancel_grace=conf.stacks.cancel_grace,
        task_losses=conf.stacks.task_losses,
    )
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
