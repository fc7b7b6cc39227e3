"""The conductors' group, from the configuration."""

from collections.abc import Callable

import tooz
from oslo_config import cfg

from ...ring.group import Group, make_coordinator
from ...ring.local_member import LocalMember
from ...ring.membership import Membership
from ...ring.observer import GroupStatus, Observer, SharedObserver
from ..config.errors import WrongConfiguration
from ..config.sections import Settings

OBSERVER = "observer"
"""Begins the name under which a process connects that does not join."""


def make_observer(conf: cfg.ConfigOpts, *, keep: float = 0.0) -> SharedObserver:
    """Make the observer of the conductors' group.

    :param keep: the seconds for which an observation is returned again.
    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    settings = Settings(conf).coordination
    name = f"{OBSERVER}-{Settings(conf).host.host}"

    def make() -> Observer:
        return Observer(Group(settings.backend_url, settings.group, name), settings.timing)

    return SharedObserver(make, longest=settings.timing.silence, keep=keep)


def make_membership(
    conf: cfg.ConfigOpts, host: str, *, shard_count: int, clock: Callable[[], float]
) -> Membership:
    """Make a conductor's membership in the group, not started yet.

    :raises WrongConfiguration: the coordination backend cannot have groups.
    """
    check_backend(conf)
    settings = Settings(conf).coordination
    return Membership(
        Group(settings.backend_url, settings.group, host),
        LocalMember(host, Settings(conf).conductor.weight),
        shard_count=shard_count,
        timing=settings.timing,
        clock=clock,
    )


def check_backend(conf: cfg.ConfigOpts) -> None:
    """Check that there is a driver for the backend, without a connection to it.

    :raises WrongConfiguration: there is none, or its library is not installed.
    """
    try:
        make_coordinator(Settings(conf).coordination.backend_url, b"check")
    except (tooz.ToozError, RuntimeError, ImportError, ValueError) as error:
        raise WrongConfiguration(f"[coordination] backend_url: {error}") from error


def conductors_in_group(conf: cfg.ConfigOpts) -> Callable[[], GroupStatus | str]:
    """Return a function that reads which conductors are alive, once in [coordination] poll seconds.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    return make_observer(conf, keep=Settings(conf).coordination.timing.poll).status
