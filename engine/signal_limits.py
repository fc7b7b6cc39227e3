"""Limits of signals: everyone who knows a signed address may send as many as they like."""

from dataclasses import dataclass

from ..shapes import Json, JsonMap
from ..template.budget import json_size
from ..template.errors import LimitExceeded


@dataclass(frozen=True)
class SignalLimits:
    """Limits of the signals to one resource; 0: none.

    :ivar size: bytes of one signal, as JSON.
    :ivar kept: signals that a handle keeps: entries of its metadata; and signals that wait to be carried out.
    :ivar total: bytes of a handle's metadata, as JSON.
    :ivar reason: characters of the text that a signal's event shows.
    """

    size: int = 65536
    kept: int = 1000
    total: int = 1048576
    reason: int = 1024

    def check_details(self, details: Json, *, is_output: bool = False) -> None:
        """Check the details of a signal.

        :param is_output: whether the details are a program's output, which an agent does not send again in
            parts.
        :raises LimitExceeded: the details are too large.
        """
        most, name = (self.total, "max_signal_total") if is_output else (self.size, "max_signal_size")
        if most and (size := json_size(details)) > most:
            raise LimitExceeded(f"The signal has {size} bytes; [stacks] {name} is {most}")

    def check_reason(self, reason: str) -> None:
        """Check the text of a signal's event.

        :raises LimitExceeded: the text is too long.
        """
        if self.reason and len(reason) > self.reason:
            text = f"The reason has {len(reason)} characters with what is added to it"
            raise LimitExceeded(f"{text}; [stacks] max_signal_reason is {self.reason}")

    def check_metadata(self, before: JsonMap, after: JsonMap, stored: Json) -> None:
        """Check the metadata that a resource is to keep; a signal that replaces another one adds none.

        :param before, after: the metadata before and after the signal.
        :param stored: the metadata after the signal, as they are stored.
        :raises LimitExceeded: the metadata have too many signals, or are too large.
        """
        if self.kept and len(before) < len(after) > self.kept:
            text = f"The resource keeps {len(before)} signals already"
            raise LimitExceeded(f"{text}; [stacks] max_signals is {self.kept}")
        if self.total and (size := json_size(stored)) > self.total:
            text = f"The resource's metadata would have {size} bytes with this signal"
            raise LimitExceeded(f"{text}; [stacks] max_signal_total is {self.total}")

    def check_requests(self, waiting: int) -> None:
        """Check the number of signals that wait to be carried out.

        :raises LimitExceeded: there are too many for another one.
        """
        if self.kept and waiting >= self.kept:
            raise LimitExceeded(
                f"{waiting} signals to the resource wait; [stacks] max_signals is {self.kept}"
            )
