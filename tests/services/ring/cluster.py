"""Members of one group as processes, and what they believed when."""

import contextlib
import json
import pathlib
import signal
import time
import typing
import uuid
from collections.abc import Iterator, Sequence

from harness.processes import Process
from harness.programs import Program
from harness.waiting import wait_for
from stoker.ring.hashring import Member as RingMember
from stoker.ring.hashring import View, assign

PROGRAM = pathlib.Path(__file__).with_name("member.py")
SHARDS = 64
Json = typing.Any


class Owned(typing.NamedTuple):
    """A span of time in which a process believed to own shards."""

    host: str
    since: float
    until: float
    shards: frozenset[int]


class Member:
    """One process; several of one host are possible."""

    def __init__(self, host: str, process: Process) -> None:
        self.host = host
        self.process = process
        self.killed: float | None = None

    def lines(self) -> list[Json]:
        """Return the lines that it has printed so far."""
        text = self.process.text()
        return [
            json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines() if line.startswith("{")
        ]

    def beliefs(self) -> list[Json]:
        return [line for line in self.lines() if "at" in line]

    def now(self) -> Json:
        """Return the member's view."""
        return (self.beliefs() or [{"member": None, "shards": [], "view": []}])[-1]

    def spans(self) -> Iterator[Owned]:
        """When it owned what."""
        beliefs = self.beliefs()
        end = self.killed or time.monotonic()
        for belief, after in zip(beliefs, [*beliefs[1:], {"until": end}], strict=True):
            if belief["shards"]:
                yield Owned(self.host, belief["at"], after["until"], frozenset(belief["shards"]))

    def incarnations(self) -> list[str]:
        """Its names so far, in order."""
        return list(dict.fromkeys(line["member"] for line in self.beliefs() if line["member"]))

    def kill(self) -> None:
        """kill -9"""
        self.killed = time.monotonic()
        self.process.kill()

    def leave(self) -> float:
        """SIGTERM, and wait; the seconds that Membership.stop took."""
        self.process.send(signal.SIGTERM)
        self.process.stop()
        return float(self.lines()[-1]["stopped"])


class Cluster:
    """Members of a group of its own."""

    def __init__(self, url: str, timing: tuple[float, float, float], directory: pathlib.Path) -> None:
        self.heartbeat, self.timeout, self.poll = timing
        self._url = url
        self._directory = directory
        self._group = uuid.uuid4().hex
        self.members: list[Member] = []

    def launch(self, host: str) -> Member:
        """Start a member; does not wait."""
        timing = [str(value) for value in (self.heartbeat, self.timeout, self.poll)]
        log = self._directory / f"{len(self.members)}-{host}.log"
        command = [PROGRAM, self._url, self._group, host, "--timing", *timing]
        member = Member(host, Program(command, log=log, env={"PYTHONWARNINGS": "ignore"}))
        self.members.append(member)
        return member

    def start(self, *hosts: str) -> list[Member]:
        """Start members and wait until they agree."""
        started = [self.launch(host) for host in hosts]
        self.wait_settled([m for m in self.members if m.process.is_running])
        return started

    def wait_settled(self, members: Sequence[Member], within: float = 60.0) -> float:
        """Wait until each of these has joined, all see just them, and each owns what that view gives it.

        A member learns of a view a moment before it learns what it owns in it.

        :returns: the moment from which it is so.
        """
        wait_for(lambda: self._settled(members), within, self.output)
        return max(float(member.now()["at"]) for member in members)

    @staticmethod
    def _settled(members: Sequence[Member]) -> bool:
        now = [member.now() for member in members]
        names = sorted(str(belief["member"]) for belief in now)
        if not all(belief["view"] == names for belief in now):
            return False
        ring = assign(View.of([RingMember(*name.split("/")) for name in names], SHARDS))
        return all(
            set(belief["shards"]) == ring.shards_of(m.host) for belief, m in zip(now, members, strict=True)
        )

    def overlap(self, since: float, until: float = float("inf")) -> list[tuple[Owned, Owned]]:
        """Pairs of spans between these moments in which two processes both believed to own a shard."""
        spans = [span for member in self.members for span in member.spans()]
        cut = [s._replace(since=max(s.since, since), until=min(s.until, until)) for s in spans]
        return [
            (a, b)
            for index, a in enumerate(cut)
            for b in cut[index + 1 :]
            if a.shards & b.shards and max(a.since, b.since) < min(a.until, b.until)
        ]

    def longest_overlap(self, since: float) -> float:
        """Seconds of the longest of these."""
        pairs = self.overlap(since)
        return max((min(a.until, b.until) - max(a.since, b.since) for a, b in pairs), default=0.0)

    def output(self) -> str:
        """All that the members printed."""
        return "\n".join(f"--- {m.process.log.name}\n{m.process.tail()}" for m in self.members)

    def close(self) -> None:
        """End all that still run."""
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.process.resume()
            member.process.kill()
