"""All that the programs print, line by line, and the cells of tables: harmless whatever they hold.

Names and reasons come from users, and from services that these have chosen.  A terminal would obey control
characters in them, and characters that turn the direction of a line would make one name look like another.
So no other module writes to a stream of people's: a test keeps it so.  Screens with colours: screen.py.
"""

import io
import json
import shutil
import sys
import textwrap
import typing
import unicodedata

UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are no text: controls, marks of direction and format, unassigned ones."""


def harmless(text: object, most: int | None = None) -> str:
    r"""Return a text in one line without characters that a terminal would obey.

    >>> harmless("a\x1b[2J\u202eb\nc")
    'a\\x1b[2J\\u202eb\\x0ac'

    :param most: characters after which the text is cut; None: never.
    """
    printable = "".join(
        _escaped(char) if unicodedata.category(char) in UNSAFE else char for char in str(text)
    )
    return printable if most is None or len(printable) <= most else f"{printable[: most - 1]}…"


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


COMMANDS = ("sooner: ", "or: ")
"""Beginnings of lines with a command."""
LEAST_WIDTH = 40
"""Columns of the narrowest terminal for which lines are divided."""
CLEAR = "\r\x1b[2K"
"""Returns to the beginning of the line and clears it."""


def write_lines(stream: typing.TextIO, *lines: object) -> None:
    """Write texts, each as one harmless line."""
    stream.write("".join(f"{harmless(line)}\n" for line in lines))


def write_wrapped(stream: typing.TextIO, *lines: object) -> None:
    """Write texts as `write_lines` does; on a terminal within its width, with further rows indented."""
    width = shutil.get_terminal_size().columns if stream.isatty() else None
    rows = (row for line in lines for row in wrapped(harmless(line), width))
    stream.write("".join(f"{row}\n" for row in rows))


def wrapped(line: str, width: int | None) -> list[str]:
    """Return the rows of a line.  Words stay whole, and so do commands, which readers copy.

    :param width: characters of a row; None: all are in one.
    """
    words = line.lstrip()
    if width is None or len(line) <= width or words.startswith(COMMANDS):
        return [line]
    indent = line[: len(line) - len(words)]
    return textwrap.wrap(
        words,
        max(width, LEAST_WIDTH),
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def write_json(stream: typing.TextIO, value: object) -> None:
    """Write a value as JSON in ASCII, whose escapes a terminal does not obey."""
    stream.write(json.dumps(value, indent=2) + "\n")


def write_document(stream: typing.TextIO, text: str) -> None:
    """Write a text of several lines: exactly for files and programs, and harmless on a terminal."""
    if stream.isatty():
        write_lines(stream, *text.splitlines())
    else:
        stream.write(text)


def write_in_place(stream: typing.TextIO, text: str) -> None:
    """Write a text in the place of the line that was written last; "" clears it."""
    stream.write(CLEAR + harmless(text))
    stream.flush()


def write_question(stream: typing.TextIO, text: str) -> None:
    """Write a question; the answer follows in the same line."""
    stream.write(harmless(text))
    stream.flush()


class HarmlessTable:
    """Mixin of cliff's lists and tables, before their base: the cells that people read are harmless.

    JSON and YAML escape such characters themselves, and programs want the values as they are.
    """

    escaping = ("json", "yaml")

    def produce_output(self, parsed: typing.Any, column_names: typing.Any, data: typing.Any) -> int:
        """Print the rows, or the values of a table with one."""
        cells = data if parsed.formatter in self.escaping else map(_harmless_cell, data)
        base: typing.Any = super()
        return int(base.produce_output(parsed, column_names, cells) or 0)


def _harmless_cell(cell: typing.Any) -> typing.Any:
    if isinstance(cell, list | tuple):
        return tuple(map(_harmless_cell, cell))
    return harmless(cell) if isinstance(cell, str) else cell


def print_by_line() -> None:
    """Flush the process's output after each line from now on.

    Python does so on terminals only.  A reader of a pipe or a file would see lines when eight kilobytes are
    full, or the program ends.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Who embeds a program may have put another there.
            stream.reconfigure(line_buffering=True)
