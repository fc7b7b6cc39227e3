"""Reads trees of stacks by Heat's Orchestration API, for those who cannot read Heat's database.

Every request is a GET, so nothing is changed: neither in Heat nor in the cloud.  Heat's ``export`` has what
the other answers keep back: values of hidden parameters, and the data that types have stored.  Heat answers
it where its option ``enable_stack_abandon`` is set, and its policy allows it.  It deletes nothing.
"""

import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ....db.states import Status
from ....resources.list_pages import EndlessList, ListReader
from ....shapes import Json, JsonMap
from ....template.budget import json_size
from ..heat.border import within
from ..heat.fields import check_sections, sound, texts_by_name
from ..heat.rows import (
    HeatConfig,
    HeatDeployment,
    HeatEvent,
    HeatResource,
    HeatStack,
    HeatTemplate,
    HeatTree,
    Refused,
)
from ..heat.selection import RootStack, Selection, resolved
from ..heat.tree_reader import ENVIRONMENT, root_alone
from .api_answers import (
    DATA_ATTRIBUTES,
    REMOVED_MEMBERS,
    RESOURCE_GROUP,
    StackPath,
    config_of,
    deployment_of,
    event_of,
    fields_of,
    filled,
    in_order,
    losses_of,
    masked_parameters,
    path_of_link,
    referred_attributes,
    resource_of,
    stack_of,
    stored_data,
)

Get = Callable[[str], Json]
"""Returns the JSON value that Heat answers to a GET of a path below the project's root."""
PAGE = 20
"""Trees that are read together."""
LISTED = 100
"""Stacks, configs or events in one answer."""
DEEPEST = 50
MOST_STACKS = 10_000
"""Stacks of one tree."""
LONGEST = 3600.0
"""Seconds in which Heat must have shown a tree; the answer to a last request may take longer."""
_AMBIGUOUS = ("UPDATE", "ROLLBACK", "RESTORE")
"""Actions after whose failure resources may have an older definition than the template's."""
NO_EXPORT = (
    "Heat exports no stacks (its option enable_stack_abandon, or its policy): hidden parameters have to be "
    "given, and what guests and other clients hold of Heat's addresses and keys is not taken over"
)
LOST = (
    "by the API times are whole seconds; trusts, snapshots, replaced resources and the properties of events "
    "stay behind"
)


class HeatRefusal(Exception):
    """Heat does not answer a request; the text says which, and how it is refused.

    :ivar status: the status of the answer; 0: there was none.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class HeatApi:
    """The root stacks of one project by Heat's API.  For one thread.

    :ivar project_id: id of the project.
    :param get: sends a request.
    :param project_id: id of the project.
    :param parameters: values for hidden parameters, by name, in clear.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self,
        get: Get,
        project_id: str,
        parameters: Mapping[str, Json] | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._get = get
        self._monotonic = monotonic
        self.project_id = project_id
        self._parameters = dict(parameters or {})
        self._exports = True
        self._listed: list[JsonMap] | None = None
        self._deployments: dict[str, HeatDeployment] | None = None
        self._config_ids: list[str] | None = None
        self._damaged: list[str] = []

    def notes(self) -> list[str]:
        """Return what this way of reading loses for all stacks; complete once they are read."""
        return [LOST, *([] if self._exports else [NO_EXPORT]), *self._damaged]

    def resolve(self, selection: Selection) -> Selection:
        """Return a selection in which stacks are named by their ids.

        :raises WrongSelection: what is named does not exist.
        :raises HeatRefusal: Heat refuses the list.
        """
        roots = self._roots(Selection())
        stacks = [RootStack(root["id"], root["stack_name"], self.project_id) for root in roots]
        return resolved(selection, stacks, [self.project_id])

    def count(self, selection: Selection) -> int:
        """Return the number of root stacks of a selection.

        :raises HeatRefusal: Heat refuses the list.
        """
        return len(self._roots(selection))

    def pages(
        self, selection: Selection, skip: Callable[[Sequence[str]], set[str]]
    ) -> Iterator[list[HeatTree]]:
        """Yield the trees of a selection.

        :param skip: function that returns the ids among those of a page whose trees are not to be read.
        :raises HeatRefusal: Heat refuses the list.
        """
        roots = self._roots(selection)
        for start in range(0, len(roots), PAGE):
            page = roots[start : start + PAGE]
            skipped = skip([answer["id"] for answer in page])
            yield [self._tree(answer) for answer in page if answer["id"] not in skipped]

    def software(self, project_id: str, ids: Iterable[str]) -> tuple[list[HeatConfig], list[HeatDeployment]]:
        """Return the project's configs and deployments with these ids, and the configs of those deployments.

        :param project_id: the only project that it reads.
        :raises Refused: Heat does not answer.
        """
        assert project_id == self.project_id, "it reads one project"
        chosen = set(ids)
        try:
            deployments = [item for key, item in self._all_deployments().items() if key in chosen]
            chosen |= {deployment.config_id for deployment in deployments}
            return self._configs(key for key in self._all_config_ids() if key in chosen), deployments
        except HeatRefusal as error:
            raise Refused(str(error)) from error

    def software_pages(self, selection: Selection) -> Iterator[tuple[list[HeatConfig], list[HeatDeployment]]]:
        """Yield all configs of the project page by page, and then all its deployments.

        :raises HeatRefusal: Heat refuses the list.
        """
        ids = self._all_config_ids()
        for start in range(0, len(ids), LISTED):
            yield self._configs(ids[start : start + LISTED]), []
        yield [], list(self._all_deployments().values())

    # -- lists ---------------------------------------------------------------------------------------

    def _roots(self, selection: Selection) -> list[JsonMap]:
        if self._listed is None:
            self._listed = list(self._pages_of("/stacks?show_hidden=true", "stacks"))
            if not all(isinstance(root.get("stack_name"), str) for root in self._listed):
                raise HeatRefusal("Heat lists a stack without a name: is it the Orchestration API?")
        return [root for root in self._listed if not selection.stacks or root["id"] in selection.stacks]

    def _pages_of(self, path: str, key: str) -> Iterator[JsonMap]:
        """Yield the items of a list that is answered by pages.

        :raises HeatRefusal: Heat refuses a page, or the list has no end.
        """
        joint = "&" if "?" in path else "?"

        def following(answer: JsonMap) -> str | None:
            items = _items(answer, key, path)
            if len(items) < LISTED:
                return None
            return f"{path}{joint}limit={LISTED}&marker={urllib.parse.quote(items[-1]['id'])}"

        def read(address: str) -> tuple[JsonMap, int]:
            answer = self._get(address)
            return answer, json_size(answer)

        pages = ListReader(read, following, checkpoint=lambda: None, endpoint=lambda: "")
        try:
            for answer in pages.pages(f"{path}{joint}limit={LISTED}"):
                yield from _items(answer, key, path)
        except EndlessList as error:
            raise HeatRefusal(f"GET {path} has no end: {error}") from error

    def _all_deployments(self) -> Mapping[str, HeatDeployment]:
        if self._deployments is None:
            path = "/software_deployments"
            answers = _items(self._get(path), "software_deployments", path)
            # An operator gets those of all projects, which Heat does not name: their configs tell them apart.
            configs = set(self._all_config_ids())
            own = [item for item in answers if item.get("config_id") in configs]
            read = sound(own, lambda item: deployment_of(item, self.project_id), self._damaged)
            self._deployments = {item.id: item for item in read}
        return self._deployments

    def _all_config_ids(self) -> Sequence[str]:
        if self._config_ids is None:
            answers = self._pages_of("/software_configs", "software_configs")
            own = self.project_id  # Heat names the project where the list is an operator's, of all of them.
            self._config_ids = [item["id"] for item in answers if item.get("project", own) == own]
        return self._config_ids

    def _configs(self, ids: Iterable[str]) -> list[HeatConfig]:
        answers = [self._get(f"/software_configs/{key}").get("software_config") for key in ids]
        return sound(answers, lambda answer: config_of(answer, self.project_id), self._damaged)

    # -- trees ---------------------------------------------------------------------------------------

    def _tree(self, answer: JsonMap) -> HeatTree:
        """Return the tree of a root stack; one with faults where it cannot be read, or not as a whole."""
        return within(
            lambda: self._read(answer),
            lambda reasons: HeatTree(
                root_alone({**answer, "name": answer["stack_name"], "tenant": self.project_id}),
                faults=reasons,
            ),
        )

    def _read(self, answer: JsonMap) -> HeatTree:
        path = StackPath(answer["stack_name"], answer["id"])
        root = stack_of(answer, self.project_id, 0)
        get = self._timed()
        try:
            root_answer = _show(get, path)
            if root.status == Status.IN_PROGRESS:
                return HeatTree(root)
            export = self._export(get, path)
            tree = _TreeReading(get, self.project_id, self._parameters).tree(path, export)
            if _show(get, path) != root_answer:
                return HeatTree(root, faults=["it was changed while it was read: run this again"])
        except HeatRefusal as error:
            return HeatTree(root, faults=[str(error)])
        return tree

    def _timed(self) -> Get:
        """Return the function that sends the requests for one tree; it refuses them when the time is over."""
        end = self._monotonic() + LONGEST

        def get(path: str) -> Json:
            if self._monotonic() > end:
                raise HeatRefusal(f"Heat has not shown the whole stack within {LONGEST:g} s")
            return self._get(path)

        return get

    def _export(self, get: Get, path: StackPath) -> JsonMap | None:
        """Return Heat's export of a stack; None: Heat exports none."""
        if not self._exports:
            return None
        try:
            answer: JsonMap = get(f"{path}/export")
        except HeatRefusal as error:
            if error.status not in _REFUSALS:
                raise
            self._exports = False
            return None
        return answer


def _show(get: Get, path: StackPath) -> JsonMap:
    answer: JsonMap = get(f"{path}?resolve_outputs=false")["stack"]
    return answer


_REFUSALS = (400, 403)
"""Statuses with which Heat refuses any export: its option is not set, or its policy does not allow it."""


class _TreeReading:
    """The reading of one tree."""

    def __init__(self, get: Get, project_id: str, parameters: Mapping[str, Json]) -> None:
        self._get = get
        self._project_id = project_id
        self._parameters = parameters
        self._faults: list[str] = []
        self._notes: list[str] = []
        self._stacks: list[HeatStack] = []
        self._templates: dict[int, HeatTemplate] = {}
        self._numbers = 0
        self._depths: dict[str, int] = {}
        self._rows: dict[str, list[JsonMap]] = {}

    def tree(self, path: StackPath, export: JsonMap | None) -> HeatTree:
        """Return the tree of a root stack.

        :param export: Heat's export of it; None: there is none.
        :raises HeatRefusal: Heat refuses a request.
        """
        for row in self._get(f"{path}/resources?nested_depth={DEEPEST}")["resources"]:
            place = path_of_link(row["links"], "stack")
            self._rows.setdefault("" if place is None else place.id, []).append(row)
        self._read(path, "", None, export)
        snapshots = self._get(f"{path}/snapshots")["snapshots"]
        if snapshots:
            names = ", ".join(str(item.get("name") or item["id"]) for item in snapshots)
            self._notes.append(f"its snapshots are not moved, and their copies stay in the cloud: {names}")
        root, *nested = self._stacks
        return HeatTree(root, nested, self._templates, self._faults, self._notes)

    def _read(
        self, path: StackPath, owner_id: str, resource_name: str | None, export: JsonMap | None
    ) -> None:
        """Read a stack, and those nested in it.

        :raises HeatRefusal: Heat refuses a request, or the tree has no end.
        """
        number = len(self._stacks) + 1
        if path.id in self._depths or number > MOST_STACKS:
            raise HeatRefusal(f"the stacks that Heat shows in stack {path.name} have no end")
        depth = self._depths[path.id] = self._depths.get(owner_id, -1) + 1
        if depth > DEEPEST:
            raise HeatRefusal(f"the stacks that Heat shows in stack {path.name} have no end")
        answer = self._get(f"{path}?resolve_outputs=false")["stack"]
        stack = stack_of(answer, self._project_id, number)
        if stack.id != path.id:
            raise HeatRefusal(f"Heat answers another stack to GET {path}")
        if stack.status == Status.FAILED and stack.action in _AMBIGUOUS:
            self._faults.append(
                f"stack {stack.name} is {stack.action}_FAILED, and Heat's API does not show which resources "
                "still have the definition before: update it in Heat until that succeeds, or move it by "
                "--database"
            )
        template = self._template(path, is_root=not owner_id, export=export)
        self._templates[number] = template
        place = len(self._stacks)
        self._stacks.append(stack)
        rows = in_order(self._rows.get(stack.id, ()))
        resources = [self._resource(path, stack, row, template, export) for row in rows]
        types = {row["resource_name"]: row["resource_type"] for row in rows}
        self._stacks[place] = replace(
            stack,
            owner_id=owner_id or None,
            parent_resource_name=resource_name,
            resources=resources,
            events=self._events(path, stack, types),
        )
        for row in rows:
            child = path_of_link(row["links"], "nested")
            if child is not None and row["resource_status"] != "DELETE_COMPLETE":
                self._read(child, stack.id, row["resource_name"], _entry(export, row["resource_name"]))

    def _template(self, path: StackPath, *, is_root: bool, export: JsonMap | None) -> HeatTemplate:
        """Return the template of a stack; a nested one's goal is made again, of the template alone."""
        body = self._get(f"{path}/template") if export is None else export.get("template")
        if not is_root:
            return HeatTemplate(fields_of(body or {}, f"the template of stack {path.name}").all(), {}, {})
        if export is None:
            environment = self._get(f"{path}/environment") or {}
            files = self._get(f"{path}/files") or {}
        else:
            environment = export.get("environment") or {}
            files = export.get("files") or {}
        document = {"template": body, "environment": environment, "files": files}
        fields = fields_of(document, f"stack {path.name}")
        check_sections(fields, "environment", fields.map("environment") or {}, ENVIRONMENT)
        texts = texts_by_name(fields, "files", fields.map("files"))
        return HeatTemplate(fields.map("template") or {}, self._filled(environment), texts)

    def _filled(self, environment: JsonMap) -> JsonMap:
        """Return the environment of the root with the hidden values that were given."""
        masked = masked_parameters(environment)
        if lacking := [name for name in masked if name not in self._parameters]:
            self._faults.append(
                f"Heat does not show the value of {', '.join(lacking)}: give it by --environment FILE or "
                "--parameter NAME=VALUE, with --stack"
            )
        if surplus := sorted(self._parameters.keys() - set(masked)):
            self._faults.append(
                f"{', '.join(surplus)}: Heat shows that value, or has no such parameter: leave it out; "
                "change parameters by an update after the move"
            )
        return filled(environment, self._parameters)

    def _resource(
        self, path: StackPath, stack: HeatStack, row: JsonMap, template: HeatTemplate, export: JsonMap | None
    ) -> HeatResource:
        self._numbers += 1
        name = row["resource_name"]
        place = (stack.id, self._numbers)
        if row["resource_status"].startswith("INIT"):
            return resource_of(row, place, metadata={}, attributes={}, data={})
        entry = _entry(export, name) or {}
        resource_path = f"{path}/resources/{urllib.parse.quote(name, safe='')}"
        metadata = entry.get("metadata")
        if metadata is None:
            metadata = self._get(f"{resource_path}/metadata")["metadata"] or {}
        attributes = self._attributes(resource_path, row, template)
        data = stored_data(row["resource_type"], entry.get("resource_data") or {}, attributes)
        if export is None:
            self._notes += losses_of(row, _definition(template.template, name), metadata)
        return resource_of(row, place, metadata=metadata, attributes=attributes, data=data)

    def _attributes(self, path: str, row: JsonMap, template: HeatTemplate) -> JsonMap:
        """Return the attributes of a resource to which its template refers, or of which its data is made."""
        type_name = row["resource_type"]
        names = set(DATA_ATTRIBUTES.get(type_name, {}).values())
        if type_name == RESOURCE_GROUP:
            names.add(REMOVED_MEMBERS)
        elif path_of_link(row["links"], "nested") is None:
            names |= referred_attributes(template.template).get(row["resource_name"], set())
        if not names:
            return {}
        query = "&".join(f"with_attr={urllib.parse.quote(name)}" for name in sorted(names))
        values = self._get(f"{path}?{query}")["resource"].get("attributes") or {}
        return {name: values[name] for name in sorted(names) if name in values}

    def _events(self, path: StackPath, stack: HeatStack, types: Mapping[str, str]) -> list[HeatEvent]:
        """Return the events of a stack; for a resource that was deleted, its type is read, too."""
        answers = self._get(f"{path}/events")["events"]
        types = dict(types)
        events = []
        for answer in answers:
            name = answer["resource_name"]
            if name not in types and answer.get("physical_resource_id") != stack.id:
                one = f"{path}/resources/{urllib.parse.quote(name, safe='')}/events/{answer['id']}"
                types[name] = self._get(one)["event"]["resource_type"]
            events.append(event_of(answer, stack.id, types.get(name, "")))
        return events


def _items(answer: Json, key: str, path: str) -> list[JsonMap]:
    """Return the items of a list.

    :raises HeatRefusal: the answer has no such list, or an item in it is none.
    """
    items = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(_is_item(item) for item in items):
        raise HeatRefusal(f"Heat answers no {key} to GET {path}: is it the Orchestration API?")
    return items


def _is_item(item: Json) -> bool:
    return isinstance(item, dict) and isinstance(item.get("id"), str)


def _entry(export: JsonMap | None, name: str) -> JsonMap | None:
    """Return the part of an export that is about a resource; None: there is none."""
    return None if export is None else (export.get("resources") or {}).get(name)


def _definition(template: JsonMap, name: str) -> JsonMap:
    resources = template.get("resources") or template.get("Resources") or {}
    definition: JsonMap = resources.get(name) or {}
    return definition
