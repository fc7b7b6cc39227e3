"""Resource types that misbehave in known ways, for tests of the conductor."""

import os
import pathlib
import time
from collections.abc import Mapping

from stoker.shapes import Json

try:
    from stoker.resources import (
        Attribute,
        Done,
        Json,
        Poll,
        Property,
        ResourceType,
        ResourceView,
        RetryableError,
        Step,
        StepContext,
    )
except ImportError:  # A conductor of an older version loads these types, too: the tests of upgrades run one.
    from stoker.resources.contract.context import StepContext
    from stoker.resources.contract.errors import RetryableError
    from stoker.resources.contract.plugin import ResourceType
    from stoker.resources.contract.schema import Attribute, Property
    from stoker.resources.contract.steps import Done, Poll, Step
    from stoker.resources.contract.views import ResourceView

DIRECTORY = Property("string", "Where files are made; must exist.", required=True)
UNTIL = Property("string", "Blocks until this file exists, in place of the seconds.", update_allowed=True)


class Blocking(ResourceType):
    """Sits in a call that nothing can interrupt."""

    properties_schema = {
        "seconds": Property("number", default=60, update_allowed=True),
        "until": UNTIL,
        "actions": Property("list", "In which actions.", default=["create"], update_allowed=True),
        "calls": Property("string", "A directory, in which each call that blocks makes a file first."),
    }

    def _block(self, action: str, target: ResourceView) -> Step:
        if action in target.properties["actions"]:
            # A task that is running may not have called its type yet: it would end at once when cancelled.
            if (calls := target.properties["calls"]) is not None:
                pathlib.Path(calls, f"{target.key}.{action}").touch()
            _hang(target.properties["seconds"], target.properties["until"])
        return Done(physical_id=target.physical_id or target.physical_name)

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return self._block("create", target)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        return self._block("update", target)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        return self._block("delete", target)


class Cooperative(ResourceType):
    """Works long, but asks every `slice` seconds whether it shall stop."""

    properties_schema = {
        "seconds": Property("number", default=60, update_allowed=True),
        "slice": Property("number", default=0.05, update_allowed=True),
        "actions": Property("list", "In which actions.", default=["create"], update_allowed=True),
    }

    def _labour(self, action: str, target: ResourceView, context: StepContext) -> Step:
        if action in target.properties["actions"]:
            until = context.now() + target.properties["seconds"]
            while (remaining := until - context.now()) > 0:
                context.pause(min(remaining, target.properties["slice"]))
        return Done(physical_id=target.physical_id or target.physical_name)

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return self._labour("create", target, context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        return self._labour("update", target, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        return self._labour("delete", target, context)


class Flaky(ResourceType):
    """Creation asks to be tried again `times` times; the tries are counted in a file, over all processes."""

    properties_schema = {
        "directory": DIRECTORY,
        "times": Property("integer", default=1),
        "after": Property("number", "Seconds until the next try; not given: the service's back-off."),
    }
    attributes_schema = {"tries": Attribute("How often creation was begun.", "integer")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        path = pathlib.Path(target.properties["directory"], f"{target.key}.tries")
        with path.open("a") as tries:
            tries.write("x")
        count = path.stat().st_size
        if count <= target.properties["times"]:
            raise RetryableError(f"try {count} failed", after=target.properties["after"])
        return Done(physical_id=target.physical_name, data={"tries": count})

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        return {"tries": target.data.get("tries")}


class External(ResourceType):
    """Makes a file named by its idempotency key: what lies in the directory at the end was leaked.

    A creation that finds the key's file takes it; so nothing is made twice.
    """

    properties_schema = {
        "directory": DIRECTORY,
        "value": Property("string", "What the file holds.", default="", update_allowed=True),
        "poll_secs": Property("number", "Creation is polled this long.", default=0, update_allowed=True),
        "blocked_secs": Property(
            "number",
            "Blocks this long after the file is made, before anybody knows of it.",
            default=0,
            update_allowed=True,
        ),
        "blocked_until": UNTIL,
    }
    attributes_schema = {"path": Attribute("Of the file.", "string")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        path = _path(target, target.key)
        if not path.exists():
            _write(path, target)
            _hang(target.properties["blocked_secs"], target.properties["blocked_until"])
        until = context.now() + target.properties["poll_secs"]
        return self._look(until, target.key, context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._look(progress["until"], target.physical_id or target.key, context)

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        if target.physical_id is not None:
            _write(_path(target, target.physical_id), target)
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        if target.physical_id is not None:
            _path(target, target.physical_id).unlink(missing_ok=True)
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        return key if _path(target, key).exists() else None

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        return {"path": str(_path(target, target.physical_id)) if target.physical_id else None}

    def _look(self, until: float, physical_id: str, context: StepContext) -> Step:
        remaining = until - context.now()
        if remaining > 0:
            return Poll({"until": until}, after=remaining, physical_id=physical_id)
        return Done(physical_id=physical_id)


class Gated(ResourceType):
    """Creation is polled until a file exists; it takes no thread meanwhile."""

    properties_schema = {
        "until": Property("string", "The file.", required=True),
        "every": Property("number", "Seconds between two polls.", default=1),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        return self._poll(target)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._poll(target)

    def _poll(self, target: ResourceView) -> Step:
        if os.path.exists(target.properties["until"]):
            return Done(physical_id=target.physical_name)
        return Poll({}, after=target.properties["every"], physical_id=target.physical_name)


def _hang(seconds: float, until: str | None) -> None:
    if until is None:
        time.sleep(seconds)
    else:
        while not os.path.exists(until):
            time.sleep(0.05)


def _path(target: ResourceView, physical_id: str) -> pathlib.Path:
    return pathlib.Path(target.properties["directory"], f"{physical_id}.external")


def _write(path: pathlib.Path, target: ResourceView) -> None:
    """In one step: a reader sees the whole file or none."""
    draft = path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}")
    draft.write_text(f"{target.stack.id} {target.name} {target.properties['value']}\n")
    draft.replace(path)


RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "Test::Blocking": Blocking,
    "Test::Cooperative": Cooperative,
    "Test::External": External,
    "Test::Flaky": Flaky,
    "Test::Gated": Gated,
}
