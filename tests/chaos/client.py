"""Users in chaos: each drives one stack after the other, by chance, and records all answers."""

import random
import threading
import time
import typing
from collections.abc import Mapping, Sequence

import requests
from chaos.goals import HOLDS, WAITS, Goal, Goals
from chaos.history import History, Outcome, Read, Unsettled, Write

Json = typing.Any
TIMEOUT = (3.0, 30.0)
"""Seconds for a connection, and for an answer."""
ENDLESS_TIMEOUT = 60.0
"""Seconds after which a stack times out that never ends by itself: the least that the API allows."""
LONG = 1800.0
TEXT = 300
"""Characters that are kept of the answer to a request that was not accepted."""
GONE = "GONE"
TRAITS = {"plain": 70, "fails": 8, "endless": 5, HOLDS: 9, WAITS: 8}


class Answer(typing.NamedTuple):
    """An answer, or that there was none.

    :ivar status: 0: the request was not sent; -1: it was sent, and not answered.
    """

    status: int
    body: Json
    began: float
    ended: float
    api: str
    location: str = ""

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of a request that changes something."""
        if 200 <= self.status < 400:
            return Outcome.ACCEPTED
        return Outcome.REFUSED if self.status == 0 or 400 <= self.status < 500 else Outcome.UNKNOWN


class Http:
    """Requests to any of an API's processes.  For one thread.

    :param urls: the roots of the processes by name.
    """

    def __init__(self, urls: Mapping[str, str], chosen_by: random.Random) -> None:
        self._urls = urls
        self._random = chosen_by
        self._session = requests.Session()

    def request(self, method: str, path: str, body: Json = None) -> Answer:
        """Send a request to a process that is chosen by chance."""
        api = self._random.choice(sorted(self._urls))
        began = time.time()
        try:
            response = self._session.request(
                method, self._urls[api] + path, json=body, timeout=TIMEOUT, allow_redirects=False
            )
            content = response.json() if response.content else None
        except requests.ConnectTimeout:
            return Answer(0, None, began, time.time(), api)
        except requests.RequestException as error:
            is_unsent = "NewConnectionError" in repr(error)
            return Answer(0 if is_unsent else -1, None, began, time.time(), api)
        location = response.headers.get("Location", "")
        return Answer(response.status_code, content, began, time.time(), api, location)


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
    """A user with a project of their own.  For one thread at a time."""

    def __init__(
        self, number: int, urls: Mapping[str, str], history: History, stacks: Stacks, *, seed: int
    ) -> None:
        self.number = number
        self._random = random.Random(f"{seed} {number}")
        self._goals = Goals(self._random)
        self._http = Http(urls, random.Random(f"{seed} {number} api"))
        self._history = history
        self._stacks = stacks
        self._count = 0
        self.name = ""
        self.path = ""
        self.goal: Goal | None = None

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
        for kind in self._random.choices(*_weights(read, self.goal)):
            if kind == "update":
                self.update(self._trait())
            elif kind == "delete":
                self.delete()
            elif kind != "wait":
                self.act(kind)

    def _trait(self) -> str:
        return self._random.choices(list(TRAITS), list(TRAITS.values()))[0]

    def read(self) -> Read | None:
        """Read the stack; None: there is no answer."""
        return read_stack(self._http, self._history, self.path)

    def forget(self) -> None:
        """Leave the stack, and begin another one next."""
        self.path = ""

    def create(self, trait: str) -> None:
        """Create a stack of a new name; search for it where there is no answer."""
        self._count += 1
        self.name = f"s{self.number}-{self._count}"
        self.goal = self._goals.next(self.name, trait=trait)
        body = {"stack_name": self.name, **self._request_body()}
        answer = self._http.request("POST", f"{self.project}/stacks", body)
        stack = ""
        if answer.outcome == Outcome.ACCEPTED:
            stack = str(answer.body["stack"]["id"])
        elif answer.outcome == Outcome.UNKNOWN:
            stack = self._found_by_name()
        self._record("create", answer, stack)
        if stack:
            self.path = f"{self.project}/stacks/{self.name}/{stack}"
            self._stacks.add(self.path)

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
        self.goal = self._goals.next(self.name, trait=trait)
        answer = self._http.request("PUT", self.path, self._request_body())
        self._record("update", answer)
        if answer.outcome == Outcome.REFUSED:
            self.goal = before
        return answer.outcome

    def delete(self) -> Outcome:
        """Delete the stack."""
        answer = self._http.request("DELETE", self.path)
        self._record("delete", answer)
        return answer.outcome

    def act(self, kind: str) -> Outcome:
        """Begin an action, cancel one, continue at breakpoints or signal."""
        if kind == "signal":
            path = f"{self.path}/resources/handle/signal"
            answer = self._http.request("POST", path, {"status": "SUCCESS", "id": "1", "data": "x"})
        else:
            name = {"cancel": "cancel_update", "stay": "cancel_without_rollback"}.get(kind, kind)
            answer = self._http.request("POST", f"{self.path}/actions", {name: None})
        self._record("cancel" if kind == "stay" else kind, answer)
        return answer.outcome

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


def _weights(read: Read, goal: Goal | None) -> tuple[Sequence[str], Sequence[int]]:
    """Return the requests that make sense for a stack, and how likely each is."""
    trait = goal.trait if goal is not None else ""
    if read.status == "IN_PROGRESS":
        weights = {"wait": 60, "update": 4, "cancel": 2, "stay": 2, "delete": 2}
        if trait == "endless":
            weights = {"wait": 200, "update": 1, "delete": 1}
        elif trait == HOLDS:
            weights["continue"] = 15
        elif trait == WAITS:
            weights["signal"] = 15
    elif read.status == "FAILED":
        weights = {"update": 6, "delete": 2, "check": 1}
    elif read.action == "SUSPEND":
        weights = {"resume": 6, "delete": 1}
    else:
        weights = {"update": 6, "suspend": 2, "check": 1, "delete": 2}
    return list(weights), list(weights.values())
