"""``stoker-manage config from-heat``: a configuration that does what Heat's does."""

import pathlib
import typing
from collections.abc import Iterator, Mapping, Sequence

from cliff.command import Command
from oslo_config import cfg

from ...observe.terminal import write_lines
from ..config.files import write_private
from ..config.heat_options import heat_option
from .base import AdminError
from .config import known_options

Sections = Mapping[str, Mapping[str, Sequence[str]]]
"""Sections of a file, each with the values of its options."""
REMAINING = """\
# Heat's configuration does not say these; doc/install.md does.
# [database] connection, [coordination] backend_url, [secrets] key, [api] bind_host and public_url
"""


class Translation:
    """The translation of a heat.conf.

    :ivar sections: options of stoker.conf, by section.
    :ivar remarks: a line for each option of Heat's that has no counterpart, without its value.
    """

    def __init__(self, heat: Sections) -> None:
        self.sections: dict[str, dict[str, list[str]]] = {}
        self.remarks: list[str] = []
        plugins = {name for values in heat.values() for name in values.get("auth_type", ())}
        self._options = known_options(plugins)
        for section, values in heat.items():
            for name, texts in values.items():
                self._translate(section, name.replace("-", "_"), texts)

    def _translate(self, section: str, name: str, texts: Sequence[str]) -> None:
        option = heat_option(section, name)
        if option is None:
            if name in self._options.get(section, {}):
                self._set(section, name, texts)
            else:
                self._leave(section, name, "Stoker does not have it.")
            return
        target = option.target_of(section, name)
        if not target or option.convert is None:
            similar = f" Compare [{target.replace('.', '] ', 1)}." if target else ""
            self._leave(section, name, option.note + similar)
            return
        target_section, target_name = target.split(".", 1)
        if target_name not in self._options.get(target_section, {}):
            self._leave(section, name, "Stoker has no such client.")
            return
        self._set(target_section, target_name, [option.convert(text) for text in texts])

    def _set(self, section: str, name: str, texts: Sequence[str]) -> None:
        self.sections.setdefault(section, {})[name] = list(texts)

    def _leave(self, section: str, name: str, reason: str) -> None:
        self.remarks.append(f"[{section}] {name}: {reason}")

    def lines(self) -> Iterator[str]:
        """Yield the lines of stoker.conf."""
        yield REMAINING
        for section, values in self.sections.items():
            yield f"[{section}]"
            for name, texts in values.items():
                for text in texts:
                    yield f"{name} = " + text.replace("\n", "\n    ")
            yield ""


def read_sections(path: pathlib.Path) -> Sections:
    """Return the sections of a configuration file.

    :raises AdminError: it cannot be read.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path), sections).parse()
    except (cfg.ParseError, OSError, UnicodeDecodeError) as error:
        raise AdminError(f"{path} cannot be read: {error}") from error
    return sections


class ConfigFromHeat(Command):
    """Write the configuration that does what a heat.conf does, and list what it leaves out.

    The written file has the passwords of Heat's, and can be read by its owner only.  Nothing else shows them.
    Options that both services have from the same libraries are copied.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "heat_conf", metavar="HEAT_CONF", type=pathlib.Path, help="Heat's configuration file"
        )
        parser.add_argument(
            "stoker_conf", metavar="STOKER_CONF", type=pathlib.Path, help="the new file to write"
        )
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        translation = Translation(read_sections(parsed.heat_conf))
        try:
            write_private(parsed.stoker_conf, "\n".join(translation.lines()))
        except OSError as error:
            raise AdminError(f"{parsed.stoker_conf} cannot be written: {error.strerror}") from error
        for remark in translation.remarks:
            write_lines(self.app.stdout, f"left out: {remark}")
        count = sum(map(len, translation.sections.values()))
        write_lines(
            self.app.stdout,
            f"{parsed.stoker_conf} has {count} options; {len(translation.remarks)} were left out",
        )
        return 0
