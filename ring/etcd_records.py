"""A heartbeat on etcd, with the read of the group: one transaction in place of three requests of tooz."""

import base64
import typing
from collections.abc import Mapping

from tooz import utils


def can_exchange(driver: typing.Any) -> bool:
    """Return whether a driver of tooz, which has started, is that of etcd."""
    return getattr(driver, "_membership_lease", None) is not None


def exchange(
    driver: typing.Any, group: bytes, member: bytes, record: Mapping[str, typing.Any]
) -> list[typing.Any] | None:
    """Change the record of a member to this one, and return the records of all members.

    The record changes only while it belongs to our lease.  So it never changes where etcd has forgotten us,
    and where another process of the same name has replaced us: that process has a lease of its own.

    :param driver: tooz's driver of etcd (9.1), whose requests this repeats, on its connection.
    :returns: None: the record is not ours any more, or the group is gone.
    :raises Exception: etcd does not answer, or refuses; an error of tooz or etcd3gw.
    """
    lease = driver._membership_lease.id
    prefix: bytes = driver._prefix_group(group)
    key = _text(prefix + member)
    answer = driver.client.transaction(
        {
            "compare": [{"key": key, "target": "LEASE", "result": "EQUAL", "lease": lease}],
            "success": [
                {"request_put": {"key": key, "value": _text(utils.dumps(dict(record))), "lease": lease}},
                {"request_range": {"key": _text(prefix), "range_end": _text(_end_of(prefix))}},
            ],
            "failure": [],
        }
    )
    if not answer.get("succeeded"):
        return None
    pairs = {pair["key"]: pair.get("value", "") for pair in answer["responses"][1]["response_range"]["kvs"]}
    if pairs.pop(_text(prefix), None) is None:  # The group itself is a key, too.
        return None
    return [utils.loads(base64.b64decode(value)) for value in pairs.values() if value]


def _end_of(prefix: bytes) -> bytes:
    """Return the first key after all that begin so."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _text(value: bytes) -> str:
    """Return bytes in the form in which etcd's gateway takes them."""
    return base64.b64encode(value).decode("ascii")
