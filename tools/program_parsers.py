"""The argument parsers of all programs, each with those of its commands below it."""

import argparse
from collections.abc import Iterator

from stoker.cli.daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from stoker.cli.config import options  # isort: skip
from stoker.cli.programs import all_in_one, manage, status


def program_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each program, by the program's name."""
    return {
        "stoker": all_in_one.make_parser(),
        "stoker-api": _of_daemon("stoker-api"),
        "stoker-conductor": _of_daemon("stoker-conductor"),
        "stoker-manage": _of_manage(),
        "stoker-status": status.make_parser(),
    }


def commands_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands of a program, by their full names such as ``stoker-manage ring show``.

    A group of commands, such as ``ring``, is none.
    """
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in nested:
        for command in action.choices.values():
            below = list(commands_of(command))
            yield from below or [(command.prog, command)]


def _of_daemon(program: str) -> argparse.ArgumentParser:
    """Return the parser that oslo.config has made for a daemon; it has no public name there."""
    conf = options.load([], program=program, files=[])
    parser = conf._oparser
    assert parser is not None, "the configuration is loaded"
    conf.reset()  # The next daemon registers further options.
    return parser


def _of_manage() -> argparse.ArgumentParser:
    """Return one parser for all commands: cliff has one for each, and chooses it by itself."""
    app = manage.ManageApp()
    parser: argparse.ArgumentParser = app.parser
    parser.prog = manage.PROGRAM
    groups = {"": parser.add_subparsers(metavar="COMMAND")}
    for name, point in sorted(manage.COMMANDS.items()):
        group, _, last = name.rpartition(" ")
        if group not in groups:
            prog = f"{manage.PROGRAM} {group}"
            grouped = groups[""].add_parser(group, prog=prog, help=f"the commands of {group}")
            groups[group] = grouped.add_subparsers(metavar="COMMAND")
        prog = f"{manage.PROGRAM} {name}"
        command = point.load()(app, None, name).get_parser(prog)
        groups[group].add_parser(
            last,
            prog=prog,
            parents=[command],
            add_help=False,  # The parent has it.
            description=command.description,
            help=command.description.strip().splitlines()[0].replace("%", "%%"),
        )
    return parser
