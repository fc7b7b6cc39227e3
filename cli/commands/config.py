"""``stoker-manage config validate``: the check of a configuration, option by option.

oslo-config-validator is no substitute: it checks the names of options only, takes each file for itself, and
knows neither the options of Keystone's plugins nor a close match.  The known options come the same way, by
entry points.
"""

import contextlib
import importlib.metadata
import pathlib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cliff.command import Command
from keystoneauth1 import loading
from keystoneauth1.exceptions import NoMatchingPlugin
from oslo_config import cfg

from ...observe.terminal import write_lines
from ...rpc.bus import LOCAL
from ...template.suggestions import did_you_mean
from ..config import files as config_files
from ..config import options
from ..config.client_options import client_options
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from ..wiring.coordination import check_backend
from ..wiring.keystone import make_enforcer
from ..wiring.messaging import make_bus, make_notifier
from ..wiring.secrets import make_sealer
from ..wiring.servers import unreachable
from ..wiring.service_account import SECTION
from ..wiring.trusts import SECTION as TRUSTEE

DEFAULT = "DEFAULT"
NAMESPACES = (
    "stoker",
    "oslo.messaging",
    "oslo.log",
    "oslo.policy",
    "oslo.concurrency",
    "oslo.reports",
    "keystonemiddleware.auth_token",
)
"""The readers of options, by the names under which oslo.config's own tools find them."""
Known = Mapping[str, Mapping[str, cfg.Opt]]


@dataclass(frozen=True)
class Problem:
    """A fault of the configuration.

    :ivar where: the file, and ``[section] option``.
    :ivar serious: a daemon would not start, or would ignore the option.
    """

    where: str
    what: str
    serious: bool = True


def known_options(plugins: Iterable[str] = ()) -> dict[str, dict[str, cfg.Opt]]:
    """Return all options that Stoker and its libraries read, by section and name.

    :param plugins: the names of keystoneauth plugins, for the account at Keystone.
    """
    points = importlib.metadata.entry_points(group="oslo.config.opts")
    listed = [group for name in NAMESPACES for point in points.select(name=name) for group in point.load()()]
    listed += [(section, _auth_options(plugins)) for section in (SECTION, TRUSTEE)]
    options_of: dict[str, dict[str, cfg.Opt]] = {}
    for group, opts in listed:
        name = DEFAULT if group is None else str(getattr(group, "name", group))
        for opt in opts:
            options_of.setdefault(name, {}).setdefault(opt.dest, opt)
    return options_of


def _auth_options(plugins: Iterable[str]) -> list[cfg.Opt]:
    """Return the options of the account at Keystone."""
    auth_options = [*loading.get_auth_common_conf_options(), *loading.get_session_conf_options()]
    for name in plugins:
        try:
            auth_options += loading.get_auth_plugin_conf_options(loading.get_plugin_loader(name))
        except NoMatchingPlugin:
            continue  # The check of the account reports it.
    return auth_options


def auth_types(paths: Iterable[pathlib.Path]) -> set[str]:
    """Return the keystoneauth plugins that the files name; a file that cannot be read names none."""
    names: set[str] = set()
    for path in paths:
        sections: dict[str, dict[str, list[str]]] = {}
        with contextlib.suppress(cfg.ParseError, OSError):
            cfg.ConfigParser(str(path), sections).parse()
        for values in sections.values():
            names.update(values.get("auth_type", []))
    return names


def in_file(path: pathlib.Path, options_of: Known) -> Iterator[Problem]:
    """Yield the faults of a file by itself, without the other files."""
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path), sections).parse()
    except (cfg.ParseError, OSError) as error:
        yield Problem(str(path), str(error))
        return
    auth = set((sections.get(SECTION) or {}).get("auth_section", []))
    for section, values in sections.items():
        where = f"{path}: [{section}]"
        if section not in options_of and section not in auth:
            yield Problem(where, f"there is no such section{did_you_mean(section, options_of)}")
            continue
        here = options_of[SECTION] if section in auth else options_of[section]
        for name, texts in values.items():
            yield from _of_option(
                f"{where} {name}", name.replace("-", "_"), texts, (section, here, options_of)
            )


def _of_option(
    where: str, name: str, texts: Sequence[str], place: tuple[str, Mapping[str, cfg.Opt], Known]
) -> Iterator[Problem]:
    section, here, options_of = place
    opt = here.get(name)
    if opt is None:
        instead = _replacement(section, name, options_of)
        if instead is not None:
            yield Problem(where, f"its name is {instead} now", serious=False)
        else:
            yield Problem(where, f"there is no such option{did_you_mean(name, here)}")
        return
    if opt.deprecated_for_removal:
        yield Problem(where, f"it will be removed: {opt.deprecated_reason or 'no reason is given'}", False)
    for text in texts:
        try:
            if "$" not in text:
                opt.type(text)
        except (ValueError, TypeError) as error:
            yield Problem(where, f"{'the value is wrong' if opt.secret else error}")


def _replacement(section: str, name: str, options_of: Known) -> str | None:
    """Return the present name of an option by an older one."""
    for group, opts in options_of.items():
        for opt in opts.values():
            for old in opt.deprecated_opts:
                if (old.group or group, (old.name or opt.name).replace("-", "_")) == (section, name):
                    return f"[{group}] {opt.dest}"
    return None


def cross_checks(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """Yield the faults of options that belong together, as the daemons find them at their start."""
    tried: list[Callable[[cfg.ConfigOpts], object]] = [
        make_sealer, check_backend, make_bus, make_notifier, client_options
    ]  # fmt: skip
    # With everything in one process no token is required.
    if Settings(conf).auth.has_keystone and not conf.transport_url.startswith(LOCAL):
        tried += [_check_account, make_enforcer]
    for make in tried:
        try:
            make(conf)
        except WrongConfiguration as error:
            yield Problem("", str(error))


def _check_account(conf: cfg.ConfigOpts) -> None:
    loading.register_auth_conf_options(conf, SECTION)
    if not conf[SECTION].auth_type and not conf[SECTION].auth_section:
        raise WrongConfiguration(f"[{SECTION}] auth_type is missing: the service's own account at Keystone")


def problems(files: Sequence[pathlib.Path] | None) -> tuple[list[Problem], cfg.ConfigOpts | None]:
    """Return all faults, and the configuration if it can be read.

    :param files: the files to read; None: the files that the daemons would find.
    """
    paths = list(config_files.found("stoker-manage") if files is None else files)
    options_of = known_options(auth_types(paths))
    faults = list[Problem]()
    for path in paths:
        faults += in_file(path, options_of)
    try:
        conf = options.load([], program="stoker-manage", files=list(files) if files is not None else None)
    except WrongConfiguration as error:
        if not any(problem.serious for problem in faults):
            faults.append(Problem("", str(error)))
        return faults, None
    if (text := config_files.missing(conf)) is not None:
        return [Problem("", text)], None
    return [*faults, *cross_checks(conf)], conf


class ConfigValidate(Command):
    """Check the configuration.

    Prints wrong, unknown and deprecated options with their file and section.  With --connect it also
    connects to each server.  The exit code is 1 if something is wrong.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--connect", action="store_true", help="also connect to the configured servers")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command; return 1 if something is wrong."""
        faults, conf = problems(typing.cast(typing.Any, self.app).options.config_file)
        out = self.app.stdout
        for problem in faults:
            where = f"{problem.where}: " if problem.where else ""
            write_lines(out, f"{'' if problem.serious else 'deprecated: '}{where}{problem.what}")
        wrong = sum(problem.serious for problem in faults)
        if parsed.connect and conf is not None:
            for server, fault in unreachable(conf):
                write_lines(out, f"{server}: {fault or 'answers'}")
                wrong += fault is not None
        write_lines(out, f"{wrong} wrong" if wrong else "nothing is wrong")
        return 1 if wrong else 0
