"""``stoker-manage key generate``."""

import typing

from cliff.command import Command

from ...observe.terminal import write_lines
from ...sealing.sealer import Sealer


class KeyGenerate(Command):
    """Generate a key for [secrets] key."""

    def take_action(self, parsed: typing.Any) -> int:
        write_lines(self.app.stdout, Sealer.generate_key())
        return 0
