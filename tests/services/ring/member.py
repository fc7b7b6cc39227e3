"""A conductor's place in the ring and nothing else: a program for the tests.

It checks what it owns every few milliseconds, as a conductor's duties do before they act, and prints a JSON
line whenever that has changed or a check came late.  SIGTERM: leave.  SIGUSR1: drain.  SIGUSR2: undrain.
"""

import argparse
import json
import logging
import signal
import sys
import time
import typing

from stoker.conductor.ownership import Ownership
from stoker.ring.group import Group
from stoker.ring.hashring import ACTIVE, DRAINING
from stoker.ring.local_member import LocalMember
from stoker.ring.membership import Membership
from stoker.ring.timing import MembershipTiming

SHARDS = 64
LOOK = 0.01
LATE = 0.15


class Witness:
    """Prints what the member believes, with the moments by the machine's one monotonic clock.

    A line holds what is believed from ``at`` on; ``until`` is the last check before.
    """

    def __init__(self, membership: Membership, host: str) -> None:
        self._membership = membership
        self._ownership = Ownership(membership, host)
        self._before: typing.Any = None
        self._last = time.monotonic()

    def look(self) -> None:
        at = time.monotonic()
        belief = {
            "member": self._ownership.member(),
            "shards": [shard for shard in range(SHARDS) if self._ownership.owns(shard)],
            "view": sorted(self._ownership.present()),
        }
        if belief != self._before or at - self._last > LATE:
            tell(at=at, until=self._last, **belief)
        self._before = belief
        self._last = at


def tell(**line: typing.Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")  # In one piece: the log goes to the same file.
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("group")
    parser.add_argument("host")
    parser.add_argument("--timing", type=float, nargs=3, metavar=("HEARTBEAT", "TIMEOUT", "POLL"))
    parsed = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    membership = Membership(
        Group(parsed.url, parsed.group, parsed.host),
        LocalMember(parsed.host),
        shard_count=SHARDS,
        timing=MembershipTiming(*parsed.timing),
    )
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    signal.signal(signal.SIGUSR1, lambda *_: membership.set_state(DRAINING))
    signal.signal(signal.SIGUSR2, lambda *_: membership.set_state(ACTIVE))
    witness = Witness(membership, parsed.host)
    membership.start()
    while not ended:
        witness.look()
        time.sleep(LOOK)
    began = time.monotonic()
    membership.stop()
    witness.look()
    tell(stopped=time.monotonic() - began)


if __name__ == "__main__":
    main()
