#!/usr/bin/env python3
"""Write man pages, and completions of bash and zsh, for all programs.

    tools/manual.py FOLDER

The folder becomes that of an installation's prefix named ``share``.
"""

import argparse
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping

import shtab
from program_parsers import commands_of, program_parsers
from stoker.cli.config import about, files

SECTIONS = {"stoker": 1}
"""Sections of the man pages that are not in 8, for administrators."""
ADMINISTRATORS = 8
WIDTH = "78"
"""Columns of a synopsis."""
USAGE = "usage: "
"""Begins argparse's synopsis."""
HELP = {"-h", "--help"}


def section_of(program: str) -> int:
    """Return the section that the program's man page is in."""
    return SECTIONS.get(program, ADMINISTRATORS)


def man_page(program: str, parser: argparse.ArgumentParser) -> str:
    """Return the man page of a program, in the format of man(7)."""
    return "".join(f"{line}\n" for line in _lines(program, parser))


def _lines(program: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f'.TH {program.upper()} {section_of(program)} "" "Stoker" "Stoker\'s manual"'
    yield from (".SH NAME", rf"{_roff(program)} \- {_roff(about.PROGRAMS[program])}")
    yield from (".SH SYNOPSIS", *_synopsis(parser))
    yield from (".SH DESCRIPTION", _roff(about.description(program)))
    yield from (".SH OPTIONS", *_options(parser))
    commands = sorted(commands_of(parser))
    if commands:
        yield ".SH COMMANDS"
    for name, command in commands:
        yield f'.SS "{_roff(name.removeprefix(f"{program} "))}"'
        yield from (*_synopsis(command), ".PP", *_paragraphs(command.description or "", ".PP"))
        yield from _options(command)
    yield from (
        ".SH ENVIRONMENT",
        *_entry(files.VARIABLE, "the configuration file, where no option names one"),
    )
    yield ".SH FILES"
    places = ", ".join(files.PLACES)
    yield from _entry(f"{files.PROJECT}.conf", f"the configuration, searched in {places}, in this order")
    others = [f"{_bold(other)}({section_of(other)})" for other in about.PROGRAMS if other != program]
    yield from (".SH SEE ALSO", ", ".join(others))


def _synopsis(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the usage, with its own line breaks; they are aligned to the prefix."""
    usage = parser.format_usage().rstrip().replace("\n" + " " * len(USAGE), "\n").removeprefix(USAGE)
    yield from (".nf", *map(_roff, usage.splitlines()), ".fi")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the arguments and options of a parser, which are not those of its commands."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        is_hidden = action.help == argparse.SUPPRESS or HELP.intersection(action.option_strings)
        if is_hidden or isinstance(action, argparse._SubParsersAction):
            continue
        text = formatter._expand_help(action) if action.help else ""
        if action.choices is not None and action.option_strings:
            text = f"{text.rstrip('.')}; one of: {', '.join(map(str, action.choices))}"
        yield from (".TP", _title(action), *_paragraphs(text, ".IP"))


def _title(action: argparse.Action) -> str:
    """Return the names of an option, with its argument; of a positional argument, its name or its choices."""
    if not action.option_strings:
        choices = [str(choice) for choice in action.choices or ()]
        return " | ".join(map(_bold, choices)) or _italic(str(action.metavar or action.dest))
    names = ", ".join(map(_bold, action.option_strings))
    metavars = (
        (action.metavar,) if isinstance(action.metavar, str) else action.metavar or (action.dest.upper(),)
    )
    return names if action.nargs == 0 else f"{names} {' '.join(map(_italic, metavars))}"


def _entry(term: str, text: str) -> list[str]:
    return [".TP", _bold(term), _roff(text)]


def _paragraphs(text: str, request: str) -> Iterator[str]:
    """Yield the paragraphs of a text, which empty lines divide, each as one line.

    :param request: the request of troff's that begins all but the first.
    """
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]
    for index, paragraph in enumerate(filter(None, paragraphs)):
        if index:
            yield request
        yield _roff(paragraph)


def _bold(text: str) -> str:
    return rf"\fB{_roff(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_roff(text)}\fR"


def _roff(text: str) -> str:
    r"""Escape what troff would read as a request or as a character of its own.

    A minus stays one (``\-``), so that options can be searched and copied.
    """
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def complete_files(parser: argparse.ArgumentParser) -> None:
    """Mark the options whose arguments are files, for the completions."""
    for action in parser._actions:
        name = action.option_strings[0] if action.option_strings else action.dest
        if name.endswith(("-dir", "directory")):
            action.complete = shtab.DIR  # type: ignore[attr-defined]
        elif action.type is pathlib.Path or action.metavar == "PATH" or name.endswith("-file"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def pages(parsers: Mapping[str, argparse.ArgumentParser]) -> Iterator[tuple[str, str]]:
    """Yield the path of each file below ``share``, and its text."""
    for program, parser in parsers.items():
        section = section_of(program)
        yield f"man/man{section}/{program}.{section}", man_page(program, parser)
        for _, command in itertools.chain([("", parser)], commands_of(parser)):
            complete_files(command)
        yield f"bash-completion/completions/{program}", shtab.complete(parser, "bash")
        yield f"zsh/site-functions/_{program}", shtab.complete(parser, "zsh")


def main(folder: str) -> None:
    """Write all files below a folder."""
    os.environ["COLUMNS"] = WIDTH
    for name, text in pages(program_parsers()):
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
