"""Answers of the cloud's services, changed at random, to the steps of the declared types."""

import dataclasses
import json
import typing
from collections.abc import Hashable, Mapping

from fuzz.laws import Broken
from fuzz.mutation import MOST_BYTES, Choices, Mutations, donors_of
from harness.fake_context import FakeContext, after, target_of
from harness.heat_schemas import REGISTRY
from hypothesis import strategies as st
from keystoneauth1 import exceptions
from requests import Response
from stoker.resources.contract.errors import PropertyError, StepError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.contract.schema import Property
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.openstack.declared import DeclaredType
from stoker.template.constraints import AllowedValues, Range

Json = typing.Any
ACTIONS = ("create", "update", "delete", "check", "refresh", "live", "list")
STATUSES = (
    200,
    200,
    200,
    200,
    200,
    200,
    201,
    202,
    204,
    300,
    400,
    401,
    403,
    404,
    404,
    409,
    413,
    429,
    500,
    503,
    599,
)
HEADERS: tuple[Mapping[str, str], ...] = (
    {},
    {},
    {"Retry-After": "99999999999999999999"},
    {"Retry-After": "x"},
    {"Retry-After": "٣"},
    {"Content-Type": "text/html"},
    {"Location": "x"},
    {"x-openstack-request-id": "\x1b[31m"},
)
TEXTS = ("", "{", "null", "[]", '"x"', "<html><title>x", "NaN", "\ufeff{}", "1" * 5000, "[" * 3000, "\xff")
ID = "22222222-2222-4333-8444-555555555555"
MOST_POLLS = 6


class FakeAdapter:
    """An adapter of keystoneauth that answers what an input says; after the last answer again the first."""

    def __init__(self, service: str, answers: list[Json]) -> None:
        self.service_type = service
        self.additional_headers: dict[str, str] = {}
        self._answers = answers
        self._asked = 0

    def get_endpoint(self) -> str:
        """Return an address."""
        return "http://cloud.test"

    def get_project_id(self) -> str:
        """Return a project."""
        return "project"

    def request(self, url: str, method: str, **arguments: Json) -> Response:
        """Answer a request."""
        sent = self._answers[self._asked % len(self._answers)]
        self._asked += 1
        answer = Response()
        answer.status_code = sent["status"]
        answer.headers.update(sent["headers"])
        text = sent["text"] if "text" in sent else json.dumps(sent["body"])
        answer._content = text.encode("utf-8", "surrogatepass")
        answer.url = url
        if answer.status_code >= 400:
            raise exceptions.from_response(answer, method, url)
        return answer


class AnsweredContext(FakeContext):
    """A step's context whose services are one fake adapter."""

    def __init__(self, answers: list[Json]) -> None:
        super().__init__()
        self._answers = answers

    def adapter(self, service: str, version: str, microversion: str | None = None) -> typing.Any:
        return FakeAdapter(service, self._answers)

    def shared(
        self, key: Hashable, make: typing.Callable[[], Json], max_age: float, *, checked_by_use: bool = False
    ) -> Json:
        return make()


def _value(item: Property) -> Json:
    """Return a value of a property."""
    for constraint in item.constraints:
        if isinstance(constraint, AllowedValues):
            return next(iter(constraint.values))
    if item.type == "map":
        inner = item.schema if isinstance(item.schema, Mapping) else {}
        return {
            name: _value(one) for name, one in inner.items() if isinstance(one, Property) and one.required
        }
    if item.type == "list":
        return [_value(item.schema)] if isinstance(item.schema, Property) else ["x"]
    least = next((one.minimum for one in item.constraints if isinstance(one, Range)), None)
    return {"integer": least or 1, "number": least or 1, "boolean": True}.get(item.type, ID)


def _properties(plugin: DeclaredType) -> Json:
    return {name: _value(item) for name, item in plugin.properties_schema.items() if item.required}


def _fits(plugin: DeclaredType) -> bool:
    try:
        resolve_properties(plugin.properties_schema, _properties(plugin))
    except PropertyError:
        return False
    return True


def _answer(plugin: DeclaredType) -> Json:
    """Return an answer that fits each request: the thing itself, the thing by its key, and a list of it."""
    remote: dict[str, Json] = {
        name: None if item.type == "string" else _value(item)
        for name, item in plugin.properties_schema.items()
    }
    remote |= dict.fromkeys(plugin.attributes_schema, "x")
    status = {"status": "ACTIVE", "provisioning_status": "ACTIVE", "operating_status": "ONLINE"}
    remote |= {**status, "id": ID, plugin.id_field: ID, "name": "x", "description": "x", "links": []}
    items = plugin.items or f"{plugin.item}s"
    return {**remote, **({plugin.item: remote} if plugin.item else {}), items: [remote], f"{items}_links": []}


class Services:
    """The subject."""

    name = "services"
    cost = 1

    def __init__(self) -> None:
        plugins = {name: REGISTRY.get(name) for name in REGISTRY.names()}
        self._plugins = {
            name: plugin
            for name, plugin in plugins.items()
            if isinstance(plugin, DeclaredType) and _fits(plugin)
        }
        self._names = sorted(self._plugins)
        answers = [_answer(self._plugins[name]) for name in self._names]
        donors = donors_of(answers)
        self._mutations = [Mutations([answer], donors) for answer in answers]

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return a type, an action, and the answers to its requests."""
        return st.lists(st.binary(min_size=2, max_size=MOST_BYTES), min_size=1, max_size=4).map(self.of_parts)

    def of_parts(self, parts: list[bytes]) -> Json:
        """Return the input that some bytes choose: the first part chooses the type, too."""
        choices = Choices(parts[0])
        index = choices.below(len(self._names))
        action = choices.one(ACTIONS)
        answers = [self._one_answer(part[2:] if part is parts[0] else part, index) for part in parts]
        return {"type": self._names[index], "action": action, "answers": answers}

    def _one_answer(self, data: bytes, index: int) -> Json:
        choices = Choices(data[:3])
        answer = {"status": choices.one(STATUSES), "headers": choices.one(HEADERS)}
        if choices.below(16) == 15:
            return {**answer, "text": choices.one(TEXTS)}
        return {**answer, "body": self._mutations[index].of_bytes(data[2:])}

    def run(self, sent: Json) -> None:
        """Run the steps of an action until they end."""
        plugin = self._plugins[sent["type"]]
        context = AnsweredContext(sent["answers"])
        action = sent["action"]
        stored = {} if action == "create" else {"physical_id": ID, "data": {"thing": {"id": ID}}}
        target = target_of(plugin, _properties(plugin), creation_key=ID, **stored)
        if action == "update":
            target = dataclasses.replace(target, previous=target.properties)
        try:
            if action == "refresh":
                plugin.attribute_values(after(target, Done(data=dict(plugin.refresh(target, context)))))
            elif action == "live":
                plugin.live_properties(target, context)
            elif action == "list":
                if (collection := plugin.collection()) is not None:
                    for remote in collection.read(context, "project").values():
                        plugin.reported_properties(target, remote, context)
            else:
                self._run_steps(plugin, action, target, context)
        except (StepError, PropertyError) as error:
            if len(str(error)) > 5000:
                raise Broken("length", f"a reason has {len(str(error))} characters", sent["type"]) from error

    def _run_steps(self, plugin: DeclaredType, action: str, target: Json, context: AnsweredContext) -> None:
        handle = getattr(plugin, f"handle_{action}")
        names = frozenset(name for name, item in plugin.properties_schema.items() if item.update_allowed)
        step = handle(target, names, context) if action == "update" else handle(target, context)
        for _ in range(MOST_POLLS):
            json.dumps(step.data)
            if step.physical_id is not None and not isinstance(step.physical_id, str):
                raise Broken("id", f"a physical id is {step.physical_id!r}", type(plugin).__name__)
            target = after(target, step)
            if not isinstance(step, Poll):
                plugin.attribute_values(target)
                return
            context.time += step.after
            step = getattr(plugin, f"check_{action}_complete")(target, step.progress, context)
