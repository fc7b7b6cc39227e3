"""Stacks of the canary: requests, the checks of their answers, and the latencies."""

import collections
import contextlib
import dataclasses
import itertools
import json
import re
import sys
import threading
import time
import typing
from collections.abc import Sequence

from keystoneauth1.exceptions import ClientException
from keystoneauth1.session import Session
from stoker.observe.instants import instant

Json = typing.Any
SHOWN = 50
"""Wrong answers that the report describes; it counts all."""
TEXT = 300
"""Characters of an answer that a report shows."""
TOLERANCE = 5.0
"""Seconds by which an event may be older than the one before it.

Events have the order in which they were stored.  The time of each is read before that, so transactions at
the same moment may store the later one first.
"""
TOO_MANY = 429
GONE = (404, 410)


class Wrong(Exception):
    """An answer that contradicts what was requested, or what was answered before."""


class Stopped(Exception):
    """The operator ends the run."""


class Tally:
    """Counts and latencies of all users.  Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
        self.wrong: list[str] = []
        self.wrong_count = 0
        self.scenarios: collections.Counter[str] = collections.Counter()
        self.throttled = 0

    def add(self, group: str, name: str, seconds: float) -> None:
        """Add a latency; the groups are "requests" and "actions"."""
        with self._lock:
            self._seconds[group, name].append(seconds)

    def complete(self, scenario: str) -> None:
        """Count a scenario that has ended well."""
        with self._lock:
            self.scenarios[scenario] += 1

    def throttle(self) -> None:
        """Count a request that the API has put off."""
        with self._lock:
            self.throttled += 1

    def accuse(self, text: str) -> None:
        """Store a wrong answer, and print it at once."""
        with self._lock:
            self.wrong_count += 1
            if len(self.wrong) < SHOWN:
                self.wrong.append(text)
        print(f"wrong: {text}", file=sys.stderr, flush=True)

    def latencies(self, group: str) -> dict[str, dict[str, float]]:
        """Return count, median, 99th percentile and maximum in seconds, by name."""
        with self._lock:
            samples = {name: sorted(values) for (key, name), values in self._seconds.items() if key == group}
        return {
            name: {
                "count": len(values),
                "p50": round(percentile(values, 0.5), 4),
                "p99": round(percentile(values, 0.99), 4),
                "max": round(values[-1], 4),
            }
            for name, values in sorted(samples.items())
        }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of sorted values is, the nearest one of them."""
    return values[min(len(values) - 1, int(share * len(values)))]


@dataclasses.dataclass(frozen=True)
class Answer:
    """The status of an answer, and its body; None: it has none, or no JSON."""

    status: int
    body: Json


class Api:
    """The Orchestration API for one project.

    :param root: the address with version and project.
    """

    def __init__(self, session: Session, root: str, tally: Tally) -> None:
        self._session = session
        self._root = root
        self.tally = tally

    def request(self, kind: str, method: str, path: str, body: Json = None) -> Answer:
        """Send a request, again where the API puts it off, and return the answer.

        :param kind: the name under which its latency counts.
        :raises Wrong: there is no answer, or an error of the server.
        """
        while True:
            began = time.monotonic()
            try:
                response = self._session.request(
                    f"{self._root}{path}", method, json=body, raise_exc=False, redirect=False, log=False
                )
            except ClientException as error:
                raise Wrong(f"no answer to {method} {path}: {str(error)[:TEXT]}") from error
            self.tally.add("requests", kind, time.monotonic() - began)
            if response.status_code != TOO_MANY:
                break
            self.tally.throttle()
            time.sleep(float(response.headers.get("Retry-After") or 1))
        if response.status_code >= 500:
            raise Wrong(f"{method} {path} is answered by {response.status_code}: {response.text[:TEXT]}")
        return Answer(response.status_code, parsed(response.text))

    def accepted(self, kind: str, method: str, path: str, body: Json = None) -> Json:
        """Send a request that must be accepted; return the body of the answer.

        :raises Wrong: it is refused.
        """
        answer = self.request(kind, method, path, body)
        if answer.status >= 300:
            raise Wrong(f"{method} {path} is refused by {answer.status}: {json.dumps(answer.body)[:TEXT]}")
        return answer.body


def parsed(text: str) -> Json:
    """Return the JSON of a text; None: it is none."""
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return None


class Stack:
    """A stack of one user, with all that was answered about it so far.

    :param api: the API.
    :param name: a name that no other stack has.
    """

    def __init__(self, api: Api, name: str, *, poll: float, patience: float, stop: threading.Event) -> None:
        self._api = api
        self.name = name
        self._poll = poll
        self._patience = patience
        self._stop = stop
        self._id = ""
        self._facts: dict[str, str] = {}
        self._events: list[str] = []

    @property
    def path(self) -> str:
        """Return the stack's path below the project's."""
        return f"/stacks/{self.name}/{self._id}"

    def create(self, body: Json, *, rollback: bool = False) -> None:
        """Create the stack; see `Wrong`."""
        fields = {"stack_name": self.name, "template": body, "disable_rollback": not rollback}
        answer = self._api.accepted("create", "POST", "/stacks", {**fields, "timeout_mins": 30})
        self._id = str(answer["stack"]["id"])

    def update(self, body: Json) -> None:
        """Update the stack with a template."""
        self._api.accepted("update", "PUT", self.path, {"template": body, "disable_rollback": True})

    def cancel_update(self) -> None:
        """Cancel the update in progress, and roll it back."""
        self._api.accepted("cancel", "POST", f"{self.path}/actions", {"cancel_update": None})

    def ends(self, action: str, *statuses: str) -> None:
        """Wait until the stack has the last of these statuses, through the others in this order.

        :param action: the name under which the time to the end counts.
        :raises Wrong: another status is answered, an earlier one after a later one, or no end in time.
        """
        began = time.monotonic()
        position = 0
        while True:
            status = self._show()["stack_status"]
            if status not in statuses[position:]:
                after = f" after {statuses[position]}" if status in statuses else ""
                raise Wrong(f"{self._named} is {status}{after}, it must be {statuses[-1]} in the end")
            position = statuses.index(status)
            if position == len(statuses) - 1:
                break
            self._wait(began, f"{self._named} is {status}")
        self._api.tally.add("actions", action, time.monotonic() - began)
        again = self._show()["stack_status"]
        if again != statuses[-1]:
            raise Wrong(f"{self._named} is {again} after it was {statuses[-1]}, without a request")
        self._read_events()

    def has_outputs(self, word: str, members: int) -> None:
        """Check the outputs that follow from the template's arguments.

        :raises Wrong: an output has another value, or the secret has changed.
        """
        outputs = {item["output_key"]: item.get("output_value") for item in self._show()["outputs"]}
        expected = {"word": word, "members": [f"{word}-{number}" for number in range(members)]}
        values = {name: outputs.get(name) for name in expected}
        if values != expected:
            raise Wrong(f"{self._named} has the outputs {values}, they must be {expected}")
        secret = str(outputs.get("secret"))
        if not re.fullmatch("[A-Za-z0-9]{12}", secret):
            raise Wrong(f"{self._named} has a secret that is no word of 12 characters")
        self._stays("secret", secret, words="secret than before")

    def delete(self) -> None:
        """Delete the stack, and check that it is gone.

        :raises Wrong: it is not gone in time, or is listed after it was gone.
        """
        self._api.accepted("delete", "DELETE", self.path)
        began = time.monotonic()
        while (status := self._status_or_gone()) != "DELETE_COMPLETE":
            if status != "DELETE_IN_PROGRESS":
                raise Wrong(f"{self._named} is {status} after its deletion was accepted")
            self._wait(began, f"{self._named} is {status}")
        self._api.tally.add("actions", "delete", time.monotonic() - began)
        self._is_gone()

    def remove(self) -> None:
        """Delete the stack if it exists, whatever its state, also when its id was never answered.

        :raises Wrong: it cannot be deleted.
        """
        began = time.monotonic()
        while self._api.request("lookup", "GET", f"/stacks/{self.name}").status not in GONE:
            self._api.request("delete", "DELETE", f"/stacks/{self.name}/{self._identity()}")
            if time.monotonic() - began > self._patience:
                raise Wrong(f"{self._named} is not deleted after {self._patience:g} s")
            time.sleep(self._poll)

    def _identity(self) -> str:
        if not self._id:
            listed = self._api.accepted("list", "GET", f"/stacks?name={self.name}")["stacks"]
            self._id = next((str(item["id"]) for item in listed if item["stack_name"] == self.name), "")
        return self._id

    @property
    def _named(self) -> str:
        return f"stack {self.name} ({self._id})"

    def _show(self) -> Json:
        """Return the stack as it is shown, if that fits what was shown before."""
        stack = self._api.accepted("show", "GET", self.path)["stack"]
        for name in ("id", "stack_name", "creation_time"):
            self._stays(name, str(stack[name]))
        return stack

    def _stays(self, name: str, value: str, *, words: str = "") -> None:
        """Check that a fact is as it was before.

        :param words: the words for the fact in the error, which hide its value; "": name and values.
        """
        before = self._facts.setdefault(name, value)
        if value != before:
            difference = f"another {words}" if words else f"{name} {value}, before it was {before}"
            raise Wrong(f"{self._named} has {difference}")

    def _wait(self, began: float, state: str) -> None:
        if self._stop.wait(self._poll):
            raise Stopped
        if time.monotonic() - began > self._patience:
            raise Wrong(f"{state} for {self._patience:g} s, longer than the patience")

    def _status_or_gone(self) -> str:
        answer = self._api.request("show", "GET", self.path)
        if answer.status in GONE:
            return "DELETE_COMPLETE"
        return str(answer.body["stack"]["stack_status"])

    def _is_gone(self) -> None:
        if (status := self._api.request("lookup", "GET", f"/stacks/{self.name}").status) not in GONE:
            raise Wrong(f"{self._named} is deleted, but its name is answered by {status}")
        listed = self._api.accepted("list", "GET", f"/stacks?name={self.name}")["stacks"]
        if any(item["id"] == self._id for item in listed):
            raise Wrong(f"{self._named} is deleted, but it is listed")

    def _read_events(self) -> None:
        """Check the events: in order, each beginning before its end, and all that were read before.

        :raises Wrong: they are not.
        """
        path = f"{self.path}/events?sort_dir=asc&limit=1000"
        events = self._api.accepted("events", "GET", path)["events"]
        times = [instant(event["event_time"]) for event in events]
        if any(later < earlier - TOLERANCE for earlier, later in itertools.pairwise(times)):
            raise Wrong(f"the events of {self._named} are not in the order of their times")
        ids = [str(event["id"]) for event in events]
        if ids[: len(self._events)] != self._events:
            raise Wrong(
                f"{len(self._events)} events of {self._named} were read before, and are not the first"
            )
        self._events = ids
        begun = set()
        for event in events:
            action, _, status = str(event["resource_status"]).partition("_")
            key = (event["resource_name"], action)
            if status == "IN_PROGRESS":
                begun.add(key)
            elif status == "COMPLETE" and key not in begun:
                raise Wrong(f"{key[0]} of {self._named} has {action} COMPLETE before IN_PROGRESS")
