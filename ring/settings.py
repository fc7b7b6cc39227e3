"""Settings of the conductors' group, and the name of a process in it."""

import socket
from dataclasses import dataclass

from ..settings import Form, setting
from .timing import MembershipTiming


@dataclass(frozen=True)
class HostSettings:
    """The name of a process."""

    host: str = setting(
        "host",
        socket.gethostname(),
        "Name of this conductor on the ring and in events. It must stay the same over restarts, and differ "
        "between conductors: two conductors of one name would take each other's work.",
        form=Form.HOST,
        default_text="this host's name",
    )


@dataclass(frozen=True)
class CoordinationSettings:
    """The group, and the backend that keeps it."""

    backend_url: str = setting(
        "backend_url",
        "file:///var/lib/stoker/coordination",
        "tooz URL of the backend that keeps the conductors' group: etcd3+http://, kazoo://, redis://, "
        "memcached://, or file:// for a single host.",
        is_secret=True,
    )
    group: str = setting(
        "group",
        "stoker-conductors",
        "Name of the group; one for each installation.",
    )
    timing: MembershipTiming = MembershipTiming()
