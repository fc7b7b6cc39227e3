"""``stoker-manage key generate``."""

import typing

from cliff.command import Command

from ...sealing.sealer import Sealer


class KeyGenerate(Command):
    """Generate a key for [secrets] key."""

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command."""
        self.app.stdout.write(f"{Sealer.generate_key()}\n")
        return 0
