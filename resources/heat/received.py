"""Signals as a wait condition handle stores them: its metadata, a map from signal id to an entry.

Heat's handle writes the keys of an entry in lower case, the one of AWS with a capital; a condition reads
both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ..contract import Signal, SignalError

SUCCESS = "SUCCESS"
FAILURE = "FAILURE"
STATUSES = (SUCCESS, FAILURE)


@dataclass(frozen=True)
class Keys:
    """Names in a signal and in an entry."""

    id: str
    status: str
    reason: str
    data: str

    @property
    def all(self) -> tuple[str, ...]:
        """All names; a signal has exactly these."""
        return self.data, self.reason, self.status, self.id


HEAT_KEYS = Keys(id="id", status="status", reason="reason", data="data")
AWS_KEYS = Keys(id="UniqueId", status="Status", reason="Reason", data="Data")


@dataclass(frozen=True)
class Received:
    """One signal."""

    id: str
    status: str
    reason: str
    data: Json


def received(metadata: JsonMap) -> list[Received]:
    """Return the signals in a handle's metadata, without other entries, which a template may set."""
    return list(_entries(metadata))


def _entries(metadata: JsonMap) -> Iterator[Received]:
    for signal_id, entry in metadata.items():
        if not isinstance(entry, Mapping):
            continue
        keys = HEAT_KEYS if HEAT_KEYS.status in entry else AWS_KEYS
        status = entry.get(keys.status)
        if status in STATUSES:
            yield Received(signal_id, status, str(entry.get(keys.reason, "")), entry.get(keys.data))


def with_signal(metadata: JsonMap, signal: JsonMap, keys: Keys) -> Signal:
    """Add a complete signal; it replaces one with the same id.

    :raises SignalError: keys are missing or too many, or the status is not one of STATUSES.
    """
    if set(signal) != set(keys.all):
        raise SignalError(f"Metadata format invalid: a signal has the keys {', '.join(keys.all)}")
    if signal[keys.status] not in STATUSES:
        raise SignalError(f"Metadata format invalid: {keys.status} must be {' or '.join(STATUSES)}")
    entry = {key: value for key, value in signal.items() if key != keys.id}
    return Signal(
        metadata={**metadata, str(signal[keys.id]): entry},
        reason=f"status:{signal[keys.status]} reason:{signal[keys.reason]}",
    )


def completed(details: JsonMap, metadata: JsonMap) -> dict[str, Json]:
    """Complete a signal of Heat's form: with success, and the number of the signal as its id.

    Where another signal has that number as its id, the next free one is used, so that no signal is lost (Heat
    overwrites the other one).
    """
    number = len(metadata) + 1
    free = number
    while str(free) in metadata:
        free += 1
    defaults = {"reason": f"Signal {number} received", "data": None, "id": free, "status": SUCCESS}
    return {**defaults, **details}
