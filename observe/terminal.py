"""Texts for terminals: harmless whatever they hold, with colours on terminals only.

Names and reasons come from users, and from services that these have chosen.  A terminal would obey control
characters in them, and characters that turn the direction of a line would make one name look like another.
"""

import typing
import unicodedata

from rich.console import Console
from rich.text import Text

UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are no text: controls, marks of direction and format, unassigned ones."""
OK = "green"
RUNNING = "blue"
BAD = "bold red"
HELD = "yellow"
IDLE = "bright_black"
"""Styles: done well, in progress, failed, held or endangered, not started."""


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


def make_console(stream: typing.TextIO, *, width: int | None = None) -> Console:
    """Return a console on a stream; it has colours on a terminal only, and none where NO_COLOR is set.

    :param width: in characters; None: that of the terminal.
    """
    return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True, width=width)


def bar(share: float, width: int, style: str = OK) -> Text:
    """Return a bar of which a part is filled.

    :param share: the filled part, from 0 to 1.
    """
    full = round(max(0.0, min(1.0, share)) * width)
    return Text.assemble(("█" * full, style), ("░" * (width - full), IDLE))
