"""``stoker-manage files``: what an installation has besides the programs."""

import importlib.metadata
import pathlib
import typing
from collections.abc import Iterable, Iterator

from cliff.lister import Lister

from ...observe.terminal import HarmlessTable
from .base import AdminError

PURPOSES = {
    "share/stoker/constraints.txt": "the tested versions of all libraries, for pip install -c",
    "share/stoker/stoker.conf.sample": "all options",
    "share/stoker/policy.yaml.sample": "all rules of the policy",
    "share/stoker/examples/": "templates",
    "share/stoker/grafana/": "dashboard for Grafana",
    "share/stoker/haproxy/": "proxy in front of the API: configuration of HAProxy",
    "share/stoker/older_types/": "types whose services are gone",
    "share/stoker/systemd/stoker.sysusers": "the daemons' account, for systemd-sysusers",
    "share/stoker/systemd/": "unit of systemd",
    "share/man/": "man page",
    "share/bash-completion/": "completion for bash",
    "share/zsh/": "completion for zsh",
}
"""Beginnings of paths below the prefix of the installation -> purposes of the files; the first one counts."""


class Files(HarmlessTable, Lister):
    """List the files that were installed besides the programs.

    They are systemd units, samples of the configuration and of the policy, the dashboard, templates, man
    pages and completions. With a part of a name, list only the files whose path has it.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("part", nargs="?", default="", help="part of a path, such as systemd")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        return ("Purpose", "File"), with_part(files_of(installed()), parsed.part)


def installed() -> list[pathlib.PurePath]:
    """Return the paths of all files that the installer has recorded for Stoker; the base is its folder.

    :raises AdminError: Stoker is not installed, or its installer keeps no record.
    """
    try:
        records = importlib.metadata.files("stoker")
    except importlib.metadata.PackageNotFoundError:
        records = None
    if records is None:
        raise AdminError("no record of installed files exists: install Stoker with pip")
    return [pathlib.Path(str(record.locate())).resolve() for record in records]


def files_of(paths: Iterable[pathlib.PurePath]) -> Iterator[tuple[str, str]]:
    """Yield the purpose and the path of each file that is no part of the program."""
    for path in paths:
        for beginning, purpose in PURPOSES.items():
            if f"/{beginning}" in path.as_posix():
                yield purpose, str(path)
                break


def with_part(rows: Iterable[tuple[str, str]], part: str) -> list[tuple[str, str]]:
    """Return the purposes and paths, in order, of the files that have a text in their path.

    :raises AdminError: there is none.
    """
    ordered = sorted(rows)
    if not ordered:
        raise AdminError("only the programs were installed: install Stoker from its wheel or source archive")
    matching = [row for row in ordered if part in row[1]]
    if not matching:
        raise AdminError(f"no installed file has {part!r} in its path; leave the part out to list all files")
    return matching
