"""Screens: consoles and bars with colours, on terminals only, and harmless whatever they hold.

They are apart from terminal.py because daemons print, too, and need none of this library.
"""

import typing
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from .terminal import harmless

OK = "green"
RUNNING = "blue"
BAD = "bold red"
HELD = "yellow"
IDLE = "bright_black"
"""Styles: done well, in progress, failed, held or endangered, not started."""


class HarmlessConsole(Console):
    """A console that prints no character that a terminal would obey, but for its own colours and moves."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable; those that are text are harmless, and keep their lines."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                text = "\n".join(map(harmless, segment.text.split("\n")))
                yield Segment(text, segment.style)


def make_console(stream: typing.TextIO, *, width: int | None = None) -> Console:
    """Return a console on a stream; it has colours on a terminal only, and none where NO_COLOR is set.

    :param width: in characters; None: that of the terminal.
    """
    return HarmlessConsole(
        file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True, width=width
    )


def bar(share: float, width: int, style: str = OK) -> Text:
    """Return a bar of which a part is filled.

    :param share: the filled part, from 0 to 1.
    """
    full = round(max(0.0, min(1.0, share)) * width)
    return Text.assemble(("█" * full, style), ("░" * (width - full), IDLE))
