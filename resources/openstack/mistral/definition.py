"""Definitions of workflows in Mistral's language, made of properties, and read back; pure."""

from collections.abc import Mapping, Sequence

import yaml

from ....shapes import Json, JsonMap
from ...contract import PropertyError
from ..bodies import without_nulls
from .workflow_schema import POLICIES

_PLAIN = ("type", "description", "output")
"""Properties that the definition has under the same names."""


def definition_of(name: str, properties: JsonMap, mark: str | None) -> str:
    """Return the definition of a workflow.

    :param mark: a tag besides those of the template; None: there is none.
    """
    parts = without_nulls({part: properties[part] for part in _PLAIN})
    if tags := [*(properties["tags"] or ()), *([mark] if mark else ())]:
        parts["tags"] = tags
    if properties["input"] is not None:
        parts["input"] = list(properties["input"])
    parts["tasks"] = tasks_of(properties)
    if properties["task_defaults"] is not None:
        parts["task-defaults"] = _hyphened(_truthy(properties["task_defaults"]))
    return yaml.safe_dump({"version": "2.0", name: parts}, sort_keys=False, allow_unicode=True)


def tasks_of(properties: JsonMap) -> dict[str, Json]:
    """Return the tasks by name, as the definition has them."""
    tasks: dict[str, Json] = {}
    for task in properties["tasks"]:
        values = without_nulls({**(task.get(POLICIES) or {}), **without_nulls(task)})
        tasks[task["name"]] = _hyphened({k: v for k, v in values.items() if k not in ("name", POLICIES)})
    return tasks


def properties_in(definition: str, name: str, properties: JsonMap, mark: str | None) -> JsonMap:
    """Return the properties that a definition shows.

    What it says as `definition_of` would have said it is in the form of the properties that are given.
    """
    parts = _parts(definition, name)
    live: dict[str, Json] = {part: parts.get(part) for part in _PLAIN}
    tags = [tag for tag in _list(parts.get("tags")) if tag != mark]
    live["tags"] = tags or (properties["tags"] and [])
    inputs = _input_names(parts.get("input"))
    same_input = inputs == list(properties["input"] or {})
    live["input"] = properties["input"] if same_input else dict.fromkeys(inputs)
    tasks = parts.get("tasks")
    same_tasks = tasks == tasks_of(properties)
    live["tasks"] = [*map(without_nulls, properties["tasks"])] if same_tasks else _task_list(tasks)
    defaults = parts.get("task-defaults") or {}
    same_defaults = defaults == _hyphened(_truthy(properties["task_defaults"] or {}))
    given_defaults = without_nulls(properties["task_defaults"] or {})
    live["task_defaults"] = given_defaults if same_defaults else _underscored(defaults)
    return {name: value for name, value in live.items() if value or properties[name] is not None}


def check_tasks(tasks: Sequence[JsonMap], kind: Json) -> None:
    """Check rules over the properties of a task.

    :param kind: the workflow's type.
    :raises PropertyError: a task breaks one.
    """
    for number, task in enumerate(tasks):
        path = ("tasks", number)
        if task.get("workflow") and task.get("action"):
            raise PropertyError(
                "Cannot define the following properties at the same time: workflow, action.", path
            )
        if not task.get("workflow", "unknown") and not task.get("action", "unknown"):
            text = "At least one of the following properties must be specified: workflow, action."
            raise PropertyError(text, path)
        if task.get("requires") is not None and kind == "direct":
            text = (
                f"task {task.get('name')} contains property 'requires' in case of direct workflow. Only "
                "reverse workflows can contain property 'requires'."
            )
            raise PropertyError(text, (*path, "requires"))
        for name in task.get(POLICIES) or ():
            if task.get(name) is not None:
                text = f"Property {POLICIES} and {name} cannot be used both at one time."
                raise PropertyError(text, (*path, POLICIES))
        if task.get("concurrency") is not None and not task.get("with_items", "unknown"):
            raise PropertyError("concurrency cannot be specified without with_items.", (*path, "concurrency"))


def _parts(definition: str, name: str) -> JsonMap:
    """Return what a definition says of a workflow; nothing, where it is of another form."""
    try:
        document = yaml.safe_load(definition)
    except yaml.YAMLError:
        return {}
    parts = document.get(name) if isinstance(document, Mapping) else None
    return parts if isinstance(parts, Mapping) else {}


def _input_names(declared: Json) -> list[str]:
    """Return names of inputs; one with a value is a map."""
    return [
        next(iter(entry)) if isinstance(entry, Mapping) and entry else str(entry) for entry in _list(declared)
    ]


def _task_list(tasks: Json) -> list[Json]:
    if not isinstance(tasks, Mapping):
        return []
    return [{"name": name, **_underscored(task)} for name, task in tasks.items() if isinstance(task, Mapping)]


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _truthy(values: JsonMap) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value}


def _hyphened(values: JsonMap) -> dict[str, Json]:
    return {name.replace("_", "-"): value for name, value in values.items()}


def _underscored(values: JsonMap) -> dict[str, Json]:
    return {name.replace("-", "_"): value for name, value in values.items()}
