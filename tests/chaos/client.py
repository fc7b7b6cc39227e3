"""Users in chaos: each drives one stack after the other, by chance, and records all answers."""

import random
import threading
import time
import typing
from collections.abc import Mapping, Sequence, Set

from chaos import cloudformation
from chaos.goals import DEPLOYS, HOLDS, WAITS, Goal, Goals
from chaos.guest import Guest
from chaos.history import History, Outcome, Read, Unsettled, Write
from chaos.http import Answer, Http

Json = typing.Any
ENDLESS_TIMEOUT = 60.0
"""Seconds after which a stack times out that never ends by itself: the least that the API allows."""
LONG = 1800.0
TEXT = 300
"""Characters that are kept of the answer to a request that was not accepted."""
GONE = "GONE"
TRAITS = {"plain": 64, "fails": 8, "endless": 5, HOLDS: 8, WAITS: 7, DEPLOYS: 8}
AMAZONS = 0.5
"""Share of the requests to CloudFormation's API, of those that have an equal there."""


class Stacks:
    """The stacks that readers know; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: list[str] = []

    def add(self, path: str) -> None:
        """Add the path of a stack."""
        with self._lock:
            self._paths.append(path)

    def recent(self, count: int) -> Sequence[str]:
        """Return the paths of the last stacks."""
        with self._lock:
            return self._paths[-count:]


def read_stack(http: Http, history: History, path: str) -> Read | None:
    """Read a stack and record the answer; None: there was none."""
    answer = http.request("GET", f"{path}?resolve_outputs=false")
    stack = path.rpartition("/")[2]
    if answer.status == 404:
        read = Read(stack, GONE, "COMPLETE", None, answer.began, answer.ended, answer.api)
    elif answer.status == 200:
        body = answer.body["stack"]
        action, _, status = str(body["stack_status"]).partition("_")
        is_gone = action == "DELETE" and status == "COMPLETE"
        # A creation that is rolled back has no goal.
        goal = int(body["parameters"].get("goal", 0)) or None
        action = GONE if is_gone else action
        read = Read(stack, action, status, goal, answer.began, answer.ended, answer.api)
    else:
        if answer.status == 500:
            history.add(Unsettled(f"a read is answered by 500: {str(answer.body)[:TEXT]}"))
        return None
    history.add(read)
    return read


class Client:
    """A user with a project of their own.  For one thread at a time.

    :ivar path: of the stack; "": there is none.
    :ivar goal: the goal that the stack was last asked for.
    """

    def __init__(
        self, number: int, urls: Mapping[str, str], history: History, stacks: Stacks, *, seed: int
    ) -> None:
        self.number = number
        self._random = random.Random(f"{seed} {number}")
        self._goals = Goals(self._random)
        self._http = Http(urls, random.Random(f"{seed} {number} api"))
        self._guest = Guest(self.project, self._http, history, random.Random(f"{seed} {number} guest"))
        self._history = history
        self._stacks = stacks
        self._count = 0
        self.name = ""
        self.path = ""
        self.goal: Goal | None = None
        self._known: dict[int, Goal] = {}
        self._snapshots: list[str] = []

    @property
    def project(self) -> str:
        """The path of the client's project."""
        return f"/v1/p{self.number}"

    def run(self, stop: threading.Event) -> None:
        """Drive stacks until it is to stop."""
        while not stop.wait(self._random.uniform(0.05, 0.4)):
            if not self.path:
                self.create(self._trait())
                continue
            read = self.read()
            if read is None:
                continue
            if read.action == GONE:
                self.forget()
            else:
                self._act(read)

    def _act(self, read: Read) -> None:
        weights = _weights(read, self.goal, self.traits, len(self._snapshots))
        [kind] = self._random.choices(list(weights), list(weights.values()))
        if kind == "update":
            self.update(self._trait())
        elif kind == "delete":
            self.delete()
        elif kind in ("snapshot", "restore", "forget"):
            self._act_on_snapshot(kind)
        elif kind == "help":
            self.help()
        elif kind != "wait":
            self.act(kind)

    @property
    def traits(self) -> Set[str]:
        """The traits of all goals of the stack: a rollback returns to an earlier one."""
        return {goal.trait for goal in self._known.values()}

    def help(self) -> None:
        """Do once all that the stack may wait for: continue at breakpoints, signal, apply configs."""
        if HOLDS in self.traits:
            self.act("continue")
        if WAITS in self.traits:
            self._guest.signal_handle(self.path)
        if DEPLOYS in self.traits:
            self._guest.apply(self.path)

    def _trait(self) -> str:
        return self._random.choices(list(TRAITS), list(TRAITS.values()))[0]

    def read(self) -> Read | None:
        """Read the stack; None: there is no answer."""
        return read_stack(self._http, self._history, self.path)

    def forget(self) -> None:
        """Leave the stack, and begin another one next."""
        self.path = ""
        self._known.clear()
        self._snapshots.clear()

    def create(self, trait: str) -> None:
        """Create a stack of a new name; search for it where there is no answer."""
        self._count += 1
        self.name = f"s{self.number}-{self._count}"
        self.goal = self._next_goal(trait)
        answer, stack = self._send_creation(self._request_body())
        if answer.outcome == Outcome.UNKNOWN:
            stack = self._found_by_name()
        self._record("create", answer, stack)
        if stack:
            self.path = f"{self.project}/stacks/{self.name}/{stack}"
            self._stacks.add(self.path)
        else:
            self._known.clear()

    def _next_goal(self, trait: str) -> Goal:
        goal = self._goals.next(self.name, trait=trait)
        self._known[goal.number] = goal
        return goal

    def _send_creation(self, body: Json) -> tuple[Answer, str]:
        """Ask for a stack; return the answer, and the id that it has."""
        if cloudformation.can_have(body) and self._is_amazons():
            answer = self._action(cloudformation.goal_query("CreateStack", self.name, body))
            if answer.outcome != Outcome.ACCEPTED:
                return answer, ""
            arn = answer.body["CreateStackResponse"]["CreateStackResult"]["StackId"]
            return answer, str(arn).rpartition("/")[2]
        answer = self._http.request("POST", f"{self.project}/stacks", {"stack_name": self.name, **body})
        return answer, str(answer.body["stack"]["id"]) if answer.outcome == Outcome.ACCEPTED else ""

    def _is_amazons(self) -> bool:
        return self._random.random() < AMAZONS

    def _action(self, query: dict[str, str]) -> Answer:
        """Ask CloudFormation's API for an action."""
        form = cloudformation.signed(query, self.project.rpartition("/")[2])
        return self._http.request("POST", "/v1/", form=form)

    def _found_by_name(self) -> str:
        """Return the id of the stack of the name; "": it is not known."""
        for _ in range(20):
            answer = self._http.request("GET", f"{self.project}/stacks/{self.name}")
            if answer.status in (301, 302, 307):
                return answer.location.partition("?")[0].rstrip("/").rpartition("/")[2]
            if answer.status == 404:
                return ""
            time.sleep(0.5)
        return ""

    def update(self, trait: str) -> Outcome:
        """Update the stack to a new goal."""
        before = self.goal
        self.goal = self._next_goal(trait)
        body = self._request_body()
        if cloudformation.can_have(body) and self._is_amazons():
            arn = cloudformation.arn_of(self.path)
            answer = self._action(cloudformation.goal_query("UpdateStack", arn, body))
        else:
            answer = self._http.request("PUT", self.path, body)
        self._record("update", answer)
        if answer.outcome == Outcome.REFUSED:
            self.goal = before
        return answer.outcome

    def delete(self) -> Outcome:
        """Delete the stack."""
        if self._is_amazons():
            answer = self._action(cloudformation.stack_query("DeleteStack", cloudformation.arn_of(self.path)))
        else:
            answer = self._http.request("DELETE", self.path)
        self._record("delete", answer)
        return answer.outcome

    def act(self, kind: str) -> Outcome:
        """Begin an action, cancel one, or continue at breakpoints."""
        if kind == "cancel" and self._is_amazons():
            arn = cloudformation.arn_of(self.path)
            answer = self._action(cloudformation.stack_query("CancelUpdateStack", arn))
        else:
            name = {"cancel": "cancel_update", "stay": "cancel_without_rollback"}.get(kind, kind)
            answer = self._http.request("POST", f"{self.path}/actions", {name: None})
        self._record("cancel" if kind == "stay" else kind, answer)
        return answer.outcome

    def _act_on_snapshot(self, kind: str) -> None:
        """Take a snapshot, restore one, or delete one."""
        if kind == "snapshot":
            answer = self._http.request("POST", f"{self.path}/snapshots", {})
            self._record(kind, answer)
            if answer.outcome == Outcome.ACCEPTED:
                self._snapshots.append(str(answer.body["id"]))
            return
        snapshot = self._random.choice(self._snapshots)
        path = f"{self.path}/snapshots/{snapshot}"
        if kind == "forget":
            answer = self._http.request("DELETE", path)
            if answer.outcome == Outcome.ACCEPTED or answer.status == 404:
                self._snapshots.remove(snapshot)
            self._record(kind, answer)
        else:
            self._restore(path)

    def _restore(self, path: str) -> None:
        """Restore a snapshot, which says itself which goal it keeps."""
        view = self._http.request("GET", path)
        if view.status != 200:
            return
        parameters = view.body["snapshot"]["data"]["environment"]["parameters"]
        before = self.goal
        # A creation that was rolled back has left nothing, not even a goal.
        self.goal = self._known.get(int(parameters.get("goal", 0)))
        answer = self._http.request("POST", f"{path}/restore")
        self._record("restore", answer)
        if answer.outcome == Outcome.REFUSED:
            self.goal = before

    def _request_body(self) -> Json:
        assert self.goal is not None
        return {
            **self.goal.body,
            "timeout_mins": int(self._timeout() / 60),
            "disable_rollback": self._random.random() < 0.8,
        }

    def _timeout(self) -> float:
        return ENDLESS_TIMEOUT if self.goal is not None and self.goal.trait == "endless" else LONG

    def _record(self, kind: str, answer: Answer, stack: str | None = None) -> None:
        write = Write(
            client=self.number,
            stack=self.path.rpartition("/")[2] if stack is None else stack,
            name=self.name,
            kind=kind,
            goal=self.goal.number if self.goal is not None else 0,
            began=answer.began,
            ended=answer.ended,
            outcome=answer.outcome,
            status=answer.status,
            text="" if answer.outcome == Outcome.ACCEPTED else str(answer.body)[:TEXT],
            timeout=self._timeout() if kind in ("create", "update") else None,
        )
        self._history.add(write)


def _weights(read: Read, goal: Goal | None, traits: Set[str], snapshots: int) -> dict[str, int]:
    """Return the requests that make sense for a stack, and how likely each is.

    :param traits: the traits of all of its goals.
    :param snapshots: how many it has.
    """
    restore = {"restore": 2, "forget": 1} if snapshots else {}
    if read.status == "IN_PROGRESS":
        weights = {"wait": 60, "update": 4, "cancel": 2, "stay": 2, "delete": 2}
        if goal is not None and goal.trait == "endless":
            weights = {"wait": 200, "update": 1, "delete": 1}
        if traits & {HOLDS, WAITS, DEPLOYS}:
            weights["help"] = 15
        return weights
    if read.status == "FAILED":
        return {"update": 6, "delete": 2, "check": 1, **restore}
    if read.action == "SUSPEND":
        return {"resume": 6, "delete": 1}
    return {"update": 6, "suspend": 2, "check": 1, "snapshot": 2, "delete": 2, **restore}
