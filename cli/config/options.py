"""All options, their units and what they trade.  Nothing outside of cli/ reads configuration."""

import pathlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import oslo_messaging.opts
from oslo_config import cfg
from oslo_log import log

from ...observe.logs import FORMAT
from ...ring.timing import MembershipTiming
from . import files as config_files
from .api_options import API
from .database_options import DATABASE
from .errors import WrongConfiguration
from .fault_options import TASK_LOSSES
from .limit_options import STACK_LIMITS
from .metrics_options import METRICS, METRICS_OF_ONE, prefer_argument
from .notification_options import NOTIFICATIONS
from .signal_options import SIGNALS
from .trust_options import DEFERRED
from .upgrade_options import UPGRADE_LEVELS
from .yaql_options import YAQL

DEFAULTS = [
    cfg.HostAddressOpt(
        "host",
        default=socket.gethostname(),
        sample_default="this host's name",
        help="Name of this conductor on the ring and in events. Stable over restarts, and different for each "
        "conductor: two of one name would take each other's work away.",
    ),
]
COORDINATION = [
    cfg.StrOpt(
        "backend_url",
        secret=True,
        default="file:///var/lib/stoker/coordination",
        help="tooz URL of the backend that keeps the conductors' group: etcd3+http://, kazoo://, redis://, "
        "memcached://, or file:// for a single host.",
    ),
    cfg.StrOpt("group", default="stoker-conductors", help="Name of the group; one for each installation."),
    cfg.FloatOpt(
        "heartbeat",
        default=MembershipTiming().heartbeat,
        help="Seconds between two signs of life. Shorter notices a death sooner, and costs one write to the "
        "backend each, from every conductor.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=MembershipTiming().timeout,
        help="Seconds without a sign of life after which a conductor is dead and its work goes to others. At "
        "least three heartbeats; too short takes a busy conductor for a dead one.",
    ),
    cfg.FloatOpt(
        "poll",
        default=MembershipTiming().poll,
        help="Seconds between two looks at the other conductors; at most half the timeout.",
    ),
]
CONDUCTOR = [
    cfg.IntOpt(
        "threads",
        default=32,
        min=1,
        max=1024,
        help="Steps that run at the same time. Waiting takes no thread, so this bounds calls to other "
        "services, not stacks in progress.",
    ),
    cfg.IntOpt("in_progress", default=20000, min=1, help="Tasks that one conductor holds at the most."),
    cfg.FloatOpt(
        "weight",
        default=1.0,
        min=0.01,
        max=1000,
        mutable=True,
        help="Share of the duties relative to the other conductors' weights.",
    ),
    cfg.IntOpt(
        "most_written_off",
        default=8,
        min=0,
        help="Threads hanging in calls that were cancelled at which the conductor drains and ends with exit "
        "code 75, to be started anew by its service manager; 0: never.",
    ),
    cfg.FloatOpt(
        "drain", default=30.0, min=0, mutable=True, help="Seconds that steps in progress are given at a stop."
    ),
    cfg.FloatOpt(
        "keep_deleted",
        default=30 * 86400.0,
        min=0,
        mutable=True,
        help="Seconds that deleted stacks stay visible.",
    ),
]
STACKS = [
    cfg.IntOpt(
        "shard_count",
        min=1,
        help="Shards of the ring; set when the database is first used (default 4096) and never changed.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=3600.0,
        min=1,
        help="Seconds an action of a stack may take where the user sets none.",
    ),
    cfg.FloatOpt(
        "resource_timeout",
        min=0.001,
        help="Seconds an action of a resource may take where its environment sets none; unset: the stack's "
        "timeout only.",
    ),
    cfg.IntOpt(
        "resource_retries",
        default=5,
        min=0,
        help="How often a step that may work later is tried again where the environment sets nothing.",
    ),
    cfg.StrOpt(
        "held_time",
        default="stands",
        choices=[
            ("stands", "its deadline stands still, so nobody has to hurry who looks at it"),
            ("counts", "its deadline counts on, so nothing stays for ever that was forgotten"),
        ],
        help="What happens to the timeout of a stack of which all that is unfinished is held at breakpoints, "
        "or waits behind them.",
    ),
    cfg.FloatOpt(
        "cancel_grace",
        default=30.0,
        min=0,
        help="Seconds in which a step that is cancelled, or whose resource timeout has struck, may end; then "
        "the stack goes on without it and its thread is written off. Longer spares calls that end by "
        "themselves, shorter lets a stack go on sooner.",
    ),
    cfg.IntOpt(
        "max_events_per_stack",
        default=1000,
        min=0,
        mutable=True,
        help="Events of a stack that are kept, at the most; a few more until the next purge, once a minute. "
        "0: all.",
    ),
    *STACK_LIMITS,
]
SECRETS = [
    cfg.MultiStrOpt(
        "key",
        default=[],
        secret=True,
        help="Key that seals secrets at rest, as `stoker-manage key generate` prints it. May be given "
        "several times: the first one seals, all of them open.",
    ),
]

QUIET = ["amqp=WARN", "kombu=ERROR", "oslo.messaging=ERROR", "alembic=WARN", "sqlalchemy=WARN"]
"""Libraries that say too much otherwise."""

GROUPS: dict[str, Sequence[cfg.Opt]] = {
    "DEFAULT": [*DEFAULTS, *NOTIFICATIONS],
    "database": DATABASE,
    "coordination": COORDINATION,
    "conductor": CONDUCTOR,
    "api": API,
    "metrics": METRICS,
    "stacks": [*STACKS, *SIGNALS, *TASK_LOSSES, *DEFERRED],
    "secrets": SECRETS,
    "upgrade_levels": UPGRADE_LEVELS,
    "yaql": YAQL,
}


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """For oslo.config's sample generator."""
    return [(None if group == "DEFAULT" else group, list(options)) for group, options in GROUPS.items()]


def load(arguments: list[str], *, program: str, files: list[pathlib.Path] | None = None) -> cfg.ConfigOpts:
    """The process's configuration, from the command line and the files it names.

    It is the process-wide object, for oslo.messaging looks for its own options there only.

    :param files: in place of those that are looked for, see config_files.py.
    :raises WrongConfiguration: a file is missing, or the value of an option is none.
    """
    conf = cfg.CONF
    _register_own(conf, program)
    for name, options in oslo_messaging.opts.list_opts():
        if name in (None, "oslo_messaging_notifications"):
            conf.register_opts(options, name)
    conf.set_default("executor_thread_pool_size", 2)
    log.register_options(conf)
    log.set_defaults(logging_context_format_string=FORMAT, default_log_levels=QUIET)
    found = config_files.defaults() if files is None else [str(path) for path in files]
    try:
        conf(arguments, project=config_files.PROJECT, prog=program, default_config_files=found)
        prefer_argument(conf, program)
        _check_values(conf)
    except (cfg.Error, ValueError) as error:
        raise WrongConfiguration(str(error)) from error
    return conf


@dataclass(frozen=True)
class Reloaded:
    """What a second look at the configuration has found.

    :ivar changed: options that have another value now, as ``group.name``.
    :ivar ignored: those whose new value needs a restart.
    """

    changed: Sequence[str]
    ignored: Sequence[str]


def reload(conf: cfg.ConfigOpts, arguments: list[str], *, program: str) -> Reloaded:
    """Read the files again that `load` has read, and take over what can change at run time.

    :raises WrongConfiguration: as `load`; then nothing has changed.
    """
    fresh = cfg.ConfigOpts()
    _register_own(fresh, program)
    log.register_options(fresh)
    before = _values(conf)
    try:
        fresh(
            arguments,
            project=config_files.PROJECT,
            prog=program,
            default_config_files=config_files.defaults(),
        )
        prefer_argument(fresh, program)
        _check_values(fresh)
        other = {name for name, value in _values(fresh).items() if value != before[name]}
        conf.mutate_config_files()
    except (cfg.Error, ValueError) as error:
        raise WrongConfiguration(str(error)) from error
    after = _values(conf)
    changed = sorted(name for name in after if after[name] != before[name])
    return Reloaded(changed, sorted(other - set(changed)))


def _register_own(conf: cfg.ConfigOpts, program: str) -> None:
    if program == "stoker-conductor":  # So that several can share a host and a file.
        conf.register_cli_opts(DEFAULTS)
        conf.register_cli_opts(METRICS_OF_ONE)
    for group, options in GROUPS.items():
        conf.register_opts(options, None if group == "DEFAULT" else group)


def _values(conf: cfg.ConfigOpts) -> dict[str, object]:
    """The values of our own options, and whether debugging is on."""
    found: dict[str, object] = {"DEFAULT.debug": conf.debug}
    for group, options in GROUPS.items():
        section = conf if group == "DEFAULT" else conf[group]
        found |= {f"{group}.{option.dest}": getattr(section, option.dest) for option in options}
    return found


def _check_values(conf: cfg.ConfigOpts) -> None:
    """Read every option once: a wrong value is told at the start, not when it is first used."""
    _values(conf)
