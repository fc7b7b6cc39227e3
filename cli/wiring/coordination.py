"""The conductors' group, from the configuration."""

from collections.abc import Callable

import tooz
from oslo_config import cfg

from ...conductor.settings import ConductorSettings
from ...ring.group import Group, make_coordinator
from ...ring.local_member import LocalMember
from ...ring.membership import Membership
from ...ring.observer import Observer, SharedObserver
from ...ring.timing import MembershipTiming
from ..config.errors import WrongConfiguration
from ..config.sections import read

OBSERVER = "observer"
"""Begins the name under which a process connects that does not join."""


def make_timing(conf: cfg.ConfigOpts) -> MembershipTiming:
    """Return the intervals of the membership.

    :raises WrongConfiguration: the intervals contradict each other.
    """
    section = conf.coordination
    try:
        return MembershipTiming(section.heartbeat, section.timeout, section.poll)
    except ValueError as error:
        raise WrongConfiguration(f"[coordination]: {error}") from error


def make_observer(conf: cfg.ConfigOpts, *, keep: float = 0.0) -> SharedObserver:
    """Make the observer of the conductors' group.

    :param keep: the seconds for which an observation is returned again.
    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    timing = make_timing(conf)
    section = conf.coordination

    def make() -> Observer:
        return Observer(Group(section.backend_url, section.group, f"{OBSERVER}-{conf.host}"), timing)

    return SharedObserver(make, longest=timing.silence, keep=keep)


def make_membership(
    conf: cfg.ConfigOpts, host: str, *, shard_count: int, clock: Callable[[], float]
) -> Membership:
    """Make a conductor's membership in the group, not started yet.

    :raises WrongConfiguration: the coordination backend cannot have groups.
    """
    check_backend(conf)
    return Membership(
        Group(conf.coordination.backend_url, conf.coordination.group, host),
        LocalMember(host, read(conf, ConductorSettings).weight),
        shard_count=shard_count,
        timing=make_timing(conf),
        clock=clock,
    )


def check_backend(conf: cfg.ConfigOpts) -> None:
    """Check that there is a driver for the backend, without a connection to it.

    :raises WrongConfiguration: there is none, or its library is not installed.
    """
    try:
        make_coordinator(conf.coordination.backend_url, b"check")
    except (tooz.ToozError, RuntimeError, ImportError, ValueError) as error:
        raise WrongConfiguration(f"[coordination] backend_url: {error}") from error
