"""All options, with their units and trade-offs.  Only cli/ reads configuration."""

import argparse
import logging
import pathlib
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import oslo_messaging.opts
from oslo_config import cfg
from oslo_log import log

from ...observe.logs import FORMAT
from ...ring.timing import MembershipTiming
from . import about
from . import files as config_files
from .api_options import API, GUESTS
from .client_options import CLIENT_GROUPS
from .drift_options import DRIFT
from .errors import WrongConfiguration
from .language_options import CFN, YAQL
from .message_options import AUDIT, NOTIFICATIONS, UPGRADE_LEVELS
from .metrics_options import METRICS, METRICS_OF_ONE, prefer_argument
from .sections import options_of

LOG = logging.getLogger(__name__)
DEFAULTS = [
    cfg.HostAddressOpt(
        "host",
        default=socket.gethostname(),
        sample_default="this host's name",
        help="Name of this conductor on the ring and in events. It must stay the same over restarts, "
        "and differ between conductors: two conductors of one name would take each other's work.",
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
        help="Seconds between two heartbeats. A shorter interval detects a death sooner, and costs one "
        "more write to the backend per conductor and interval.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=MembershipTiming().timeout,
        help="Seconds without a heartbeat after which a conductor counts as dead and others take over "
        "its work. At least three heartbeats. A value that is too short declares a busy conductor "
        "dead.",
    ),
    cfg.FloatOpt(
        "poll",
        default=MembershipTiming().poll,
        help="Seconds between two reads of the group's members; at most half the timeout. A shorter interval "
        "notices unannounced changes sooner, and costs one more read of the backend.",
    ),
]
SECRETS = [
    cfg.MultiStrOpt(
        "key",
        default=[],
        secret=True,
        help="Key that seals secrets at rest, as printed by `stoker-manage key generate`. It may be "
        "given several times: the first key seals, all of them open.",
    ),
]

QUIET = [
    *("amqp=WARN", "kombu=ERROR", "oslo.messaging=ERROR", "alembic=WARN", "sqlalchemy=WARN"),
    # On Python 3.11 it logs an entry point, which contains itself when oslo.log's JSON formatter unfolds it.
    "stevedore=WARN",
    *("keystoneauth=WARN", "urllib3=WARN"),
    # The driver `log` of notifications writes them by this name.
    "oslo.messaging.notification=INFO",
]
"""Libraries that log too much by default; the last two log addresses, which may hold secret values."""

GROUPS: dict[str, Sequence[cfg.Opt]] = {
    "DEFAULT": [*DEFAULTS, *NOTIFICATIONS],
    "database": options_of("database"),
    "coordination": COORDINATION,
    "conductor": options_of("conductor"),
    "drift": DRIFT,
    "api": API,
    "cfn": CFN,
    "guests": GUESTS,
    "metrics": METRICS,
    "stacks": options_of("stacks"),
    "secrets": SECRETS,
    "audit": AUDIT,
    "upgrade_levels": UPGRADE_LEVELS,
    "yaql": YAQL,
    **CLIENT_GROUPS,
}


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options for oslo.config's sample generator."""
    return [(None if group == "DEFAULT" else group, list(options)) for group, options in GROUPS.items()]


def make_parser(program: str) -> argparse.ArgumentParser:
    """Return a parser whose help describes a program, and names the others and the documents."""
    return argparse.ArgumentParser(
        prog=program, description=about.description(program), epilog=about.epilog(program)
    )


def load(arguments: list[str], *, program: str, files: list[pathlib.Path] | None = None) -> cfg.ConfigOpts:
    """Read the process's configuration from the command line and the files that it names.

    It is the process-wide object, for oslo.messaging reads its own options there only.

    :param files: the files to read in place of those that files.py finds.
    :raises WrongConfiguration: a file is missing, or the value of an option is invalid.
    """
    conf = cfg.CONF
    _register_own(conf, program)
    for name, options in oslo_messaging.opts.list_opts():
        if name in (None, "oslo_messaging_notifications"):
            conf.register_opts(options, name)
    conf.set_default("executor_thread_pool_size", 2)
    log.register_options(conf)
    log.set_defaults(logging_context_format_string=FORMAT, default_log_levels=QUIET)
    defaults = config_files.defaults() if files is None else [str(path) for path in files]
    try:
        conf(
            arguments,
            project=config_files.PROJECT,
            prog=program,
            default_config_files=defaults,
            description=about.description(program),
            epilog=about.epilog(program),
        )
        prefer_argument(conf, program)
        _check_values(conf)
    except (cfg.Error, ValueError) as error:
        raise WrongConfiguration(str(error)) from error
    return conf


@dataclass(frozen=True)
class Reloaded:
    """The result of a reload.

    :ivar changed: options that have another value now, as ``group.name``.
    :ivar ignored: options whose new value needs a restart.
    """

    changed: Sequence[str]
    ignored: Sequence[str]


def reload(conf: cfg.ConfigOpts, arguments: list[str], *, program: str) -> Reloaded:
    """Read the files again that `load` has read, and take over the options that can change at run time.

    All values are checked first, in an object of their own: `mutate_config_files` alone would take over
    some values of a file before it meets the one that is invalid.  Its result does not name the options
    that need a restart, so the values are compared here.

    :raises WrongConfiguration: a file is missing or a value is invalid; nothing has changed then.
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
        differing = {name for name, value in _values(fresh).items() if value != before[name]}
        conf.mutate_config_files()
    except (cfg.Error, ValueError) as error:
        raise WrongConfiguration(str(error)) from error
    after = _values(conf)
    changed = sorted(name for name in after if after[name] != before[name])
    return Reloaded(changed, sorted(differing - set(changed)))


def reload_options(conf: cfg.ConfigOpts, arguments: list[str], *, program: str) -> str:
    """Take over the options that can change at run time; log and return the changes.

    An invalid configuration changes nothing: the daemon continues with the one that it has.
    """
    try:
        reloaded = reload(conf, arguments, program=program)
    except WrongConfiguration as error:
        LOG.error("The configuration stays as it is: %s", error)
        return f"the configuration stays as it is: {error}"
    if not reloaded.changed and not reloaded.ignored:
        LOG.info("The configuration was read again; nothing has changed")
        return "the configuration was read again; nothing has changed"
    parts = [f"changed: {', '.join(reloaded.changed)}"] if reloaded.changed else []
    if reloaded.ignored:
        parts.append(f"need a restart: {', '.join(reloaded.ignored)}")
    status = f"the configuration was read again; {'; '.join(parts)}"
    LOG.info("%s", status[0].upper() + status[1:])
    return status


def _register_own(conf: cfg.ConfigOpts, program: str) -> None:
    if program == "stoker-conductor":  # Several conductors can share a host and a file.
        conf.register_cli_opts(DEFAULTS)
        conf.register_cli_opts(METRICS_OF_ONE)
    for group, options in GROUPS.items():
        conf.register_opts(options, None if group == "DEFAULT" else group)


def _values(conf: cfg.ConfigOpts) -> dict[str, object]:
    """Return the values of Stoker's options, and whether debugging is on.

    :raises WrongConfiguration: one is invalid.
    """
    values: dict[str, object] = {"DEFAULT.debug": conf.debug}
    for group, options in GROUPS.items():
        section = conf if group == "DEFAULT" else conf[group]
        values |= {f"{group}.{option.dest}": _value(section, group, option) for option in options}
    return values


def _value(section: cfg.ConfigOpts, group: str, option: cfg.Opt) -> object:
    try:
        return getattr(section, option.dest)
    except cfg.ConfigSourceValueError as error:
        # The library's own text lacks the section, and has the source in the form of Python's objects.
        source = re.search(r"detail='([^']+)'", str(error))
        where = f"{source[1]}: " if source else ""
        fault = "the value is wrong" if option.secret else error.__context__
        raise WrongConfiguration(f"{where}[{group}] {option.dest}: {fault}") from error


def _check_values(conf: cfg.ConfigOpts) -> None:
    """Read every option once, so that an invalid value is reported at the start, not at its first use."""
    _values(conf)
