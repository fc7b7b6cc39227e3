"""Columns of lists that show one form to people and another to programs."""

import typing
from collections.abc import Sequence

from cliff.columns import FormattableColumn
from cliff.lister import Lister

from ...observe.instants import describe_age, instant, iso
from ...observe.terminal import HarmlessTable, harmless, write_wrapped
from ...shapes import JsonMap


class WithFooter(HarmlessTable, Lister):
    """A list with lines below its table; a list for programs has no such lines."""

    footer: Sequence[str] = ()

    def produce_output(self, parsed: typing.Any, column_names: typing.Any, data: typing.Any) -> int:
        """Print the list, and the footer below a table."""
        code = int(super().produce_output(parsed, column_names, data) or 0)
        if parsed.formatter == "table":
            write_wrapped(self.app.stdout, *self.footer)
        return code


class Share(FormattableColumn[float]):
    """A part of a whole, from 0 to 1: ``33.4%`` for people."""

    def human_readable(self) -> str:
        return f"{self._value:.1%}"

    def machine_readable(self) -> float:
        return round(self._value, 4)


class OutOf(FormattableColumn[tuple[int | None, int | None]]):
    """A number of things that are used, and how many there are: ``7/32`` for people, 7 for programs."""

    def human_readable(self) -> str:
        used, most = self._value
        return "" if used is None else f"{used}/{most}"

    def machine_readable(self) -> typing.Any:
        return self._value[0]


class Known(FormattableColumn[bool | None]):
    """A truth value that may be unknown."""

    def human_readable(self) -> str:
        return "unknown" if self._value is None else str(self._value)

    def machine_readable(self) -> typing.Any:
        return self._value


class Age(FormattableColumn[tuple[float | None, float]]):
    """A moment: its age for people, the instant for programs."""

    @classmethod
    def of(cls, moment: float | None, now: float) -> "Age":
        """Return the column of a moment.

        :param moment: seconds since the epoch; None: never.
        """
        return cls((moment, now))

    def human_readable(self) -> str:
        moment, now = self._value
        return "never" if moment is None else describe_age(now - moment)

    def machine_readable(self) -> typing.Any:
        moment, _ = self._value
        return None if moment is None else iso(moment)


class LastRequest(FormattableColumn[tuple[JsonMap, float]]):
    """The operator's last request of a conductor: ``ann, 3 min ago: a new kernel`` for people."""

    @classmethod
    def of(cls, conductor: JsonMap, now: float) -> "LastRequest":
        """Return the column of a conductor.

        :param conductor: the view of the conductor.
        :param now: seconds since the epoch.
        """
        return cls((conductor, now))

    def human_readable(self) -> str:
        conductor, now = self._value
        if conductor["wanted_time"] is None:
            return ""
        by = harmless(conductor["wanted_by"] or "an unknown user")
        reason = f": {harmless(conductor['wanted_reason'])}" if conductor["wanted_reason"] else ""
        return f"{by}, {describe_age(now - instant(conductor['wanted_time']))}{reason}"

    def machine_readable(self) -> typing.Any:
        conductor, _ = self._value
        return {name: conductor[f"wanted_{name}"] for name in ("by", "time", "reason")}
