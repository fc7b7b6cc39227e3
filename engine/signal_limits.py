"""Limits of signals: everyone who knows a signed address may send as many as they like."""

from dataclasses import dataclass

from ..settings import Bytes, setting
from ..shapes import Json, JsonMap
from ..template.budget import json_size
from ..template.errors import LimitExceeded


@dataclass(frozen=True)
class SignalLimits:
    """Limits of the signals to one resource; signals that wait to be carried out count as kept ones do."""

    size: Bytes = setting(
        "max_signal_size",
        65536,
        "Maximum size of a signal to a resource, in bytes. 0: only [api] max_body limits it.",
        least=0,
    )
    count: int = setting(
        "max_signals",
        1000,
        "Maximum number of signals that a wait condition handle keeps; a wait condition cannot wait for "
        "more. A signal whose id is known replaces the earlier one. 0: no limit.",
        least=0,
    )
    total: Bytes = setting(
        "max_signal_total",
        1024 * 1024,
        "Maximum size in bytes of all signals that a wait condition handle keeps. Each further signal reads "
        "and writes all of them. 0: no limit.",
        least=0,
    )
    reason: int = setting(
        "max_signal_reason",
        1024,
        "Maximum number of characters of a reason: the one of a signal, with its status, and the one with "
        "which a resource is marked unhealthy. It becomes part of an event. 0: no limit.",
        least=0,
    )

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
        if self.count and len(before) < len(after) > self.count:
            text = f"The resource keeps {len(before)} signals already"
            raise LimitExceeded(f"{text}; [stacks] max_signals is {self.count}")
        if self.total and (size := json_size(stored)) > self.total:
            text = f"The resource's metadata would have {size} bytes with this signal"
            raise LimitExceeded(f"{text}; [stacks] max_signal_total is {self.total}")

    def check_requests(self, waiting: int) -> None:
        """Check the number of signals that wait to be carried out.

        :raises LimitExceeded: there are too many for another one.
        """
        if self.count and waiting >= self.count:
            raise LimitExceeded(
                f"{waiting} signals to the resource wait; [stacks] max_signals is {self.count}"
            )
