"""How evenly the ring deals out shards, how little moves, and the cost, compared with tooz's HashRing.

Usage: python benchmarks/ring.py

First table, 4096 shards on 3 to 1,000 members of equal weight, our ring beside tooz.hashring.HashRing (32
points for each member, its default) asked for each shard:
    max/fair    shards of the fullest member / 4096 per member.  Ours is bound to ceil(1.05 x fair share).
    moved       shards that change hands when one member leaves / shards it had: the mean of several leavers,
                and the worst, whose share counts as no less than the fair one.  1.00: nothing else moved.
    build       seconds to make the map of all shards from the members, the fastest of several; the target is
                0.2 s at 1,000 members.
    lookup      microseconds to ask whose a stack is: ours hashes the id and looks it up in the map; tooz's
                Partitioner hashes the id and asks the ring, as belongs_to_member does.

Second table, members leave one after the other: where ceil(1.05 x fair share) passes a whole number, all that
were full may take one shard more, and more move at that leave than at others.  `moved` is the mean of all
these leaves in fair shares, that is the cost of a long run.

Third part, 10,000,000 stacks with random ids on 1,000 conductors: stacks of the fullest conductor / mean, and
the stacks that change hands when one conductor leaves.  The shards set a floor here: with 4,096 of them for
1,000 conductors some own 5 and some 3.  In a larger installation choose more when the database is made.
"""

import os
import statistics
import time
import typing
import uuid
from array import array
from collections.abc import Callable, Sequence

from stoker.ring.changes import plan
from stoker.ring.hashring import Member, View, assign, shard_of
from tooz.hashring import HashRing
from tooz.partitioner import Partitioner

SHARDS = 4096
SIZES = (3, 10, 100, 1000)
STACKS = 10_000_000
LEAVERS = 10


class Measured(typing.NamedTuple):
    """One cell of the first table."""

    fullest: float
    moved: float
    worst: float
    build: float
    lookup: float


def names(count: int) -> list[str]:
    """Hosts."""
    return [f"conductor-{number:04}" for number in range(count)]


def fastest(do: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of some runs."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        do()
        spent.append(time.perf_counter() - began)
    return min(spent)


def our_map(hosts: Sequence[str], shards: int = SHARDS) -> Sequence[str]:
    """Shard -> host."""
    return assign(View.of([Member(host, "1") for host in hosts], shards)).hosts


def tooz_map(hosts: Sequence[str]) -> Sequence[str]:
    """The same by tooz's plain ring."""
    ring = HashRing(hosts)
    return [next(iter(ring.get_nodes(b"%d" % shard))) for shard in range(SHARDS)]


def measure(hosts: Sequence[str], make: Callable[[Sequence[str]], Sequence[str]], lookup: float) -> Measured:
    """Share, movement and cost of one kind of ring."""
    before = make(hosts)
    loads = dict.fromkeys(hosts, 0)
    for host in before:
        loads[host] += 1
    fair = SHARDS / len(hosts)
    moved = 0
    worst = 0.0
    had = 0
    for leaver in hosts[:: max(1, len(hosts) // LEAVERS)]:
        after = make([host for host in hosts if host != leaver])
        count = sum(1 for old, new in zip(before, after, strict=True) if old != new)
        moved += count
        had += loads[leaver]
        worst = max(worst, count / max(fair, loads[leaver]))
    return Measured(max(loads.values()) / fair, moved / had, worst, fastest(lambda: make(hosts), 3), lookup)


def our_lookup(hosts: Sequence[str]) -> float:
    """Seconds for each question."""
    owners = our_map(hosts)
    ids = [str(uuid.uuid4()) for _ in range(5000)]
    return fastest(lambda: [owners[shard_of(stack, SHARDS)] for stack in ids], 3) / len(ids)


def tooz_lookup(hosts: Sequence[str]) -> float:
    """Seconds for each question to a Partitioner that is made without its coordinator."""
    partitioner = Partitioner.__new__(Partitioner)
    partitioner.ring = HashRing(hosts)
    ids = [str(uuid.uuid4()) for _ in range(200 if len(hosts) > 100 else 2000)]
    host = hosts[0]
    return fastest(lambda: [partitioner.belongs_to_member(stack, host) for stack in ids], 3) / len(ids)


def compare() -> None:
    """The first table."""
    print("members  ring    max/fair   moved   worst   build s   lookup us")
    for count in SIZES:
        hosts = names(count)
        rows = (
            ("ours", measure(hosts, our_map, our_lookup(hosts))),
            ("tooz", measure(hosts, tooz_map, tooz_lookup(hosts))),
        )
        for name, row in rows:
            print(
                f"{count:7}  {name:6}{row.fullest:10.3f}{row.moved:8.2f}{row.worst:8.2f}"
                f"{row.build:10.3f}{row.lookup * 1e6:12.1f}"
            )


def shrink() -> None:
    """The second table."""
    print("\nleaving one by one    moved   most at one leave")
    for count, until in ((30, 1), (100, 70), (300, 270), (1000, 970)):
        ratios = []
        hosts = names(count)
        while len(hosts) > until:
            view, fewer = (
                View.of([Member(h, "1") for h in members], SHARDS) for members in (hosts, hosts[1:])
            )
            ratios.append(len(plan(view, fewer).moves) / (SHARDS / len(hosts)))
            hosts = hosts[1:]
        print(f"from {count:4} to {until:4}{statistics.mean(ratios):13.2f}{max(ratios):20.2f}")


def simulate() -> None:
    """The third part: ids are random, so random numbers stand for the hashes of all but the first 100,000."""
    hosts = names(1000)
    began = time.perf_counter()
    in_shard = array("q", bytes(8 * SHARDS))
    for _ in range(STACKS // 100):
        in_shard[shard_of(str(uuid.uuid4()), SHARDS)] += 1
    raw = array("H")
    raw.frombytes(os.urandom(2 * (STACKS - STACKS // 100)))
    for number in raw:
        in_shard[number % SHARDS] += 1
    before = our_map(hosts)
    after = our_map(hosts[1:])
    stacks = dict.fromkeys(hosts, 0)
    for shard, host in enumerate(before):
        stacks[host] += in_shard[shard]
    moved = sum(in_shard[shard] for shard in range(SHARDS) if before[shard] != after[shard])
    mean = STACKS / len(hosts)
    print(f"\n{STACKS:,} stacks on {len(hosts):,} conductors ({time.perf_counter() - began:.1f} s)")
    print(f"stacks of a shard: mean {STACKS / SHARDS:,.0f}, most {max(in_shard):,}")
    print(f"stacks of a conductor: mean {mean:,.0f}, most {max(stacks.values()):,}", end=" ")
    print(f"(max/mean {max(stacks.values()) / mean:.2f}), least {min(stacks.values()):,}")
    print(f"one leaves: it had {stacks[hosts[0]]:,}, {moved:,} move ({moved / STACKS:.2%} of all)")


if __name__ == "__main__":
    compare()
    shrink()
    simulate()
