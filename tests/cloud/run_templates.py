"""Runs the templates of a checkout on the tests' cloud: creates, updates and deletes a stack of each.

Usage:
    make templates CHECKOUT=DIRECTORY ARGS="…"
    PYTHONPATH=tests python tests/cloud/run_templates.py DIRECTORY
    options: --parameters FILE   --address URL   --only PATTERN   --jobs 2   --json FILE
    STOKER_TEST_CLOUD=DIRECTORY  use a cloud that runs (`make cloud`)

Each template runs in a project of its own that has a network with a router, a key pair, and what else the
template names.  Images, flavors, networks and so on are chosen by the custom constraints and the names of
its parameters.  FILE says more, by path or pattern of the templates:

    "hot/*.yaml": {parameters: {size: 2}}
    hot/web.yaml: {change: {size: 3}, environment: hot/web_env.yaml}
    hot/group.yaml: {broken_outputs: [typo]}
    hot/windows.yaml: {skip: it needs another hypervisor}

The stack is updated twice: with the same template, and with one changed parameter.  Wait conditions get
their signals from here, for no server runs user_data.  Deployments get theirs from the real agents of each
server, which do not run the tools: scripts of others are not run on this machine.  Afterwards each service
is asked what is left.
The exit code is 1 if a template fails, and 0 if all that have only types of Stoker's pass.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import typing
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.checkout import Checkout, Sample, read
from harness.cloud.project import Project
from harness.cloud.server import joined
from harness.cloud.stacks import Stack, Stacks
from harness.cloud.surroundings import furnish
from harness.guests.played import PlayedServers

Json = typing.Any
POLL = 1.0
ORDER = ("passed", "failed", "lacks types", "skipped", "unreadable")
HANDLE = "OS::Heat::WaitConditionHandle"
TOOL = re.compile(r"""\b(?:group|tool)["']?: *["']?([\w:-]+)""")
"""The tool of a config, in YAML or JSON."""


class Failed(Exception):
    """A template did not do what it should; the text says in which step, and why."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a template.

    :ivar result: passed, failed, lacks types, skipped or unreadable.
    :ivar lacks: the types that Stoker does not have.
    """

    name: str
    result: str
    seconds: float = 0.0
    reason: str = ""
    lacks: tuple[str, ...] = ()


class Runner:
    """Tries templates.  Any thread may call it."""

    def __init__(self, cloud: Cloud, service: Service, within: float) -> None:
        """:param within: seconds for one action of a stack."""
        self._cloud = cloud
        self._service = service
        self._within = within
        with cloud.project(("member", "admin")) as project:
            stacks = Stacks(service, project)
            self._types = frozenset(stacks.call("GET", "/resource_types").body["resource_types"])
            self._schemas = {name: _properties(stacks, name) for name in self._types}

    def schema(self, name: str) -> Mapping[str, Json]:
        """Return the properties of a type; empty for one that Stoker does not have."""
        return self._schemas.get(name, {})

    def run(self, sample: Sample) -> Result:
        """Try one template; anything that goes wrong is its result."""
        if sample.overrides.skip:
            return Result(sample.name, "skipped", reason=sample.overrides.skip)
        if lacks := tuple(sorted(sample.types - self._types)):
            return Result(sample.name, "lacks types", reason=", ".join(lacks), lacks=lacks)
        began = time.monotonic()
        try:
            with self._cloud.project() as project:
                reason = self._run(sample, project)
            result = "passed"
        except Exception as error:  # noqa: BLE001 - one template's failure does not end the run
            result = "failed"
            reason = str(error) if isinstance(error, Failed) else repr(error)
        return Result(sample.name, result, time.monotonic() - began, reason)

    def _run(self, sample: Sample, project: Project) -> str:
        ids = furnish(project, sample)
        before = project.leftovers()
        stacks = Stacks(self._service, project)
        body = {
            "template": sample.template,
            "files": sample.files,
            "environment": {**sample.environment, "parameters": {}},
            "parameters": _by_id(sample.parameters(), ids),
        }
        change = sample.change()
        with tempfile.TemporaryDirectory() as folder:
            tools = TOOL.findall("\n".join([json.dumps(sample.template), *sample.files.values()]))
            servers = PlayedServers(pathlib.Path(folder), project, set(tools))
            waits = HANDLE in sample.types
            trial = Trial(stacks, servers, self._within, waits, sample.overrides.broken_outputs)
            try:
                trial.run(body, change and _by_id(change, ids))
            finally:
                stacks.clean()
        if (leftovers := project.leftovers()) != before:
            raise Failed(f"left behind: {_new(before, leftovers)}")
        return "" if change else "no parameter changed"


@dataclasses.dataclass(frozen=True)
class Trial:
    """The life of a stack.

    :ivar servers: they end the waits of deployments.
    :ivar within: seconds for each of its actions.
    :ivar waits: some of its resources wait for signals.
    :ivar broken_outputs: outputs that nobody can evaluate.
    """

    stacks: Stacks
    servers: PlayedServers
    within: float
    waits: bool
    broken_outputs: Collection[str] = ()

    def run(self, body: Json, change: Json) -> None:
        """Create, update and delete the stack."""
        answer = self.stacks.call("POST", "/stacks", {"stack_name": "tried", **body})
        if answer.status != 201:
            raise Failed(f"refused: {answer.status} {answer.body['error']['message']}")
        stack = Stack(self.stacks, f"/stacks/tried/{answer.body['stack']['id']}")
        self._finish(stack, "CREATE_COMPLETE")
        outputs = stack.show().get("outputs", ())
        broken = {item["output_key"]: error for item in outputs if (error := item.get("output_error"))}
        if broken.keys() != set(self.broken_outputs):
            raise Failed(f"outputs: {broken}")
        before = _ids(stack)
        self._update(stack, body, "the same template")
        if (after := _ids(stack)) != before:
            raise Failed(f"update to the same template replaced {_new(before, after)}")
        if change:
            self._update(stack, {**body, "parameters": change}, "a changed parameter")
        self.stacks.call("DELETE", stack.path)
        self._finish(stack, "DELETE_COMPLETE")

    def _update(self, stack: Stack, body: Json, step: str) -> None:
        answer = self.stacks.call("PUT", stack.path, body)
        if answer.status != 202:
            raise Failed(f"update to {step} refused: {answer.status} {answer.body['error']['message']}")
        self._finish(stack, "UPDATE_COMPLETE")

    def _finish(self, stack: Stack, status: str) -> None:
        """Wait for the end of the action, and do meanwhile what the servers' user_data would."""
        end = time.monotonic() + self.within
        while True:
            answer = self.stacks.call("GET", f"{stack.path}?resolve_outputs=false")
            if answer.status == 404 and status == "DELETE_COMPLETE":
                return
            stack_status = answer.body["stack"]["stack_status"]
            if stack_status == status:
                return
            if not stack_status.endswith("IN_PROGRESS"):
                raise Failed(f"{stack_status}: {_reasons(stack)}")
            if time.monotonic() > end:
                raise Failed(f"{stack_status} after {self.within:.0f} s: {_states(stack)}")
            if self.waits and not stack_status.startswith("DELETE"):
                _signal(stack)
            self._deploy()
            time.sleep(POLL)

    def _deploy(self) -> None:
        """Let the servers that deployments wait for apply them."""
        deployments = self.stacks.call("GET", "/software_deployments").body["software_deployments"]
        for server_id in sorted(
            {item["server_id"] for item in deployments if item["status"] == "IN_PROGRESS"}
        ):
            self.servers.poll(server_id)


def _properties(stacks: Stacks, name: str) -> Mapping[str, Json]:
    properties: Mapping[str, Json] = stacks.call("GET", f"/resource_types/{name}").body["properties"]
    return properties


def _by_id(parameters: Mapping[str, Json], ids: Mapping[str, str]) -> Mapping[str, Json]:
    """Return the parameters with ids in place of the names of some things."""
    return {
        name: ids.get(value, value) if isinstance(value, str) else value for name, value in parameters.items()
    }


def _resources(stack: Stack) -> Sequence[Json]:
    answer = stack.stacks.call("GET", f"{stack.path}/resources?nested_depth=5")
    resources: Sequence[Json] = answer.body["resources"] if answer.status == 200 else ()
    return resources


def _signal(stack: Stack) -> None:
    resources = _resources(stack)
    waits = any(
        item["resource_type"] == "OS::Heat::WaitCondition" and item["resource_status"].endswith("IN_PROGRESS")
        for item in resources
    )
    for item in resources:
        if waits and item["resource_type"] == HANDLE and item["resource_status"] == "CREATE_COMPLETE":
            [link] = [link["href"] for link in item["links"] if link["rel"] == "self"]
            _, _, path = link.partition(f"/{stack.stacks.project.id}")
            stack.stacks.call("POST", f"{path}/signal", {"status": "SUCCESS"})


def _reasons(stack: Stack) -> str:
    """Return why it failed: the reasons of all resources, or its own."""
    failed = [
        f"{item['resource_name']}: {item['resource_status_reason']}"
        for item in _resources(stack)
        if item["resource_status"].endswith("FAILED")
    ]
    return "; ".join(failed) or str(stack.show()["stack_status_reason"])


def _states(stack: Stack) -> Sequence[str]:
    return [
        f"{item['resource_name']}: {item['resource_status']} {item['resource_status_reason']}"
        for item in _resources(stack)
        if not item["resource_status"].endswith("COMPLETE")
    ]


def _ids(stack: Stack) -> Mapping[str, Json]:
    return {f"{item['links'][0]['href']}": item["physical_resource_id"] for item in _resources(stack)}


def _new(before: Mapping[str, Json], after: Mapping[str, Json]) -> Mapping[str, Json]:
    return {name: value for name, value in after.items() if before.get(name) != value}


def _run_all(cloud: Cloud, service: Service, options: argparse.Namespace) -> list[Result]:
    runner = Runner(cloud, service, options.within)
    settings = (read(options.parameters) or {}) if options.parameters else {}
    checkout = Checkout(options.checkout.resolve(), settings, runner.schema, options.address)
    samples: list[Sample] = []
    results: list[Result] = []
    for item in checkout.samples(options.only):
        if isinstance(item, Sample):
            samples.append(item)
        else:
            results.append(Result(item[0], "unreadable", reason=item[1]))
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in as_completed([pool.submit(runner.run, sample) for sample in samples]):
            result = done.result()
            _print(result)
            results.append(result)
    return results


def _print(result: Result) -> None:
    reason = " ".join(result.reason.split())
    print(f"{result.name:60} {result.result:12} {result.seconds:6.1f}  {reason[:600]}", flush=True)


def _summarize(results: Sequence[Result]) -> None:
    print("\nAll of them:")
    for result in sorted(results, key=lambda result: (ORDER.index(result.result), result.name)):
        _print(result)
    counts = collections.Counter(result.result for result in results)
    print("\n" + ", ".join(f"{counts[outcome]} {outcome}" for outcome in ORDER if counts[outcome]))
    lacks = collections.Counter(name for result in results for name in result.lacks)
    if lacks:
        print("types that Stoker does not have, by templates:")
        print("\n".join(f"{count:4} {name}" for name, count in lacks.most_common()))


def main() -> int:
    """Run the templates, and print a table of them."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument(
        "--parameters", type=pathlib.Path, help="YAML: path or pattern of templates -> what to give"
    )
    parser.add_argument(
        "--address", default="", help="the checkout's root on the web, for templates that name it"
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="paths of templates, such as 'hot/*'")
    parser.add_argument("--jobs", type=int, default=2, help="how many run side by side")
    parser.add_argument("--within", type=float, default=300.0, help="seconds for one action of a stack")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cloud = joined(folder, os.getpid())
        config = folder / "cloud.conf"
        config.write_text(cloud.stoker_options())
        service = Service(folder, config=config)
        try:
            results = _run_all(cloud, service, options)
        finally:
            service.stop()
    _summarize(results)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(result) for result in results]))
    return int(any(result.result == "failed" for result in results))


if __name__ == "__main__":
    sys.exit(main())
