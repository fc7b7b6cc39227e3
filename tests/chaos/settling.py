"""The end of a run: without faults each client brings its stack to a last goal, or deletes it."""

import concurrent.futures
import time
from collections.abc import Callable, Sequence

from chaos.client import GONE, Client
from chaos.goals import DEPLOYS
from chaos.history import Expectation, History, Outcome, Read, Unsettled
from chaos.http import Http
from harness.waiting import wait_for

WITHIN = 240.0
"""Seconds for each wait; more on a machine that has more to do than cores."""
PAUSE = 0.3


class BadEnd(Exception):
    """A stack has ended otherwise than it must without faults; the text says how."""


def settle(clients: Sequence[Client], http: Http, history: History) -> None:
    """Bring all stacks to their ends; record the stacks that are left, and what did not end."""
    expectations: list[Expectation] = []
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        for future in [pool.submit(_settle, client) for client in clients]:
            try:
                expectations.append(future.result())
            except (BadEnd, TimeoutError) as error:
                history.add(Unsettled(str(error)))
    history.add(*expectations)
    remaining = {item.stack for item in expectations if item.values is not None}
    for client in clients:
        try:
            sweep(http, client.project, remaining)
        except TimeoutError as error:
            history.add(Unsettled(str(error)))


def _settle(client: Client) -> Expectation:
    """Bring a client's stack to a last goal; delete it where the client's number is odd."""
    stack = client.path.rpartition("/")[2]
    if not client.path or _ended(client).action == GONE:
        client.forget()
        _insist(lambda: _created(client), f"{client.name} is created")
        stack = client.path.rpartition("/")[2]
        _ended(client)
    if client.number % 2:
        _insist(lambda: client.delete() == Outcome.ACCEPTED or _ended(client).action == GONE, "deleted")
        if (last := _ended(client)).action != GONE:
            raise BadEnd(f"{client.name} ({stack}) is {last.action}_{last.status} after its deletion")
        return Expectation(stack, None)
    if _ended(client).action == "SUSPEND":
        _insist(lambda: client.act("resume") == Outcome.ACCEPTED, f"{client.name} is resumed")
        _ended(client)
    trait = DEPLOYS if client.number else "plain"
    _insist(lambda: client.update(trait) == Outcome.ACCEPTED, f"{client.name} is updated")
    last = _ended(client)
    if last.status != "COMPLETE":
        raise BadEnd(f"{client.name} ({stack}) is {last.action}_{last.status} after its last update")
    assert client.goal is not None
    return Expectation(stack, client.goal.values)


def _created(client: Client) -> bool:
    client.create("plain")
    return bool(client.path)


def _insist(act: Callable[[], bool], what_for: str) -> None:
    wait_for(act, WITHIN, lambda: f"no request is accepted: {what_for}", pause=PAUSE)


def _ended(client: Client) -> Read:
    """Wait until the stack's action has ended, and help it where it waits for its user; the last read."""
    last: list[Read] = []

    def has_ended() -> bool:
        read = client.read()
        if read is None:
            return False
        last[:] = [read]
        if read.status == "IN_PROGRESS":
            client.help()
        return read.status != "IN_PROGRESS"

    wait_for(has_ended, WITHIN, lambda: f"{client.name} ({client.path}) has not ended: {last}", pause=PAUSE)
    return last[0]


def sweep(http: Http, project: str, remaining: set[str]) -> None:
    """Delete the stacks of a project that no client knows: their creation was not answered."""
    began = time.time()

    def unknown() -> list[str]:
        answer = http.request("GET", f"{project}/stacks")
        if answer.status != 200:
            return [f"the list is answered by {answer.status}"]
        rows = [row for row in answer.body["stacks"] if row["id"] not in remaining]
        for row in rows:
            if row["stack_status"] != "DELETE_IN_PROGRESS":
                http.request("DELETE", f"{project}/stacks/{row['stack_name']}/{row['id']}")
        return [f"{row['stack_name']} ({row['id']}) is {row['stack_status']}" for row in rows]

    wait_for(
        lambda: not unknown(), WITHIN, lambda: f"after {time.time() - began:.0f} s: {unknown()}", pause=1.0
    )
