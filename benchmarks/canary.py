"""A canary for an installation: users create, change and delete stacks for an hour, and check the answers.

Usage:
    python benchmarks/canary.py http://stoker.example:8004/v1           with OS_* variables, or OS_CLOUD
    python benchmarks/canary.py http://stoker.example:8004/v1/PROJECT   without Keystone
    options: --seconds 3600   --rounds 0   --users 4   --poll 0.5   --patience 300   --seed 1   --json

It uses the API alone, and types that make nothing in a cloud.  Each user goes through the scenarios of
`SCENARIOS` in random order, one stack after the other, and checks each answer.  The exit code is 1 if an
answer was wrong, late beyond the patience, or missing.  At the end, and after Ctrl-C or SIGTERM, it deletes
its stacks; a second Ctrl-C leaves them, and lists them.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

from canary_stack import Api, Stack, Stopped, Tally, Wrong
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session
from stoker.cli.wiring.heat_api import project_root
from stoker.cli.wiring.operator_api import NoCredentials, open_cloud_access

Json = typing.Any
SLOW = 600
"""Seconds of a step that is to be cancelled; a canary never waits for its end."""
ANSWERS_WITHIN = 60.0
"""Seconds after which a request counts as one without an answer."""
PAUSE = 5.0
"""Seconds that a user waits after a wrong answer, so that an API that is gone gets no flood of requests."""
CREDENTIALS = ("OS_AUTH_URL", "OS_AUTH_TYPE", "OS_CLOUD")


def open_api(url: str, tally: Tally) -> Api:
    """Return the API at an address, with the credentials of the environment where there are some.

    :raises SystemExit: the address or the credentials are wrong.
    """
    try:
        if any(os.environ.get(name) for name in CREDENTIALS):
            access = open_cloud_access(url)
            session = access.session
            root, _ = project_root(access.address, access.project_id)
        else:
            session = Session(auth=NoAuth())
            root, _ = project_root(url, None)
    except NoCredentials as error:
        raise SystemExit(f"canary: {error}") from error
    session.timeout = ANSWERS_WITHIN
    return Api(session, root, tally)


def template(word: str, members: int, *, wait: float = 0, fails: bool = False) -> Json:
    """Return a template whose outputs follow from its arguments.

    :param word: a value that goes through all resources to the outputs.
    :param members: number of resources of its nested stack.
    :param wait: seconds that a step of it takes.
    :param fails: whether that step fails.
    """
    member = {"type": "OS::Heat::TestResource", "properties": {"value": f"{word}-%index%"}}
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "word": {"type": "OS::Heat::Value", "properties": {"type": "string", "value": word}},
            "secret": {"type": "OS::Heat::RandomString", "properties": {"length": 12}},
            "nothing": {"type": "OS::Heat::None"},
            "step": {
                "type": "OS::Heat::TestResource",
                "properties": {
                    "value": {"get_attr": ["word", "value"]},
                    "fail": fails,
                    "action_wait_secs": {"create": wait, "update": wait},
                },
            },
            "group": {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"count": members, "resource_def": member},
            },
        },
        "outputs": {
            "word": {"value": {"get_attr": ["step", "output"]}},
            "members": {"value": {"get_attr": ["group", "output"]}},
            "secret": {"value": {"get_attr": ["secret", "value"]}},
        },
    }


def live(stack: Stack, dice: random.Random) -> None:
    """Create a stack, change its values and its size, and delete it."""
    members = dice.randint(0, 4)
    stack.create(template("first", members))
    stack.ends("create", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    stack.has_outputs("first", members)
    for word in ("second", "third"):
        members = dice.randint(0, 4)
        stack.update(template(word, members))
        stack.ends("update", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")
        stack.has_outputs(word, members)
    stack.delete()


def fail_and_repair(stack: Stack, dice: random.Random) -> None:
    """Create a stack that fails, repair it by an update, and delete it."""
    stack.create(template("broken", 2, fails=True))
    stack.ends("create that fails", "CREATE_IN_PROGRESS", "CREATE_FAILED")
    stack.update(template("repaired", 2))
    stack.ends("update", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")
    stack.has_outputs("repaired", 2)
    stack.delete()


def fail_and_roll_back(stack: Stack, dice: random.Random) -> None:
    """Create a stack that fails, and is rolled back."""
    stack.create(template("broken", dice.randint(1, 3), fails=True), rollback=True)
    steps = ("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE")
    stack.ends("create that is rolled back", *steps)
    stack.delete()


def cancel_an_update(stack: Stack, dice: random.Random) -> None:
    """Cancel an update that would take long: the stack is as it was before."""
    stack.create(template("before", 2))
    stack.ends("create", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    stack.update(template("never", 3, wait=SLOW))
    stack.cancel_update()
    steps = ("UPDATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE")
    stack.ends("cancelled update", *steps)
    stack.has_outputs("before", 2)
    stack.delete()


def supersede_an_update(stack: Stack, dice: random.Random) -> None:
    """Update a stack again while its update takes long: the last goal is the one that counts."""
    stack.create(template("before", 1))
    stack.ends("create", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    stack.update(template("never", 3, wait=SLOW, fails=True))
    members = dice.randint(0, 3)
    stack.update(template("last", members))
    stack.ends("superseding update", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")
    stack.has_outputs("last", members)
    stack.delete()


def delete_while_creating(stack: Stack, dice: random.Random) -> None:
    """Delete a stack whose creation would take long."""
    stack.create(template("never", dice.randint(1, 3), wait=SLOW))
    stack.delete()


SCENARIOS: Mapping[str, Callable[[Stack, random.Random], None]] = {
    scenario.__name__: scenario
    for scenario in (
        live,
        fail_and_repair,
        fail_and_roll_back,
        cancel_an_update,
        supersede_an_update,
        delete_while_creating,
    )
}


class Canary:
    """Users side by side, and the stacks that they leave to delete.

    :param options: the arguments of the command.
    """

    def __init__(self, api: Api, options: argparse.Namespace) -> None:
        self._api = api
        self._options = options
        self._run = uuid.uuid4().hex[:8]
        self._lock = threading.Lock()
        self._left: dict[str, Stack] = {}
        self.stop = threading.Event()

    def check(self) -> None:
        """Read the list of stacks, before any user begins.

        :raises SystemExit: the API does not answer, or refuses that.
        """
        try:
            self._api.accepted("list", "GET", "/stacks?limit=1")
        except Wrong as error:
            raise SystemExit(f"canary: {error}") from error

    def run(self) -> float:
        """Let the users work until the time is over; return the seconds that it took."""
        began = time.monotonic()
        users = [threading.Thread(target=self._work, args=(number,)) for number in range(self._options.users)]
        for user in users:
            user.start()
        end = began + self._options.seconds
        while any(user.is_alive() for user in users):
            if time.monotonic() > end and not self._options.rounds:
                self.stop.set()
            time.sleep(0.05)
        return time.monotonic() - began

    def clean(self) -> None:
        """Delete what is left; what cannot be deleted is wrong."""
        for stack in list(self._left.values()):
            try:
                stack.remove()
                del self._left[stack.name]
            except Wrong as error:
                self._api.tally.accuse(str(error))

    def left(self) -> list[str]:
        """Return the names of the stacks that may still exist."""
        return sorted(self._left)

    def _work(self, number: int) -> None:
        """Go through the scenarios as one user."""
        dice = random.Random(f"{self._options.seed}/{number}")
        for index, name in enumerate(self._order(dice)):
            if self.stop.is_set():
                return
            self._try(name, f"canary-{self._run}-{number}-{index}", dice)

    def _order(self, dice: random.Random) -> Iterator[str]:
        """Yield names of scenarios: all of them in random order, again and again."""
        rounds = 0
        while not self._options.rounds or rounds < self._options.rounds:
            yield from dice.sample(sorted(SCENARIOS), len(SCENARIOS))
            rounds += 1

    def _try(self, scenario: str, name: str, dice: random.Random) -> None:
        options = self._options
        stack = Stack(self._api, name, poll=options.poll, patience=options.patience, stop=self.stop)
        with self._lock:
            self._left[name] = stack
        try:
            SCENARIOS[scenario](stack, dice)
        except Stopped:
            return
        except Wrong as error:
            self._api.tally.accuse(f"{scenario}: {error}")
            self.stop.wait(PAUSE)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            self._api.tally.accuse(f"{scenario}: an answer about {name} lacks a part: {error!r}")
            self.stop.wait(PAUSE)
        else:
            self._api.tally.complete(scenario)
            with self._lock:
                del self._left[name]


def report(tally: Tally, seconds: float, left: Sequence[str], options: argparse.Namespace) -> Json:
    """Return the report for programs."""
    return {
        "url": options.url,
        "users": options.users,
        "seed": options.seed,
        "seconds": round(seconds, 1),
        "scenarios": dict(sorted(tally.scenarios.items())),
        "requests": tally.latencies("requests"),
        "actions": tally.latencies("actions"),
        "throttled": tally.throttled,
        "wrong_count": tally.wrong_count,
        "wrong": tally.wrong,
        "left": list(left),
    }


def lines(values: Json) -> Iterator[str]:
    """Yield the lines of a report for people."""
    done = sum(values["scenarios"].values())
    yield f"{values['users']} users, {values['seconds']:g} s, {done} stacks from creation to deletion"
    for group, title in (("requests", "request"), ("actions", "until its end")):
        yield f"{title:28}{'count':>8}{'median s':>10}{'99 % s':>10}{'max s':>10}"
        for name, row in values[group].items():
            yield f"{name:28}{row['count']:8}{row['p50']:10.3f}{row['p99']:10.3f}{row['max']:10.3f}"
    if values["throttled"]:
        yield f"{values['throttled']} requests were put off by the limit of requests for each minute"
    yield f"wrong: {values['wrong_count']}"
    yield from (f"  {text}" for text in values["wrong"])
    if values["left"]:
        yield f"left behind: {', '.join(values['left'])}"


def arguments() -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("url", help="root of the API; auto: that of the service catalog")
    parser.add_argument("--seconds", type=float, default=3600.0, help="duration (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=0, help="rounds through all scenarios, not a duration")
    parser.add_argument("--users", type=int, default=4, help="users side by side (default: %(default)s)")
    parser.add_argument(
        "--poll", type=float, default=0.5, help="seconds between reads (default: %(default)s)"
    )
    parser.add_argument(
        "--patience", type=float, default=300.0, help="seconds for one action (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the order (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args()
    for name, least in (("seconds", 0), ("users", 1), ("rounds", 0), ("poll", 0.01), ("patience", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be {least} or more")
    return options


def main() -> int:
    """Run, delete what is left, and print the report; return the exit code."""
    options = arguments()
    tally = Tally()
    canary = Canary(open_api(options.url, tally), options)
    canary.check()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: canary.stop.set())
    seconds = canary.run()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        canary.clean()
    values = report(tally, seconds, canary.left(), options)
    print(json.dumps(values, indent=2) if options.json else "\n".join(lines(values)))
    return 1 if tally.wrong_count or values["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
