"""All options, with their units and trade-offs.  Only cli/ reads configuration."""

import argparse
import logging
import pathlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import oslo_messaging.opts
from oslo_config import cfg
from oslo_log import log

from ...observe.logs import FORMAT
from . import about
from . import files as config_files
from .client_options import service_options
from .errors import WrongConfiguration
from .sections import make_options

LOG = logging.getLogger(__name__)
METRICS_OF_ONE = [
    # Not [metrics] port itself: where the file of such an argument is wrong oslo.config reports it unclearly.
    cfg.PortOpt("metrics-port", help="[metrics] port of this conductor."),
]
"""Arguments of a conductor."""
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
    **make_options(),
    **service_options(),
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
        _prefer_argument(conf, program)
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
        _prefer_argument(fresh, program)
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
        conf.register_cli_opts([option for option in GROUPS["DEFAULT"] if option.dest == "host"])
        conf.register_cli_opts(METRICS_OF_ONE)
    for group, options in GROUPS.items():
        conf.register_opts(options, None if group == "DEFAULT" else group)


def _prefer_argument(conf: cfg.ConfigOpts, program: str) -> None:
    """Prefer the port on the command line to the one in the files."""
    if program == "stoker-conductor" and conf.metrics_port is not None:
        conf.set_override("port", conf.metrics_port, "metrics")


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
