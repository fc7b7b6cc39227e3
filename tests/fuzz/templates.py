"""Templates, environments, files and parameters, through parsing and compilation."""

import functools
import json
import re
import typing
from collections.abc import Iterator, Sequence

import yaml
from fuzz.laws import ROOT, Broken, check_text
from fuzz.mutation import Mutations
from harness import attacks, examples
from hypothesis import strategies as st
from stoker.api.errors import fault_of
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources import rendering
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Identity, Limits
from stoker.template.load import load_document

Json = typing.Any
SMALL = 20_000
"""Characters of a body that is worth to be mutated; a larger one takes too long each time."""
FENCE = re.compile(r"^```ya?ml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
IDENTITY = Identity("stack", "11111111-2222-4333-8444-555555555555", "project")
VALUES: dict[str, Json] = {
    "number": 1,
    "boolean": True,
    "json": {"a": [1]},
    "comma_delimited_list": "a,b",
    "CommaDelimitedList": "a,b",
    "Number": 1,
}
"""A value of a parameter by its type; that of others is a text."""


class _Loader(yaml.SafeLoader):
    """Reads dates as texts, as templates do."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)


def _parsed(text: str) -> Json:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is a SafeLoader
    except yaml.YAMLError:
        return None


def _bodies() -> Iterator[Json]:
    """Yield bodies of requests: of the examples, of the tests, of documents, of attacks, and of each type."""
    yield from (examples.example(name) for name in examples.names())
    folders = ("etc", "examples", "tests/cloud/templates")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.yaml"))]
    texts = [path.read_text() for path in files]
    texts += [
        text for path in sorted((ROOT / "doc").glob("*.md")) for text in FENCE.findall(path.read_text())
    ]
    for document in map(_parsed, texts):
        if isinstance(document, dict):
            is_template = not document.keys().isdisjoint(("resources", "Resources"))
            yield {"template": document} if is_template else {"template": _BASE, "environment": document}
    yield from attacks.requests()
    registry = ResourceRegistry.installed()
    for name in registry.usable.names():
        plugin = registry.get(name)
        yield {"template": rendering.resource_type_template(name, plugin, "hot")}


_BASE: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"p": {"type": "json", "default": {"a": [1]}}},
    "conditions": {"c": {"equals": [{"get_param": ["p", "a", 0]}, 1]}},
    "resources": {
        "r": {"type": "OS::Heat::Value", "condition": "c", "properties": {"value": {"get_param": "p"}}},
        "n": {"type": "a.yaml", "depends_on": "r"},
    },
    "outputs": {"o": {"value": {"get_attr": ["r", "value"]}}},
}
_CHILD = "heat_template_version: 2021-04-16\nresources: {c: {type: OS::Heat::None}}\n"


def _complete(body: Json) -> Json:
    """Return a body with a value of each parameter."""
    template = body["template"]
    declared = template.get("parameters", template.get("Parameters")) if isinstance(template, dict) else {}
    values = {
        name: VALUES.get(entry.get("type", entry.get("Type")), "x")
        for name, entry in (declared or {}).items()
        if isinstance(entry, dict) and entry.keys().isdisjoint(("default", "Default"))
    }
    files = {"a.yaml": _CHILD, **body.get("files", {})}
    return {
        "template": template,
        "environment": body.get("environment", {}),
        "files": files,
        "parameters": {**values, **body.get("parameters", {})},
    }


@functools.cache
def corpus() -> tuple[Json, ...]:
    """Return the bodies of requests that are mutated."""
    bodies = [json.loads(json.dumps(_complete(body))) for body in _bodies()]
    return tuple(body for body in bodies if len(json.dumps(body)) <= SMALL)


@functools.cache
def _mutations() -> Sequence[Mutations]:
    """Return the mutations of bodies; in every third the template is a text."""
    mutations = Mutations(corpus())
    as_text = Mutations([{**body, "template": yaml.safe_dump(body["template"])} for body in corpus()])
    return mutations, mutations, as_text


class Templates:
    """The subject."""

    name = "templates"
    cost = 1

    def __init__(self) -> None:
        self._compiler = GoalCompiler(ResourceRegistry.installed(), Limits())
        self._sealer = Sealer([Sealer.generate_key()]).of_stack("project", "stack")

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return bodies."""
        return st.one_of(*[mutations.inputs() for mutations in _mutations()])

    def run(self, sent: Json) -> None:
        """Compile a body."""
        try:
            environment = sent.get("environment") or {}
            if isinstance(environment, str):
                environment = load_document(environment, "environment")
            if not _fits(sent, environment):
                return
            files = sent.get("files") or {}
            goal = Goal(
                sent.get("template"),
                environment=environment,
                files=files,
                parameters=sent.get("parameters") or {},
            )
            self._compiler.compile(goal, IDENTITY, self._sealer)
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            if fault.status >= 500 and fault.status != 503:
                raise Broken("status", str(error)) from error
            check_text(fault.message, "an error")
            json.dumps(fault.body())


def _fits(sent: Json, environment: Json) -> bool:
    """Return whether the API would pass a body on; the schema of bodies is a subject of the routes."""
    template = sent.get("template")
    files = sent.get("files") or {}
    maps = (environment, files, sent.get("parameters") or {})
    return (
        isinstance(template, dict | str)
        and all(isinstance(value, dict) for value in maps)
        and all(isinstance(text, str) for text in files.values())
    )
