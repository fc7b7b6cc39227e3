"""A Heat that answers by its API what a test has written down; without Heat."""

import typing
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stoker.features.moves.inward.api_reader import HeatRefusal

Json = typing.Any
PROJECT = "project"
TIME = "2023-11-14T22:13:20Z"
"""The time of everything: 1,700,000,000 seconds since the epoch."""
ROOT = f"http://heat.example:8004/v1/{PROJECT}"


@dataclass
class Answered:
    """A resource as Heat answers it.

    :ivar child: the nested stack that it is; None: it is none.
    :ivar data: what only an export has.
    """

    name: str
    type: str
    physical_id: str = ""
    status: str = "CREATE_COMPLETE"
    attributes: Mapping[str, Json] = field(default_factory=dict)
    metadata: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    child: "AnsweredStack | None" = None


@dataclass
class AnsweredStack:
    """A stack as Heat answers it.

    :ivar environment: the environment with hidden values in clear, which only an export has.
    :ivar hidden: names of the hidden parameters.
    """

    name: str
    template: Json
    resources: Sequence[Answered] = ()
    environment: Mapping[str, Json] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    snapshots: Sequence[str] = ()
    fields: Mapping[str, Json] = field(default_factory=dict)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def path(self) -> str:
        return f"/stacks/{self.name}/{self.id}"


class ScriptedHeat:
    """Answers requests for stacks of one project.

    :ivar requests: the paths that were asked for.
    :ivar exports: whether stacks are exported.
    :ivar changes: called with each path, before it is answered.
    """

    def __init__(self, *stacks: AnsweredStack) -> None:
        self.stacks = list(stacks)
        self.requests: list[str] = []
        self.exports = True
        self.refused: dict[str, int] = {}
        self.configs: list[Json] = []
        self.deployments: list[Json] = []

    def get(self, path: str) -> Json:
        self.requests.append(path)
        base, _, text = path.partition("?")
        for ending, status in self.refused.items():
            if base.endswith(ending):
                raise HeatRefusal(f"Heat answers {status} to GET {path}", status)
        query = urllib.parse.parse_qs(text)
        if base == "/stacks":
            return {"stacks": _page([_summary(stack) for stack in self.stacks], query)}
        if base == "/software_deployments":
            return {"software_deployments": self.deployments}
        if base == "/software_configs":
            return {"software_configs": _page(self.configs, query)}
        if base.startswith("/software_configs/"):
            [config] = [item for item in self.configs if base.endswith(item["id"])]
            return {"software_config": config}
        for stack in self._all():
            if base == stack.path or base.startswith(stack.path + "/"):
                return self._below(stack, base[len(stack.path) :].strip("/").split("/"), query)
        raise HeatRefusal(f"Heat answers 404 to GET {path}", 404)

    def _all(self) -> list[AnsweredStack]:
        stacks = list(self.stacks)
        for stack in stacks:
            stacks += [row.child for row in stack.resources if row.child is not None]
        return stacks

    def _below(self, stack: AnsweredStack, parts: list[str], query: Json) -> Json:
        match parts:
            case [""]:
                return {"stack": _summary(stack)}
            case ["template"]:
                return stack.template
            case ["environment"]:
                return _masked(stack)
            case ["files"]:
                return stack.files
            case ["snapshots"]:
                return {"snapshots": [{"id": name, "name": name} for name in stack.snapshots]}
            case ["export"]:
                if not self.exports:
                    raise HeatRefusal("Heat answers 400: Stack Abandon is not supported", 400)
                return _exported(stack)
            case ["events"]:
                return {"events": [_event(stack, row) for row in stack.resources]}
            case ["resources"]:
                return {"resources": list(_listed(stack))}
            case ["resources", name, *rest]:
                [row] = [row for row in stack.resources if row.name == urllib.parse.unquote(name)]
                if rest == ["metadata"]:
                    return {"metadata": row.metadata}
                return {"resource": {"attributes": {**row.attributes, "show": "all"}}}
        raise HeatRefusal(f"Heat answers 404 to GET {parts}", 404)


def _page(items: list[Json], query: Json) -> list[Json]:
    ids = [item["id"] for item in items]
    start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
    return items[start : start + int(query["limit"][0])]


def _summary(stack: AnsweredStack) -> Json:
    return {
        "id": stack.id,
        "stack_name": stack.name,
        "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": "Stack CREATE completed successfully",
        "creation_time": TIME,
        "updated_time": None,
        "stack_owner": "alice",
        "timeout_mins": 17,
        "disable_rollback": True,
        "tags": ["b", "a"],
        **stack.fields,
    }


def _masked(stack: AnsweredStack) -> Json:
    return {
        section: {name: "******" if name in stack.hidden else value for name, value in values.items()}
        if section in ("parameters", "parameter_defaults")
        else values
        for section, values in stack.environment.items()
    }


def _exported(stack: AnsweredStack) -> Json:
    entries: dict[str, Json] = {}
    for row in stack.resources:
        if row.child is not None:
            entries[row.name] = _exported(row.child)
            continue
        entries[row.name] = {"metadata": row.metadata, "resource_data": row.data}
    return {
        "template": stack.template,
        "environment": stack.environment,
        "files": stack.files,
        "resources": entries,
    }


def _listed(stack: AnsweredStack) -> typing.Iterator[Json]:
    for row in stack.resources:
        links = [{"href": f"{ROOT}{stack.path}", "rel": "stack"}]
        if row.child is not None:
            links.append({"href": f"{ROOT}{row.child.path}", "rel": "nested"})
        yield {
            "resource_name": row.name,
            "resource_type": row.type,
            "physical_resource_id": row.physical_id if row.child is None else row.child.id,
            "resource_status": row.status,
            "resource_status_reason": "state changed",
            "creation_time": TIME,
            "updated_time": TIME,
            "links": links,
        }
        if row.child is not None:
            yield from _listed(row.child)


def _event(stack: AnsweredStack, row: Answered) -> Json:
    return {
        "id": str(uuid.uuid5(uuid.UUID(stack.id), row.name)),
        "event_time": TIME,
        "resource_name": row.name,
        "physical_resource_id": row.physical_id,
        "resource_status": row.status,
        "resource_status_reason": "state changed",
    }
