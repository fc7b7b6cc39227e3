"""Building a conductor from its configuration."""

from collections.abc import Callable, Mapping

from ...conductor.background import BackgroundPool
from ...conductor.duties.context import CurrentSettings
from ...conductor.duties.hung_threads import TooManyHungThreads
from ...conductor.duties.registry import DutyEntry, make_duties, policies
from ...conductor.duties.report import ConductorReport
from ...conductor.lookout import STIR_EVERY, Lookout
from ...conductor.monitor import GaugeSource, Monitor
from ...conductor.scheduler import Duty, DutyPolicy, Scheduler
from ...conductor.service import Conductor, ConductorParts
from ...conductor.timetable import Cadence
from ..features import FEATURES
from .accounts import account_health
from .conductor_core import ConductorCore, make_core
from .duties import duties_of, duty_context, duty_services, duty_settings
from .engine import make_engine_context, make_nested_stacks
from .messaging import bus_at_start
from .parts import Parts
from .trusts import SECTION as TRUSTEE

MOST_WAITING = 100
"""Rollbacks, or revocations, that wait for a thread; the next ones are found again by their duty."""
PROCESS_DUTIES = {
    "ConductorReport": DutyPolicy(is_vital=True, is_routine=True),
    "WornOut": DutyPolicy(),
    "Forecast": DutyPolicy(has_own_thread=True, is_vital=True, cadence=Cadence.FORECAST),
}
"""Duties about the process itself, not about the slice.  The names are labels of metrics, as in DUTIES."""


def make_conductor(
    parts: Parts, host: str, *, on_too_many_hung: Callable[[], None] = lambda: None
) -> Conductor:
    """Return a conductor that is not started yet.

    :param on_too_many_hung: called when so many threads hang that a new process had better replace this one.
    """
    context = make_engine_context(parts)
    core = make_core(parts, context, make_nested_stacks(parts, context), host)
    settings = CurrentSettings(duty_settings(core))
    backgrounds = list[BackgroundPool]()

    def background(name: str) -> BackgroundPool:
        backgrounds.append(BackgroundPool(name, threads=2, waiting=MOST_WAITING))
        return backgrounds[-1]

    report = ConductorReport(
        database=parts.database,
        ring=core.ownership,
        membership=core.membership,
        host=host,
        threads=lambda: (core.work.loop.busy, core.pool.hung),
        size=core.settings.threads,
    )
    hung = TooManyHungThreads(
        hung=lambda: core.pool.hung, most=core.settings.most_written_off, act=on_too_many_hung
    )
    entries = duties_of(FEATURES, parts.conf, duty_services(core))
    lookout = _make_lookout(core, entries)
    duties: dict[str, Duty] = {
        "ConductorReport": report,
        "WornOut": hung,
        "Forecast": lookout,
        **make_duties(duty_context(core, settings, background), entries),
    }
    scheduler = _make_scheduler(core, duties, {**PROCESS_DUTIES, **policies(entries)}, lookout)
    lookout.on_wake(scheduler.wake)
    parts.commits.listen(lookout.stir, every=STIR_EVERY)
    return Conductor(
        ConductorParts(
            host=host,
            drain=core.settings.drain,
            settings=settings,
            hints=parts.messaging.outbox,
            membership=core.membership,
            ownership=core.ownership,
            progress=core.progress,
            pool=core.pool,
            work_thread=core.work,
            scheduler=scheduler,
            lookout=lookout,
            report=report,
            monitor=_make_monitor(core, scheduler, report, duties, lookout),
            backgrounds=backgrounds,
            recorder=parts.recorder,
            ring_changed=parts.messaging.level.reset,
            announce_change=parts.messaging.outbox.poll_now,
        )
    )


def _make_lookout(core: ConductorCore, entries: Mapping[str, DutyEntry]) -> Lookout:
    database = core.parts.database
    return Lookout(
        database=database,
        ring=core.ownership,
        clock=database.clock,
        is_time_sure=lambda: database.clock.is_sure,
        due=[rows for entry in entries.values() for rows in entry.due],
        monotonic=database.clock.monotonic,
    )


def _make_scheduler(
    core: ConductorCore, duties: dict[str, Duty], policies: Mapping[str, DutyPolicy], lookout: Lookout
) -> Scheduler:
    clock = core.parts.database.clock
    return Scheduler(
        duties,
        policies=policies,
        may_run=lambda: core.ownership.member() is not None,
        is_time_sure=lambda: clock.is_sure,
        liveness=core.liveness,
        recorder=core.parts.recorder,
        outlook=lookout,
        clock=clock,
        monotonic=clock.monotonic,
    )


def _make_monitor(
    core: ConductorCore,
    scheduler: Scheduler,
    report: ConductorReport,
    duties: dict[str, Duty],
    lookout: Lookout,
) -> Monitor:
    clock = core.parts.database.clock
    return Monitor(
        threads=core.settings.threads,
        most_hung_threads=core.settings.most_written_off,
        ownership=core.ownership,
        membership=core.membership,
        pool=core.pool,
        loop=core.work.loop,
        scheduler=scheduler,
        liveness=core.liveness,
        report=report,
        clock=clock,
        is_resting=lambda: lookout.is_resting(clock.monotonic()),
        unfiltered=core.parts.helpers.unfiltered,
        refused_account=account_health(core.parts.conf, (TRUSTEE,)).problem,
        gauges=[duty for duty in duties.values() if isinstance(duty, GaugeSource)],
    )


def start_conductor(parts: Parts, conductor: Conductor) -> None:
    """Start it, with a server on the message bus.

    :raises WrongConfiguration: the broker refuses the user or the vhost.
    """
    with bus_at_start():
        conductor.start(lambda receiver: parts.messaging.bus.listen(conductor.host, receiver))
