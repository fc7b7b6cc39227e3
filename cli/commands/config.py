"""``stoker-manage config validate``: what is wrong with the configuration, option by option."""

import contextlib
import difflib
import importlib.metadata
import pathlib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cliff.command import Command
from keystoneauth1 import loading
from keystoneauth1.exceptions import NoMatchingPlugin
from oslo_config import cfg

from ...rpc.bus import LOCAL
from ..config import files as config_files
from ..config import options
from ..config.errors import WrongConfiguration
from ..wiring.coordination import check_backend, make_timing
from ..wiring.keystone import SECTION, make_enforcer
from ..wiring.messaging import make_bus, make_notifier
from ..wiring.probes import unreachable
from ..wiring.secrets import make_sealer
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
"""Who reads options, by the names under which oslo.config's own tools find them."""
Known = Mapping[str, Mapping[str, cfg.Opt]]


@dataclass(frozen=True)
class Problem:
    """:ivar where: the file, and ``[section] option``.
    :ivar serious: a daemon would not do what is meant.
    """

    where: str
    what: str
    serious: bool = True


def known_options(plugins: Iterable[str] = ()) -> dict[str, dict[str, cfg.Opt]]:
    """All options that Stoker and its libraries read, by section and name.

    :param plugins: for the account at Keystone.
    """
    points = importlib.metadata.entry_points(group="oslo.config.opts")
    listed = [group for name in NAMESPACES for point in points.select(name=name) for group in point.load()()]
    listed += [(section, _auth_options(plugins)) for section in (SECTION, TRUSTEE)]
    found: dict[str, dict[str, cfg.Opt]] = {}
    for group, opts in listed:
        name = DEFAULT if group is None else str(getattr(group, "name", group))
        for opt in opts:
            found.setdefault(name, {}).setdefault(opt.dest, opt)
    return found


def _auth_options(plugins: Iterable[str]) -> list[cfg.Opt]:
    """Those of the account at Keystone."""
    found = [*loading.get_auth_common_conf_options(), *loading.get_session_conf_options()]
    for name in plugins:
        try:
            found += loading.get_auth_plugin_conf_options(loading.get_plugin_loader(name))
        except NoMatchingPlugin:
            continue  # That is told where the account is checked.
    return found


def auth_types(paths: Iterable[pathlib.Path]) -> set[str]:
    """The plugins for the account at Keystone that the files name; what cannot be read is told elsewhere."""
    found: set[str] = set()
    for path in paths:
        sections: dict[str, dict[str, list[str]]] = {}
        with contextlib.suppress(cfg.ParseError, OSError):
            cfg.ConfigParser(str(path), sections).parse()
        for values in sections.values():
            found.update(values.get("auth_type", []))
    return found


def in_file(path: pathlib.Path, known: Known) -> Iterator[Problem]:
    """What is wrong in a file, line by line, whatever the other files say."""
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path), sections).parse()
    except (cfg.ParseError, OSError) as error:
        yield Problem(str(path), str(error))
        return
    auth = set((sections.get(SECTION) or {}).get("auth_section", []))
    for section, values in sections.items():
        where = f"{path}: [{section}]"
        if section not in known and section not in auth:
            yield Problem(where, f"there is no such section{_suggestion(section, known)}")
            continue
        here = known[SECTION] if section in auth else known[section]
        for name, given in values.items():
            yield from _of_option(f"{where} {name}", name.replace("-", "_"), given, (section, here, known))


def _of_option(
    where: str, name: str, given: Sequence[str], place: tuple[str, Mapping[str, cfg.Opt], Known]
) -> Iterator[Problem]:
    section, here, known = place
    opt = here.get(name)
    if opt is None:
        instead = _replacement(section, name, known)
        if instead is not None:
            yield Problem(where, f"its name is {instead} now", serious=False)
        else:
            yield Problem(where, f"there is no such option{_suggestion(name, here)}")
        return
    if opt.deprecated_for_removal:
        yield Problem(where, f"it will be removed: {opt.deprecated_reason or 'no reason is given'}", False)
    for text in given:
        try:
            if "$" not in text:
                opt.type(text)
        except (ValueError, TypeError) as error:
            yield Problem(where, f"{'the value is wrong' if opt.secret else error}")


def _replacement(section: str, name: str, known: Known) -> str | None:
    """The present name of an option by an older one."""
    for group, opts in known.items():
        for opt in opts.values():
            for old in opt.deprecated_opts:
                if (old.group or group, (old.name or opt.name).replace("-", "_")) == (section, name):
                    return f"[{group}] {opt.dest}"
    return None


def _suggestion(name: str, known: typing.Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; is {close[0]} meant?" if close else ""


def together(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """What is wrong with options that belong together, as the daemons find it at their start."""
    tried: list[Callable[[cfg.ConfigOpts], object]] = [
        make_sealer, make_timing, check_backend, make_bus, make_notifier
    ]  # fmt: skip
    # With everything in one process nobody is asked for a token.
    if conf.api.auth_strategy == "keystone" and not conf.transport_url.startswith(LOCAL):
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
    """All that is wrong, and the configuration if it can be read.

    :param files: None: those that the daemons would find.
    """
    paths = list(config_files.found("stoker-manage") if files is None else files)
    known, found = known_options(auth_types(paths)), list[Problem]()
    for path in paths:
        found += in_file(path, known)
    try:
        conf = options.load([], program="stoker-manage", files=list(files) if files is not None else None)
    except WrongConfiguration as error:
        if not any(problem.serious for problem in found):
            found.append(Problem("", str(error)))
        return found, None
    if (told := config_files.missing(conf)) is not None:
        return [Problem("", told)], None
    return [*found, *together(conf)], conf


class ConfigValidate(Command):
    """Say what is wrong with the configuration: wrong, unknown and deprecated options, each with its file and
    section; with --connect also which servers do not answer."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--connect", action="store_true", help="ask the servers that it names, too")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """The exit code: 1 if something is wrong."""
        found, conf = problems(typing.cast(typing.Any, self.app).options.config_file)
        out = self.app.stdout
        for problem in found:
            where = f"{problem.where}: " if problem.where else ""
            out.write(f"{'' if problem.serious else 'deprecated: '}{where}{problem.what}\n")
        wrong = sum(problem.serious for problem in found)
        if parsed.connect and conf is not None:
            for server, told in unreachable(conf):
                out.write(f"{server}: {told or 'answers'}\n")
                wrong += told is not None
        out.write(f"{wrong} wrong\n" if wrong else "nothing is wrong\n")
        return 1 if wrong else 0
