"""``stoker-manage secrets``: replace older sealing keys, and begin again after the loss of one."""

import argparse
import collections
import time
import typing
from collections.abc import Sequence

from cliff.command import Command

from ...observe.terminal import write_lines
from ...sealing.rotation import BATCH, Rotation, RotationRound
from ..wiring.secrets import forget_lost_key, make_sealer
from .base import AdminError
from .progress import ProgressLine
from .sessions import session_of

DONE = 0
NEEDED = 2


class SecretsRotate(Command):
    """Reseal all values that are not sealed with the first key.

    The API and the conductors may run meanwhile.  An interrupted run is finished by running it again.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--check", action="store_true", help="only count the values to reseal")
        parser.add_argument(
            "--batch", type=_number, default=BATCH, metavar="ROWS", help="rows per transaction (%(default)s)"
        )
        parser.add_argument(
            "--wait",
            type=_number,
            default=60,
            metavar="SECONDS",
            help="time to wait for steps that may still store a value of an older key (%(default)s)",
        )
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command; return 0 if only the first key is needed, 2 if others still are."""
        session = session_of(self, long_work=True)
        sealer = make_sealer(session.conf)
        self._line = ProgressLine(self.app.stderr)
        rotation = Rotation(
            session.database,
            sealer,
            clock=session.database.clock,
            sleep=time.sleep,
            batch=int(parsed.batch),
            progress=lambda table, done, total: self._line.count(f"rotate {table}", done, "rows read", total),
        )
        if parsed.check:
            found = rotation.count()
            left = 0
        else:
            found, left = rotation.run(self._tell, patience=parsed.wait)
        self._line.clear()
        return self._conclude(found, sealer.fingerprints, left)

    def _tell(self, counts: RotationRound) -> None:
        self._line.clear()
        out = self.app.stdout
        for table, count in sorted(counts.sealed_anew.items()):
            write_lines(out, f"{table}: {count} rows resealed")
        if counts.moved:
            write_lines(out, f"content: {counts.moved} environments moved to their new ids")

    def _conclude(self, counts: RotationRound, fingerprints: Sequence[str], unfinished: int) -> int:
        first, *older = fingerprints
        out = self.app.stdout
        missing = sorted(counts.held.keys() - set(fingerprints))
        write_lines(out, f"key {first}, the first: sealed {_counted(counts, first)}")
        needed = [key for key in older if key in counts.held]
        for key in older:
            state = (
                f"still needed, sealed {_counted(counts, key)}" if key in needed else "not needed any more"
            )
            write_lines(out, f"key {key}: {state}")
        wrong = [
            f"key {key} is not among [secrets] key, and sealed {_counted(counts, key)}: put it below "
            "the first one and run this again, or these values cannot be read"
            for key in missing
        ]
        wrong += [f"{place}: a value cannot be opened by the key that it names" for place in counts.broken]
        if wrong:
            raise AdminError("\n".join(wrong))
        if unfinished:
            write_lines(
                out,
                f"{unfinished} steps that began before are not at an end, and may store what an older key "
                "has sealed: keep the older keys, and run this again later",
            )
        elif not counts.quiet:
            write_lines(
                out, "values are still sealed with an older key: is the first key the same on all hosts?"
            )
        return NEEDED if needed or unfinished or not counts.quiet else DONE


class SecretsForget(Command):
    """Make a new secret for signatures where the sealing key of the present one is lost.

    Without it no program starts.  Presigned addresses and keys that servers and alarms have are refused from
    then on.  Other values that the lost key has sealed stay as they are.
    """

    def take_action(self, parsed: typing.Any) -> None:
        session = session_of(self)
        if not forget_lost_key(session.database, make_sealer(session.conf)):
            raise AdminError(
                "nothing is lost: the configured keys open the secret for signatures, or none is stored"
            )
        write_lines(
            self.app.stdout,
            "the next program that starts makes a new secret for signatures; addresses and keys that servers "
            "and alarms have are refused from now on",
        )


def _counted(counts: RotationRound, key: str) -> str:
    """Return the numbers of values that a key has sealed: ``3 values (resource: 1, stack: 2)``."""
    return _sum(counts.held.get(key, collections.Counter()))


def _sum(counts: "collections.Counter[str]") -> str:
    where = ", ".join(f"{table}: {count}" for table, count in sorted(counts.items()))
    total = counts.total()
    return f"{total} value{'' if total == 1 else 's'}{f' ({where})' if where else ''}"


def _number(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value
