"""The rules that a run must obey, as pure functions of the journal of the ledger and the recorded history.

Each returns the violations, in words.
"""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence

from chaos.history import (
    Event,
    Expectation,
    FinalCopy,
    FinalResource,
    FinalStack,
    History,
    Kept,
    Outcome,
    Read,
    Signal,
    Unsettled,
    Write,
)
from chaos.ledger import Entry

BEGUN = {"create", "update", "delete", "suspend", "resume", "check", "snapshot", "restore"}
"""Requests that begin an action, of which the stack has an event."""
ACTIONS = {
    "create": {"CREATE", "ROLLBACK"},
    "update": {"UPDATE", "ROLLBACK", "CREATE"},
    "delete": {"DELETE", "GONE"},
    "suspend": {"SUSPEND"},
    "resume": {"RESUME"},
    "check": {"CHECK"},
    "snapshot": {"SNAPSHOT"},
    "restore": {"RESTORE", "ROLLBACK"},
    "cancel": {"ROLLBACK", "CREATE", "UPDATE", "SUSPEND", "RESUME", "CHECK", "SNAPSHOT", "RESTORE"},
}
"""The actions that a stack may show after a request, until the next one."""
SURE_OF_GOAL = {"create": {"CREATE", "UPDATE"}, "update": {"CREATE", "UPDATE"}, "restore": {"RESTORE"}}
"""The actions under which a stack shows the goal of a request."""
TIMED_OUT = "timed out"


def violations(history: History, journal: Sequence[Entry]) -> list[str]:
    """Return the violations of all rules."""
    writes = history.of(Write)
    events = history.of(Event)
    expectations = history.of(Expectation)
    return [
        *(record.text for record in history.of(Unsettled)),
        *no_error_is_unexpected(writes),
        *accepted_requests_are_there(writes, events),
        *stacks_end(history.of(FinalStack), expectations),
        *nothing_is_leaked_or_doubled(journal, history.of(FinalResource), expectations),
        *snapshots_have_their_copies(journal, history.of(FinalCopy)),
        *steps_are_in_order(journal),
        *timeouts_strike_once(writes, events),
        *reads_never_go_back(writes, history.of(Read)),
        *signals_are_kept(history.of(Signal), history.of(Kept)),
    ]


def by_stack(records: Iterable[Write]) -> Mapping[str, list[Write]]:
    """Return the requests of each stack, in the order in which its one client has sent them."""
    groups: dict[str, list[Write]] = collections.defaultdict(list)
    for record in records:
        if record.stack:
            groups[record.stack].append(record)
    return groups


def no_error_is_unexpected(writes: Sequence[Write]) -> list[str]:
    """No request is answered by 500: for each fault there is an answer of its own."""
    return [
        f"{write.kind} of {write.name} is answered by 500: {write.text}"
        for write in writes
        if write.status == 500
    ]


def accepted_requests_are_there(writes: Sequence[Write], events: Sequence[Event]) -> list[str]:
    """Each accepted request has begun an action, and no other action of its kind was begun."""
    begun = collections.Counter(
        (event.stack, event.action) for event in events if event.of_stack and event.status == "IN_PROGRESS"
    )
    wrong = []
    for stack, requests in by_stack(writes).items():
        for kind in sorted(BEGUN):
            of_kind = [request for request in requests if request.kind == kind]
            least = sum(request.outcome == Outcome.ACCEPTED for request in of_kind)
            most = least + sum(request.outcome == Outcome.UNKNOWN for request in of_kind)
            count = begun[stack, kind.upper()]
            if not least <= count <= most and not (kind == "delete" and count == min(least, 1)):
                wrong.append(f"{stack}: {kind} was accepted {least} to {most} times, and begun {count} times")
    return wrong


def stacks_end(stacks: Sequence[FinalStack], expectations: Sequence[Expectation]) -> list[str]:
    """Each stack has ended, complete and where its client has left it."""
    wrong = [
        f"{stack.id} ({stack.name}) is {stack.action}_{stack.status}: {stack.reason}"
        for stack in stacks
        if stack.status != "COMPLETE"
    ]
    living = {stack.id for stack in stacks if not stack.is_deleted and stack.id == stack.root}
    expected = {item.stack for item in expectations if item.values is not None}
    wrong += [f"{stack} is gone, and was not deleted" for stack in sorted(expected - living)]
    wrong += [f"{stack} is there, and was deleted" for stack in sorted(living - expected)]
    return wrong


def nothing_is_leaked_or_doubled(
    journal: Sequence[Entry],
    resources: Sequence[FinalResource],
    expectations: Sequence[Expectation],
) -> list[str]:
    """Each item belongs to one resource, was made once, and has the value of the last goal."""
    wrong = []
    living: dict[str, Entry] = {}
    owners: dict[int, str] = {}
    for entry in journal:
        if entry.effect == "remove":
            owners.pop(living.pop(entry.item).body["row"], None)
        elif entry.effect in ("make", "change"):
            living[entry.item] = entry
            before = owners.setdefault(entry.body["row"], entry.item)
            if before != entry.item:
                wrong.append(f"resource {entry.body['row']} has made {before} and {entry.item}")
    counts = collections.Counter(resource.item for resource in resources if resource.item)
    wrong += [
        f"{item} ({living[item].body['label']}) is leaked" for item in sorted(set(living) - set(counts))
    ]
    wrong += [f"{item} is gone, and a resource has it" for item in sorted(set(counts) - set(living))]
    wrong += [f"{item} belongs to {count} resources" for item, count in counts.items() if count > 1]
    expected = collections.Counter(
        item for expectation in expectations for item in (expectation.values or {}).items()
    )
    values = collections.Counter((entry.body["label"], entry.body["value"]) for entry in living.values())
    wrong += [f"{label} with the value {value} is missing" for label, value in sorted(expected - values)]
    wrong += [f"{label} with the value {value} is too much" for label, value in sorted(values - expected)]
    return wrong


def snapshots_have_their_copies(journal: Sequence[Entry], copies: Sequence[FinalCopy]) -> list[str]:
    """Each copy belongs to a snapshot that is there, and each complete one has its copies."""
    living = set()
    for entry in journal:
        if entry.effect == "copy":
            living.add(entry.item)
        elif entry.effect == "drop":
            living.discard(entry.item)
    owners = collections.Counter(row.copy for row in copies)
    wrong = [f"{copy} is leaked" for copy in sorted(living - set(owners))]
    wrong += [f"{copy} belongs to {count} snapshots" for copy, count in owners.items() if count > 1]
    wrong += [
        f"{row.copy} of {row.name} is gone, and snapshot {row.snapshot} has it"
        for row in copies
        if row.status == "COMPLETE" and row.copy not in living
    ]
    return wrong


def steps_are_in_order(journal: Sequence[Entry]) -> list[str]:
    """No item is made before its inputs are ready, and none is removed before those that need it."""
    wrong = []
    ready: set[str] = set()
    inputs: dict[str, set[str]] = {}
    for entry in journal:
        if entry.effect == "ready":
            ready.add(entry.item)
        elif entry.effect == "remove":
            ready.discard(entry.item)
            inputs.pop(entry.item, None)
            users = sorted(item for item, needs in inputs.items() if entry.item in needs)
            wrong += [f"{entry.number}: {entry.item} is removed before {item}" for item in users]
        elif entry.effect in ("make", "change"):
            before = inputs.get(entry.item, set())
            inputs[entry.item] = set(entry.body["inputs"])
            early = sorted(inputs[entry.item] - before - ready)
            wrong += [f"{entry.number}: {entry.item} has {entry.effect} before {item}" for item in early]
    return wrong


def timeouts_strike_once(writes: Sequence[Write], events: Sequence[Event]) -> list[str]:
    """No action times out early, and each one once at most."""
    requests = by_stack(writes)
    of_stacks: dict[str, list[Event]] = collections.defaultdict(list)
    for event in events:
        if event.of_stack:
            of_stacks[event.stack].append(event)
    wrong = []
    for stack, entries in of_stacks.items():
        has_struck = False
        for event in entries:
            if event.status == "IN_PROGRESS":
                has_struck = False
            elif event.status == "FAILED" and TIMED_OUT in event.reason:
                if has_struck:
                    wrong.append(f"{stack} times out twice")
                has_struck = True
                wrong += _early(stack, event, requests.get(stack, []))
    return wrong


def _early(stack: str, event: Event, requests: Sequence[Write]) -> list[str]:
    """Return the violation of a timeout for which no request is old enough."""
    limits = []
    for request in requests:
        if request.timeout is None or request.began > event.at or request.outcome == Outcome.REFUSED:
            continue
        if request.outcome == Outcome.ACCEPTED:
            limits.clear()
        limits.append(request.began + request.timeout)
    if not limits or event.at >= min(limits):
        return []
    return [f"{stack} times out {min(limits) - event.at:.1f} s early"]


def reads_never_go_back(writes: Sequence[Write], reads: Sequence[Read]) -> list[str]:
    """No answer shows a stack as it was before another answer, or before an accepted request.

    The requests of a stack have an order, for it has one client.  Each read shows the effect of one of them:
    at least that of the last request that was accepted before the read began, and at least that of the
    request whose effect an earlier read has shown.  Requests without an answer may take effect at any time.
    """
    requests = by_stack(write for write in writes if write.outcome != Outcome.REFUSED)
    of_stack: dict[str, list[Read]] = collections.defaultdict(list)
    for read in reads:
        of_stack[read.stack].append(read)
    wrong: list[str] = []
    for stack, entries in of_stack.items():
        effects = [item for item in requests.get(stack, []) if item.kind in ACTIONS]
        wrong += _going_back(stack, effects, sorted(entries, key=lambda read: read.began))
        wrong += _starting_again(stack, effects, sorted(entries, key=lambda read: read.began))
    return wrong


def _going_back(stack: str, effects: Sequence[Write], reads: Sequence[Read]) -> list[str]:
    wrong = []
    floors: list[tuple[float, int]] = []
    for read in reads:
        floor = max((index for ended, index in floors if ended < read.began), default=0)
        for index, write in enumerate(effects):
            if write.outcome == Outcome.ACCEPTED and write.ended < read.began:
                floor = max(floor, index)
        candidates = [
            index
            for index, write in enumerate(effects)
            if write.began <= read.ended
            and _shows(read, write)
            and (index >= floor or write.outcome == Outcome.UNKNOWN)
        ]
        if not candidates:
            wrong.append(
                f"{stack} is shown by {read.api} as {read.action}_{read.status} of goal {read.goal} at "
                f"{read.began:.3f}, after {effects[floor].kind if effects else 'nothing'} of goal "
                f"{effects[floor].goal if effects else None}"
            )
        elif all(effects[index].outcome == Outcome.ACCEPTED for index in candidates):
            floors.append((read.ended, min(candidates)))
    return wrong


def _shows(read: Read, write: Write) -> bool:
    """Return whether a read may show the effect of a request."""
    if read.action not in ACTIONS[write.kind]:
        return False
    is_goal_sure = read.action in SURE_OF_GOAL.get(write.kind, ())
    return not is_goal_sure or read.goal is None or read.goal == write.goal


def _starting_again(stack: str, effects: Sequence[Write], reads: Sequence[Read]) -> list[str]:
    """Return the violations of actions that have ended and are in progress again, without a request."""
    wrong = []
    for before, after in itertools.pairwise(reads):
        has_ended = before.status != "IN_PROGRESS" and after.status == "IN_PROGRESS"
        if not has_ended or before.action != after.action or before.ended >= after.began:
            continue
        causes = [
            write
            for write in effects
            if write.began <= after.ended
            and (write.outcome == Outcome.UNKNOWN or write.ended >= before.began)
        ]
        if not causes:
            wrong.append(f"{stack} has ended {before.action}, and is in progress again at {after.began:.3f}")
    return wrong


def signals_are_kept(signals: Sequence[Signal], reads: Sequence[Kept]) -> list[str]:
    """Each answer has all signals that were accepted before it, and none that nobody has sent.

    A signal without an answer may reach the target of a later one: the deployment has another config then.
    """
    of_stack: dict[str, list[Signal]] = collections.defaultdict(list)
    for signal in signals:
        if signal.outcome != Outcome.REFUSED:
            of_stack[signal.stack].append(signal)
    wrong = []
    for read in reads:
        values = set(read.values)
        before = [signal for signal in of_stack[read.stack] if signal.began <= read.ended]
        wrong += [
            f"{read.target} of {read.stack} has {value} at {read.began:.3f}, which nobody has sent"
            for value in sorted(values - {signal.value for signal in before})
        ]
        stray = {signal.value for signal in before if signal.target != read.target}
        lost = {
            signal.value
            for signal in before
            if signal.target == read.target
            and signal.outcome == Outcome.ACCEPTED
            and signal.ended < read.began
        }
        if not values & stray:
            wrong += [
                f"{read.target} of {read.stack} lacks {value} at {read.began:.3f}, which was accepted"
                for value in sorted(lost - values)
            ]
    return wrong
